// Where the boxes of a family stand: a column for each generation, a row for each session that has nobody below it, and
// parents beside the middle of their children. On a narrow screen a list, each a step further in than its parent.
import type { TreeNode } from '../api/types'

interface Shape {
  width: number
  height: number
  /** From one column to the next, and from one row to the next. */
  across: number
  down: number
}

export const DRAWN: Shape = { width: 194, height: 84, across: 220, down: 98 }
export const LISTED: Shape = { width: 0, height: 84, across: 14, down: 92 }

interface Box {
  /** Unique among the boxes. */
  key: string
  /** Null for the place of those who were left out. */
  node: TreeNode | null
  depth: number
  /** The place of the parent among the boxes; -1 for the first. */
  parent: number
  x: number
  y: number
  /** How many are folded away below it. */
  hidden: number
  /** The first and the last row of all below it; of itself where nobody is. */
  reach: [number, number]
}

/** The line down beside the children of one box. */
interface Spine {
  key: string
  x: number
  from: number
  to: number
  /** Where the parent's own line meets it. */
  at: number
  /** Where the parent's box ends. */
  start: number
}

interface Layout {
  boxes: Box[]
  columns: { x: number; label: string }[]
  width: number
  height: number
  listed: boolean
}

/** Everybody in a tree, parents before their children and elder ones first. */
export function members(root: TreeNode): TreeNode[] {
  const all: TreeNode[] = []
  const left = [root]
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    all.push(node)
    for (let at = node.children.length - 1; at >= 0; at--) left.push(node.children[at] as TreeNode)
  }
  return all
}

export function find(root: TreeNode, id: string): TreeNode | null {
  return members(root).find((node) => node.id === id) ?? null
}

/** Whether some of a tree were left out because it was too large. */
export function isTruncated(root: TreeNode): boolean {
  return members(root).some((node) => node.truncated === true)
}

export function layout(root: TreeNode, folded: ReadonlySet<string>, listed = false): Layout {
  const boxes = order(root, folded)
  const shape = listed ? LISTED : DRAWN
  if (listed) boxes.forEach((box, at) => (box.reach = [(box.y = at * shape.down), box.y]))
  else rise(boxes, shape)
  for (const box of boxes) box.x = box.depth * shape.across
  return {
    boxes,
    columns: listed ? [] : columns(boxes, shape),
    width: listed ? 0 : Math.max(...columns(boxes, shape).map((column) => column.x), 0) + shape.width,
    height: boxes.reduce((most, box) => Math.max(most, box.y + shape.height), 0),
    listed,
  }
}

function order(root: TreeNode, folded: ReadonlySet<string>): Box[] {
  const boxes: Box[] = []
  const left: { node: TreeNode | null; of: string; depth: number; parent: number }[] = [{ node: root, of: root.id, depth: 0, parent: -1 }]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { node, of, depth, parent } = next
    const place = boxes.length
    if (node === null) {
      boxes.push({ key: `${of}/more`, node, depth, parent, x: 0, y: 0, hidden: 0, reach: [0, 0] })
      continue
    }
    const folds = folded.has(node.id) && node.children.length > 0
    boxes.push({ key: node.id, node, depth, parent, x: 0, y: 0, hidden: folds ? members(node).length - 1 : 0, reach: [0, 0] })
    if (folds) continue
    if (node.truncated === true) left.push({ node: null, of: node.id, depth: depth + 1, parent: place })
    for (let at = node.children.length - 1; at >= 0; at--) {
      left.push({ node: node.children[at] as TreeNode, of: node.id, depth: depth + 1, parent: place })
    }
  }
  return boxes
}

/** Whoever has nobody below gets the next row; then, from the end, each parent the middle of its children. */
function rise(boxes: Box[], shape: Shape): void {
  const first = new Map<number, number>()
  const last = new Map<number, number>()
  boxes.forEach((box, place) => {
    if (!first.has(box.parent)) first.set(box.parent, place)
    last.set(box.parent, place)
  })
  let row = 0
  boxes.forEach((box, place) => {
    if (first.has(place)) return
    box.y = row++ * shape.down
    box.reach = [box.y, box.y]
  })
  for (let place = boxes.length - 1; place >= 0; place--) {
    const [from, to] = [first.get(place), last.get(place)]
    const box = boxes[place]
    if (box === undefined || from === undefined || to === undefined) continue
    box.y = Math.round(((boxes[from]?.y ?? 0) + (boxes[to]?.y ?? 0)) / 2)
    box.reach = [boxes[from]?.reach[0] ?? 0, boxes[to]?.reach[1] ?? 0]
  }
}

function columns(boxes: Box[], shape: Shape): { x: number; label: string }[] {
  const levels: Set<number>[] = []
  for (const box of boxes) {
    const found = (levels[box.depth] ??= new Set())
    if (box.node !== null) found.add(box.node.level)
  }
  return levels.map((found, depth) => {
    const all = [...found].sort((a, b) => a - b)
    const label = all.length === 0 ? '' : all.length === 1 ? `Level ${all[0]}` : `Levels ${all.join(', ')}`
    return { x: depth * shape.across, label }
  })
}

interface Window {
  boxes: { box: Box; y: number }[]
  spines: Spine[]
}

/** What is between two heights, and a little around it. A parent comes along as far as its family reaches: whoever is in
 * sight is so together with those above. */
export function inSight(all: Layout, top: number, bottom: number, spare = 300): Window {
  const shape = all.listed ? LISTED : DRAWN
  const middle = shape.height / 2
  const [from, to] = [top - spare, bottom + spare]
  const highs = all.boxes.map((box) => Math.max(box.reach[0], Math.min(box.reach[1], Math.max(top, Math.min(box.y, bottom - shape.height)))))
  const boxes: Window['boxes'] = []
  const spines = new Map<number, Spine>()
  all.boxes.forEach((box, place) => {
    const y = highs[place] ?? box.y
    if (y + shape.height >= from && y <= to) boxes.push({ box, y })
    const parent = all.boxes[box.parent]
    if (parent === undefined) return
    const at = (highs[box.parent] ?? parent.y) + (all.listed ? shape.height : middle)
    const start = parent.x + (all.listed ? 6 : shape.width)
    const spine = spines.get(box.parent) ?? { key: parent.key, x: all.listed ? start : start + (shape.across - shape.width) / 2, from: at, to: at, at, start }
    spine.from = Math.min(spine.from, y + middle)
    spine.to = Math.max(spine.to, y + middle)
    spines.set(box.parent, spine)
  })
  return { boxes, spines: [...spines.values()].filter((spine) => spine.to >= from && spine.from <= to) }
}

/** Those below which nobody works any more, to be folded at once. */
export function quiet(root: TreeNode, isLive: (node: TreeNode) => boolean): Set<string> {
  const all = members(root)
  const lively = new Set<string>()
  // Children come after their parents, so from the end each is told before it is asked.
  for (let at = all.length - 1; at >= 0; at--) {
    const node = all[at] as TreeNode
    if (isLive(node) || node.children.some((child) => lively.has(child.id))) lively.add(node.id)
  }
  return new Set(all.filter((node) => node.children.length > 0 && !node.children.some((child) => lively.has(child.id))).map((node) => node.id))
}
