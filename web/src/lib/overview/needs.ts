// What needs a person, each thing once: the same trouble may be told by a session's row and by a notification.
import type { Attention, FlowGateEntry, GateEntry, GateList, Notification, NotificationPage, SessionRow } from '../api/types'
import type { TurnEnd } from '../states'
import { pressing } from './lines'

export type Need =
  | { kind: 'flow'; key: string; flow: FlowGateEntry }
  | { kind: 'gate'; key: string; gate: GateEntry; row: SessionRow | undefined }
  | { kind: 'session'; key: string; row: SessionRow; reasons: readonly Attention[] }
  | { kind: 'alert'; key: string; alert: Notification; row: SessionRow | undefined }

/** What a notification of a kind repeats, when the session says it itself. */
const SAME: Partial<Record<Notification['kind'] | TurnEnd, Attention | TurnEnd>> = {
  gate_waiting: 'gate',
  suspected_orphan: 'suspected_orphan',
  guidance_undelivered: 'guidance',
  turn_finished: 'turn_finished',
  turn_failed: 'turn_failed',
  turn_refused: 'turn_refused',
  agent_crashed: 'agent_crashed',
}
const SEVERITY: Record<Notification['severity'], number> = { critical: 0, warning: 1, info: 2 }
const PRESSING: Record<Attention | TurnEnd, number> = {
  gate: 0, suspected_orphan: 1, uncertain: 2, agent_crashed: 3, failed: 4, turn_failed: 5, turn_refused: 6, inbox_paused: 7, turn_finished: 8, guidance: 9, stopping: 10,
}

export function needsOf(rows: ReadonlyMap<string, SessionRow>, gates: GateList | null, alerts: NotificationPage | null): Need[] {
  const flows: Need[] = (gates?.flows ?? [])
    .toSorted((a, b) => a.gate.opened_at.localeCompare(b.gate.opened_at))
    .map((flow) => ({ kind: 'flow', key: `flow:${flow.gate.id}`, flow }))
  const asked: Need[] = (gates?.gates ?? [])
    .toSorted((a, b) => a.opened_at.localeCompare(b.opened_at))
    .map((gate) => ({ kind: 'gate', key: `gate:${gate.id}`, gate, row: rows.get(gate.session) }))
  const asking = new Set((gates?.gates ?? []).map((gate) => gate.session))

  const sessions: Extract<Need, { kind: 'session' }>[] = []
  for (const row of rows.values()) {
    // Its question stands above, with its answers.
    const reasons = pressing(row).filter((reason) => reason !== 'gate' || !asking.has(row.id))
    if (reasons.length > 0) sessions.push({ kind: 'session', key: row.id, row, reasons })
  }
  sessions.sort((a, b) => rank(a.reasons) - rank(b.reasons) || b.row.last_activity_at.localeCompare(a.row.last_activity_at))

  const subjects = new Set([...(gates?.gates ?? []).map((gate) => gate.id), ...(gates?.flows ?? []).flatMap((flow) => [flow.flow, flow.gate.id])])
  const told: Need[] = (alerts?.notifications ?? [])
    .filter((alert) => alert.status === 'new' && alert.over_at == null && !repeats(alert, rows, subjects))
    .toSorted((a, b) => SEVERITY[a.severity] - SEVERITY[b.severity] || b.raised_at.localeCompare(a.raised_at))
    .map((alert) => ({ kind: 'alert', key: `alert:${alert.id}`, alert, row: alert.session == null ? undefined : rows.get(alert.session) }))
  return [...flows, ...asked, ...sessions, ...told]
}

function rank(reasons: readonly Attention[]): number {
  return Math.min(...reasons.map((reason) => PRESSING[reason]))
}

function repeats(alert: Notification, rows: ReadonlyMap<string, SessionRow>, subjects: ReadonlySet<string>): boolean {
  if ((alert.kind === 'gate_waiting' || alert.kind === 'flow_waiting') && alert.subject != null && subjects.has(alert.subject)) return true
  const same = SAME[alert.kind]
  return same !== undefined && alert.session != null && ((rows.get(alert.session)?.attention as readonly string[] | undefined)?.includes(same) ?? false)
}
