// Where the boxes of a plan stand: columns by how much comes before, rows so that lines are short. An edge over several
// columns gets a narrow place of its own in each, so that it goes around boxes and not below them.

export interface Item {
  id: string
  /** What must be completed before. */
  after: readonly string[]
  /** What it is a part of. */
  part?: string | null
}

interface Box {
  id: string
  column: number
  x: number
  y: number
}

interface Edge {
  from: string
  to: string
  /** Part of it rather than after it. */
  part: boolean
  /** As of an SVG path. */
  path: string
}

interface Drawing {
  boxes: Box[]
  edges: Edge[]
  width: number
  height: number
}

export const BOX = { width: 196, height: 58 }
const GAP = { x: 52, y: 14 }
/** The height of an edge's place in a column. */
const LANE = 10
/** With more places than this, edges go straight. */
const LANES_MOST = 1_500
const SWEEPS = 4

interface Place {
  id: string | null
  column: number
  height: number
  y: number
  before: Place[]
  behind: Place[]
}

interface Link {
  from: string
  to: string
  part: boolean
  through: Place[]
}

export function draw(items: readonly Item[]): Drawing {
  const known = new Set(items.map((item) => item.id))
  const wanted = items.flatMap((item) => [
    ...[...new Set(item.after)].map((from) => ({ from, to: item.id, part: false })),
    ...(item.part && !item.after.includes(item.part) ? [{ from: item.part, to: item.id, part: true }] : []),
  ]).filter((edge) => known.has(edge.from) && edge.from !== edge.to)
  const column = columns([...known], wanted)
  const places = new Map<string, Place>()
  const table: Place[][] = []
  const put = (place: Place): Place => {
    ;(table[place.column] ??= []).push(place)
    return place
  }
  for (const id of known) {
    places.set(id, put({ id, column: column.get(id) ?? 0, height: BOX.height, y: 0, before: [], behind: [] }))
  }
  const links = connect(wanted, places, put)
  for (let sweep = 0; sweep < SWEEPS; sweep++) arrange(table, sweep % 2 === 0)
  for (let sweep = 0; sweep < SWEEPS; sweep++) settle(table, sweep % 2 === 0)
  return finish(table, links)
}

/** One more than the highest before it. What goes in a circle is put where it comes first, and the circle is cut there. */
function columns(ids: readonly string[], edges: readonly { from: string; to: string }[]): Map<string, number> {
  const open = new Map(ids.map((id) => [id, 0]))
  const behind = new Map<string, string[]>()
  for (const { from, to } of edges) {
    open.set(to, (open.get(to) ?? 0) + 1)
    const list = behind.get(from)
    if (list) list.push(to)
    else behind.set(from, [to])
  }
  const column = new Map<string, number>()
  const least = new Map<string, number>()
  const ready = ids.filter((id) => open.get(id) === 0)
  let next = 0
  while (column.size < ids.length) {
    const id = ready.pop() ?? ids.slice(next).find((one) => !column.has(one))
    if (id === undefined) break
    while (next < ids.length && column.has(ids[next] ?? '')) next++
    if (column.has(id)) continue
    const at = least.get(id) ?? 0
    column.set(id, at)
    for (const to of behind.get(id) ?? []) {
      if (column.has(to)) continue
      least.set(to, Math.max(least.get(to) ?? 0, at + 1))
      const left = (open.get(to) ?? 1) - 1
      open.set(to, left)
      if (left === 0) ready.push(to)
    }
  }
  return column
}

function connect(wanted: readonly Omit<Link, 'through'>[], places: Map<string, Place>, put: (place: Place) => Place): Link[] {
  const length = (edge: Omit<Link, 'through'>): number => (places.get(edge.to)?.column ?? 0) - (places.get(edge.from)?.column ?? 0)
  const lanes = wanted.reduce((sum, edge) => sum + Math.max(0, length(edge) - 1), 0) <= LANES_MOST
  return wanted.map((edge) => {
    const through: Place[] = []
    let last = places.get(edge.from) as Place
    const end = places.get(edge.to) as Place
    const join = (to: Place): void => {
      last.behind.push(to)
      to.before.push(last)
      last = to
    }
    if (length(edge) < 1) return { ...edge, through }
    for (let column = last.column + 1; lanes && column < end.column; column++) {
      const place = put({ id: null, column, height: LANE, y: 0, before: [], behind: [] })
      join(place)
      through.push(place)
    }
    join(end)
    return { ...edge, through }
  })
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** The order in each column, after the mean of what its places are connected with on one side. */
function arrange(table: Place[][], forwards: boolean): void {
  const rank = new Map<Place, number>()
  for (const column of table) column.forEach((place, at) => rank.set(place, at))
  for (const column of forwards ? table : [...table].reverse()) {
    const wish = new Map(column.map((place, at) => {
      const near = forwards ? place.before : place.behind
      return [place, near.length === 0 ? at : mean(near.map((one) => rank.get(one) ?? 0))]
    }))
    column.sort((a, b) => (wish.get(a) ?? 0) - (wish.get(b) ?? 0))
    column.forEach((place, at) => rank.set(place, at))
  }
}

/** Heights: each as near to what it is connected with as its neighbours let it. */
function settle(table: Place[][], forwards: boolean): void {
  for (const column of forwards ? table : [...table].reverse()) {
    const wishes = column.map((place) => {
      const near = forwards ? place.before : place.behind
      return near.length === 0 ? place.y : mean(near.map((one) => one.y + one.height / 2)) - place.height / 2
    })
    let edge = -Infinity
    column.forEach((place, at) => {
      place.y = Math.max(wishes[at] ?? 0, edge)
      edge = place.y + place.height + GAP.y
    })
    // Whoever had to give way went down; half of that is given back, to all of them.
    const off = mean(column.map((place, at) => place.y - (wishes[at] ?? 0)))
    for (const place of column) place.y -= off
  }
}

function finish(table: readonly Place[][], links: readonly Link[]): Drawing {
  const all = table.flat()
  const lowest = all.reduce((least, place) => Math.min(least, place.y), all.length === 0 ? 0 : Infinity)
  for (const place of all) place.y = Math.round(place.y - lowest)
  const x = (column: number): number => column * (BOX.width + GAP.x)
  const boxes = all.flatMap((place) => (place.id === null ? [] : [{ id: place.id, column: place.column, x: x(place.column), y: place.y }]))
  const at = new Map(boxes.map((box) => [box.id, box]))
  const edges = links.flatMap((link) => {
    const [from, to] = [at.get(link.from), at.get(link.to)]
    if (!from || !to) return []
    return [{ from: link.from, to: link.to, part: link.part, path: path(from, to, link.through, x) }]
  })
  return {
    boxes,
    edges,
    width: table.length === 0 ? 0 : x(table.length - 1) + BOX.width,
    height: all.reduce((most, place) => Math.max(most, place.y + place.height), 0),
  }
}

function path(from: Box, to: Box, through: readonly Place[], x: (column: number) => number): string {
  let [px, py] = [from.x + BOX.width, from.y + BOX.height / 2]
  let text = `M${px} ${py}`
  const curve = (tx: number, ty: number): void => {
    const bend = Math.max(18, Math.abs(tx - px) / 2)
    text += `C${px + bend} ${py} ${tx - bend} ${ty} ${tx} ${ty}`
    ;[px, py] = [tx, ty]
  }
  for (const place of through) {
    const y = place.y + place.height / 2
    curve(x(place.column), y)
    px = x(place.column) + BOX.width
    text += `H${px}`
  }
  curve(to.x, to.y + BOX.height / 2)
  return text
}
