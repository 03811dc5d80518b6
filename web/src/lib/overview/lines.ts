// From all sessions to the lines that are shown: filtered, as families, grouped, in order. One pure function; what a row
// tells is worked out once per row, since rows are replaced and never changed.
import type { Attention, Lifecycle, MemoryMode, SessionRow, StateName } from '../api/types'
import { OPERATOR_STATES, operatorState, type OperatorState } from '../operator'

export type View = 'live' | 'all' | 'archived'
export type Grouping = 'none' | 'state' | 'workspace' | 'plan' | 'source' | 'owner' | 'agent'
/** `need` is the usual order: sessions that need a person first, then running ones, then the latest. */
export type SortBy = 'need' | 'activity' | 'created' | 'title' | 'plan' | 'changes' | 'cost' | 'context'
export type Density = 'compact' | 'roomy'

export interface Wanted {
  view: View
  text: string
  operator: OperatorState | ''
  state: StateName | ''
  lifecycle: Lifecycle | ''
  agent: string
  source: string
  owner: string
  workspace: string
  plan: string
  memory: MemoryMode | ''
  attention: boolean
  group: Grouping
  sort: SortBy
  density: Density
}

export const EVERYTHING: Wanted = {
  view: 'live', text: '', operator: '', state: '', lifecycle: '', agent: '', source: '', owner: '', workspace: '', plan: '', memory: '',
  attention: false, group: 'none', sort: 'need', density: 'compact',
}

interface GroupLine {
  kind: 'group'
  key: string
  label: string
  count: number
  folded: boolean
}

export interface SessionLine {
  kind: 'session'
  key: string
  row: SessionRow
  depth: number
  /** Children that are shown below it, or would be. */
  children: number
  folded: boolean
  /** Sessions a fold hides, and the most pressing need among them. */
  below: number
  urgent: boolean
  /** Not asked for: it is there because something below it is. */
  context: boolean
}

export type Line = GroupLine | SessionLine

export interface Lines {
  lines: readonly Line[]
  /** Sessions that match, whether folded away or not. */
  matches: number
}

/** How much a session needs somebody; the smaller comes first. */
const NEED = { attention: 0, running: 1, resting: 2, over: 3 } as const

/** What ended stays in sight this long, so that its end is seen. */
export const LINGER_MS = 120_000
const MINUTE_MS = 60_000
/** Values of no group come last. */
const NOTHING = ''

interface Facts {
  need: number
  /** Of the last activity. To the minute, so that sessions at work do not dance. */
  minute: number
  since: number
  text: string | null
}

const known = new WeakMap<SessionRow, Facts>()

function facts(row: SessionRow): Facts {
  let found = known.get(row)
  if (found === undefined) {
    found = { need: needOf(row), minute: Math.floor(Date.parse(row.last_activity_at) / MINUTE_MS), since: Date.parse(row.since), text: null }
    known.set(row, found)
  }
  return found
}

const NONE: readonly Attention[] = []

/** Reasons for a person to look: being stopped is known to whoever stopped it. */
export function pressing(row: SessionRow): readonly Attention[] {
  return row.archived || row.attention.length === 0 ? NONE : row.attention.filter((reason) => reason !== 'stopping')
}

function needOf(row: SessionRow): number {
  if (pressing(row).length > 0) return NEED.attention
  if (row.archived || row.lifecycle === 'terminal') return NEED.over
  return row.lifecycle === 'running' ? NEED.running : NEED.resting
}

function textOf(row: SessionRow): string {
  const known = facts(row)
  known.text ??= [row.title, row.id, row.agent, row.state.replaceAll('_', ' '), OPERATOR_STATES[operatorState(row)].label, row.workspace, row.plan, row.owner, row.source]
    .filter((part) => part != null)
    .join('\n')
    .toLowerCase()
  return known.text
}

function matching(wanted: Wanted, now: number): (row: SessionRow) => boolean {
  const words = wanted.text.toLowerCase().split(/\s+/).filter((word) => word !== '')
  const equal = (
    [['state', wanted.state], ['lifecycle', wanted.lifecycle], ['agent', wanted.agent], ['source', wanted.source], ['owner', wanted.owner],
      ['workspace', wanted.workspace], ['plan', wanted.plan], ['memory_mode', wanted.memory]] as const
  ).filter(([, value]) => value !== '')
  return (row) => {
    if (wanted.view === 'archived' ? !row.archived : wanted.view === 'live' && !live(row, now)) return false
    if (wanted.operator !== '' && operatorState(row) !== wanted.operator) return false
    if (wanted.attention && facts(row).need !== NEED.attention) return false
    for (const [field, value] of equal) if (row[field] !== value) return false
    if (words.length === 0) return true
    const text = textOf(row)
    return words.every((word) => text.includes(word))
  }
}

/** Not over, or needs somebody, or only just ended. */
export function live(row: SessionRow, now: number): boolean {
  if (row.archived) return false
  const { need, since } = facts(row)
  return need !== NEED.over || since > now - LINGER_MS
}

function groupOf(row: SessionRow, group: Grouping): string {
  if (group === 'none') return NOTHING
  return group === 'state' ? OPERATOR_STATES[operatorState(row)].label : (row[group] ?? NOTHING)
}

/** The value by which rows are sorted, the largest first; titles are compared as text. */
function weightOf(row: SessionRow, sort: SortBy): number {
  switch (sort) {
    case 'need':
    case 'title':
      return 0
    case 'activity':
      return facts(row).minute
    case 'created':
      return Date.parse(row.created_at)
    case 'plan':
      return row.glance?.steps ? row.glance.steps_done / row.glance.steps : -1
    case 'changes':
      return row.glance ? row.glance.added + row.glance.removed : -1
    case 'cost':
      return row.glance?.usage?.cost_micros ?? -1
    case 'context':
      return row.glance?.usage?.context_tokens ?? -1
  }
}

function compare(a: Family, b: Family, sort: SortBy): number {
  if (sort === 'need') return a.need - b.need || b.minute - a.minute
  return sort === 'title' ? (a.root.title ?? a.root.id).localeCompare(b.root.title ?? b.root.id) : b.weight - a.weight
}

interface Family {
  root: SessionRow
  need: number
  minute: number
  weight: number
}

/**
 * @param now To the precision that ends should vanish with: a new one is a new list.
 */
export function arrange(rows: ReadonlyMap<string, SessionRow>, wanted: Wanted, folded: ReadonlySet<string>, now: number): Lines {
  const { group, sort } = wanted
  const matches = matching(wanted, now)
  /** A parent in another group is none. */
  const parentOf = (row: SessionRow): SessionRow | undefined => {
    if (row.parent == null) return undefined
    const parent = rows.get(row.parent)
    return parent !== undefined && groupOf(parent, group) === groupOf(row, group) ? parent : undefined
  }

  // Those that match, and those they hang from.
  const shown = new Map<SessionRow, boolean>()
  let count = 0
  for (const row of rows.values()) {
    if (!matches(row)) continue
    count += 1
    shown.set(row, true)
    for (let above = parentOf(row); above !== undefined && !shown.has(above); above = parentOf(above)) shown.set(above, false)
  }

  const families = new Map<SessionRow, Family>()
  const children = new Map<SessionRow, SessionRow[]>()
  for (const [row, root] of rootsOf(shown.keys(), parentOf)) {
    const { need, minute } = facts(row)
    const weight = weightOf(row, sort)
    const family = families.get(root)
    if (family === undefined) families.set(root, { root, need, minute, weight })
    else {
      family.need = Math.min(family.need, need)
      family.minute = Math.max(family.minute, minute)
      family.weight = Math.max(family.weight, weight)
    }
    const parent = row === root ? undefined : parentOf(row)
    if (parent === undefined) continue
    const beside = children.get(parent)
    if (beside === undefined) children.set(parent, [row])
    else beside.push(row)
  }
  // Ids tell the order in which sessions were made: a family reads from its oldest.
  for (const beside of children.values()) if (beside.length > 1) beside.sort((a, b) => (a.id < b.id ? -1 : 1))
  const order = [...families.values()].sort((a, b) => compare(a, b, sort) || (a.root.id < b.root.id ? 1 : -1))

  const lines: Line[] = []
  if (group === 'none') {
    for (const { root } of order) grow(root, children, shown, folded, lines)
    return { lines, matches: count }
  }
  const groups = new Map<string, SessionRow[]>()
  for (const { root } of order) {
    const label = groupOf(root, group)
    const beside = groups.get(label)
    if (beside === undefined) groups.set(label, [root])
    else beside.push(root)
  }
  const labels = [...groups.keys()].sort((a, b) => Number(a === NOTHING) - Number(b === NOTHING) || (a < b ? -1 : 1))
  for (const label of labels) {
    const head: GroupLine = { kind: 'group', key: `group:${group}:${label}`, label, count: 0, folded: folded.has(`group:${group}:${label}`) }
    lines.push(head)
    const inside: Line[] = []
    for (const root of groups.get(label) ?? []) grow(root, children, shown, folded, inside)
    head.count = inside.reduce((sum, line) => sum + (line.kind === 'session' ? Number(!line.context) + line.below : 0), 0)
    if (!head.folded) for (const line of inside) lines.push(line)
  }
  return { lines, matches: count }
}

/** Each with the root of its family. A loop of parents is cut where it was entered. */
function rootsOf(all: Iterable<SessionRow>, parentOf: (row: SessionRow) => SessionRow | undefined): Map<SessionRow, SessionRow> {
  const roots = new Map<SessionRow, SessionRow>()
  for (const row of all) {
    const path: SessionRow[] = []
    const walked = new Set<SessionRow>()
    let at: SessionRow = row
    let root = roots.get(at)
    while (root === undefined) {
      const parent = parentOf(at)
      path.push(at)
      walked.add(at)
      if (parent === undefined) root = at
      else if (walked.has(parent)) root = parent
      else {
        at = parent
        root = roots.get(at)
      }
    }
    for (const one of path) roots.set(one, root)
  }
  return roots
}

/** A family from its root down, without recursion: a chain may be as long as there are sessions. */
function grow(
  root: SessionRow,
  children: ReadonlyMap<SessionRow, SessionRow[]>,
  shown: ReadonlyMap<SessionRow, boolean>,
  folded: ReadonlySet<string>,
  lines: Line[],
): void {
  const stack: { row: SessionRow; depth: number; over: SessionLine | null }[] = [{ row: root, depth: 0, over: null }]
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { row, depth, over } = next
    const below = children.get(row) ?? []
    const match = shown.get(row) === true
    let inside = over
    if (over !== null) {
      if (match) over.below += 1
      over.urgent ||= facts(row).need === NEED.attention
    } else {
      const line: SessionLine = {
        kind: 'session', key: row.id, row, depth, children: below.length, folded: below.length > 0 && folded.has(row.id), below: 0, urgent: false, context: !match,
      }
      lines.push(line)
      if (line.folded) inside = line
    }
    for (let at = below.length - 1; at >= 0; at -= 1) {
      const child = below[at]
      if (child !== undefined) stack.push({ row: child, depth: depth + 1, over: inside })
    }
  }
}

/** How many there are in each state, of those not put away. */
export function tally(rows: ReadonlyMap<string, SessionRow>): Map<OperatorState, number> {
  const counts = new Map<OperatorState, number>()
  for (const row of rows.values()) {
    if (row.archived) continue
    const state = operatorState(row)
    counts.set(state, (counts.get(state) ?? 0) + 1)
  }
  return counts
}

/** Reported costs since the beginning of the day, in millionths of a dollar. To the hour. */
export function costSince(rows: ReadonlyMap<string, SessionRow>, midnight: number): number {
  let micros = 0
  for (const row of rows.values()) {
    for (const spent of row.glance?.hourly ?? []) if (Date.parse(spent.hour) >= midnight) micros += spent.cost_micros
  }
  return micros
}

/** The same lines in the order they had before; new ones come last. For as long as the pointer is on them. */
export function steady(lines: readonly Line[], before: readonly string[]): readonly Line[] {
  const rest = new Map(lines.map((line) => [line.key, line]))
  const kept: Line[] = []
  for (const key of before) {
    const line = rest.get(key)
    if (line === undefined) continue
    kept.push(line)
    rest.delete(key)
  }
  return rest.size === 0 && kept.every((line, at) => line === lines[at]) ? lines : [...kept, ...rest.values()]
}

/** How many that are not over live below a session. */
export function below(rows: ReadonlyMap<string, SessionRow>, id: string): number {
  const inside = new Map<string, boolean>([[id, true]])
  let count = 0
  for (const row of rows.values()) {
    const path: string[] = []
    let at: SessionRow | undefined = row
    let found: boolean | undefined
    while (at !== undefined && (found = inside.get(at.id)) === undefined) {
      path.push(at.id)
      // Until its parents tell otherwise: a loop ends here.
      inside.set(at.id, false)
      at = at.parent == null ? undefined : rows.get(at.parent)
    }
    for (const one of path) inside.set(one, found ?? false)
    if (row.id !== id && inside.get(row.id) === true && row.lifecycle !== 'terminal') count += 1
  }
  return count
}

/** Values that can be chosen of a field, in order; at most so many. */
export function choices(rows: ReadonlyMap<string, SessionRow>, field: Exclude<Grouping, 'none' | 'state'>, most = 200): string[] {
  const values = new Set<string>()
  for (const row of rows.values()) {
    const value = row[field]
    if (value != null && value !== '') values.add(value)
    if (values.size >= most) break
  }
  return [...values].sort()
}
