// Sessions for tests.
import type { SessionRow } from '../api/types'

const OLD = '2026-11-16T10:00:00Z'

/** A session; `id` is also its age: later letters are newer. */
export function session(id: string, more: Partial<SessionRow> = {}): SessionRow {
  return {
    id, title: `title-${id}`, agent: 'demo', state: 'idle', lifecycle: 'idle', lifecycle_state: 'idle', status: 'active', source: 'cli', owner: 'local',
    workspace: null, plan: null, parent: null, level: 0, turns: 1, archived: false, attention: [], memory_mode: 'full', active_connections: 0,
    active_runs: 0, created_at: OLD, since: OLD, last_activity_at: OLD, last_seq: 5, last_event_seq: 5,
    pending: { gates: 0, guidance: 0, inbox: 0, paused: false, stop_level: 0, in_call: false, running: false },
    ...more,
  } as SessionRow
}
