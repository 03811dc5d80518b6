// What needs a person, each thing once: the same trouble may be told by a session's row and by a notification.
import type { Attention, FlowGateEntry, GateEntry, GateList, Notification, NotificationPage, SessionRow } from '../api/types'
import type { TurnEnd } from '../states'
import { pressing } from './lines'

/** `notice` is the notification that tells of the same: it is snoozed in place of it. */
export type Need = { key: string; notice: Notification | undefined } & (
  | { kind: 'flow'; flow: FlowGateEntry }
  | { kind: 'gate'; gate: GateEntry; row: SessionRow | undefined }
  | { kind: 'session'; row: SessionRow; reasons: readonly Attention[] }
  | { kind: 'alert'; alert: Notification; row: SessionRow | undefined }
)

/** Since when something waits. */
export function since(need: Need): string {
  switch (need.kind) {
    case 'flow':
      return need.flow.gate.opened_at
    case 'gate':
      return need.gate.opened_at
    case 'session':
      return need.row.since
    case 'alert':
      return need.alert.raised_at
  }
}

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

export function needsOf(rows: ReadonlyMap<string, SessionRow>, gates: GateList | null, alerts: NotificationPage | null): Need[] {
  const all = alerts?.notifications ?? []
  const told = new Set<string>()
  /** The notification that tells of the same; it is not listed by itself. */
  const find = (is: (alert: Notification) => boolean): Notification | undefined => {
    const found = all.filter(is)
    for (const one of found) told.add(one.id)
    return found[0]
  }
  const flows = (gates?.flows ?? []).map((flow): Need => {
    const notice = find((alert) => alert.kind === 'flow_waiting' && (alert.subject === flow.flow || alert.subject === flow.gate.id))
    return { kind: 'flow', key: `flow:${flow.gate.id}`, flow, notice }
  })
  const asked = (gates?.gates ?? []).map((gate): Need => {
    const notice = find((alert) => alert.kind === 'gate_waiting' && alert.subject === gate.id)
    return { kind: 'gate', key: `gate:${gate.id}`, gate, row: rows.get(gate.session), notice }
  })
  const asking = new Set((gates?.gates ?? []).map((gate) => gate.session))
  const bySession = new Map<string, Notification[]>()
  for (const alert of all) if (alert.session != null) bySession.set(alert.session, [...(bySession.get(alert.session) ?? []), alert])

  const sessions: Need[] = []
  for (const row of rows.values()) {
    const own = (bySession.get(row.id) ?? []).filter((alert) => (row.attention as readonly string[]).includes(SAME[alert.kind] ?? ''))
    for (const alert of own) told.add(alert.id)
    // Its question is listed with its answers.
    const reasons = pressing(row).filter((reason) => reason !== 'gate' || !asking.has(row.id))
    if (reasons.length > 0) sessions.push({ kind: 'session', key: row.id, row, reasons, notice: own.find((alert) => (reasons as readonly string[]).includes(SAME[alert.kind] ?? '')) })
  }
  /** The lists of approvals and of sessions are newer than a notification about them: what they do not have is over. */
  const over = (alert: Notification): boolean => {
    if (alert.kind === 'gate_waiting' || alert.kind === 'flow_waiting') return gates !== null && !gates.truncated
    return SAME[alert.kind] !== undefined && alert.session != null && rows.has(alert.session)
  }
  const rest = all
    .filter((alert) => alert.status === 'new' && alert.over_at == null && !told.has(alert.id) && !over(alert))
    .map((alert): Need => ({ kind: 'alert', key: `alert:${alert.id}`, alert, row: alert.session == null ? undefined : rows.get(alert.session), notice: alert }))
  return [...flows, ...asked, ...sessions, ...rest]
    .filter((need) => need.notice?.status !== 'snoozed')
    .sort((a, b) => since(a).localeCompare(since(b)) || a.key.localeCompare(b.key))
}
