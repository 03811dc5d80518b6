// The columns of the list. A column without any data is left out, and the least important ones where there is little room.
import type { SessionRow } from '../api/types'
import type { SortBy } from './lines'

export type ColumnName = 'title' | 'state' | 'activity' | 'plan' | 'changes' | 'cost' | 'context' | 'age'

interface Column {
  name: ColumnName
  label: string
  means: string
  width: string
  sort: SortBy | null
  /** Left out below this width of the window, in pixels. */
  from: number
  /** Whether a session has it; a column that is always there has none. */
  has?: (row: SessionRow) => boolean
}

const ALL: readonly Column[] = [
  { name: 'title', label: 'Session', means: 'Title, agent and folder', width: 'minmax(180px, 1.4fr)', sort: 'title', from: 0 },
  { name: 'state', label: 'State', means: 'What it needs of you', width: '184px', sort: 'need', from: 0 },
  { name: 'activity', label: 'Activity', means: 'The running tool call, or the last sentence', width: 'minmax(140px, 1.3fr)', sort: null, from: 0 },
  { name: 'plan', label: 'Plan', means: 'Steps of its own plan that are done', width: '52px', sort: 'plan', from: 1_000, has: (row) => (row.glance?.steps ?? 0) > 0 },
  { name: 'changes', label: 'Changes', means: 'Lines added and removed, as its agent reported them', width: '98px', sort: 'changes', from: 820, has: (row) => (row.glance?.files ?? 0) > 0 },
  { name: 'cost', label: 'Cost', means: 'As its agent reported it', width: '62px', sort: 'cost', from: 1_100, has: (row) => (row.glance?.usage?.cost_micros ?? 0) > 0 },
  { name: 'context', label: 'Context', means: 'Tokens in the context of its agent', width: '62px', sort: 'context', from: 1_100, has: (row) => (row.glance?.usage?.context_tokens ?? 0) > 0 },
  { name: 'age', label: 'Age', means: 'Since the start of the running turn, or since the last activity', width: '72px', sort: 'activity', from: 0 },
]

export function columnsOf(rows: Iterable<SessionRow>, width: number): readonly Column[] {
  const missing = new Set(ALL.filter((column) => column.has !== undefined && width >= column.from))
  for (const row of rows) {
    if (missing.size === 0) break
    for (const column of missing) if (column.has?.(row)) missing.delete(column)
  }
  return ALL.filter((column) => width >= column.from && !missing.has(column))
}
