// What can be done about notifications, and how what is filtered becomes requests.
import type { DeliveryState, Notification, NotificationBulk, NotificationEdit, NotificationKind, NotificationStatus, NotificationWhich, Severity } from '../api/types'
import type { Tone, TurnEnd } from '../states'

export const KINDS: Record<NotificationKind | TurnEnd, string> = {
  gate_waiting: 'Approval waits',
  suspected_orphan: 'Suspected orphan',
  tools_missing: 'MCP servers not reached',
  guidance_undelivered: 'Guidance undelivered',
  child_stopped: 'Child stopped',
  budget_spent: 'Budget spent',
  budget_warning: 'Budget nearly spent',
  limit_reached: 'Limit reached',
  limit_over: 'Limit over',
  flow_waiting: 'Flow waits',
  flow_failed: 'Flow failed',
  journal_large: 'Journal large',
  turn_finished: 'Turn finished',
  turn_failed: 'Turn failed',
  turn_refused: 'Turn refused',
  agent_crashed: 'Agent crashed',
  continuity_alert: 'Continuity alert',
  continuity_recovered: 'Continuity recovered',
}

export const SEVERITIES: Record<Severity, { label: string; tone: Tone }> = {
  info: { label: 'info', tone: 'info' },
  warning: { label: 'warning', tone: 'warn' },
  critical: { label: 'critical', tone: 'bad' },
}

export type Action = 'acknowledge' | 'snooze' | 'dismiss' | 'read' | 'renew'

export const LABELS: Record<Action, string> = { acknowledge: 'Acknowledge', snooze: 'Snooze', dismiss: 'Dismiss', read: 'Mark read', renew: 'Make it new again' }

/** What stands behind each status, by the table of docs/notifications.md. */
const NEXT: Record<NotificationStatus, readonly Action[]> = {
  new: ['read', 'acknowledge', 'snooze', 'dismiss'],
  read: ['acknowledge', 'snooze', 'dismiss', 'renew'],
  acknowledged: ['snooze', 'dismiss', 'renew'],
  snoozed: ['read', 'acknowledge', 'snooze', 'dismiss', 'renew'],
  dismissed: [],
}

const alert = (held: Pick<Notification, 'kind'>): boolean => held.kind === 'continuity_alert'

/** Everything that is possible. */
export const actions = (held: Pick<Notification, 'status'>): readonly Action[] => NEXT[held.status]

/** What is offered in the list: alerts are acknowledged, snoozed or dismissed, all others are read. */
export function offered(held: Pick<Notification, 'status' | 'kind'>): readonly Action[] {
  const usual: readonly Action[] = alert(held) ? ['acknowledge', 'snooze', 'dismiss'] : ['read']
  return actions(held).filter((one) => usual.includes(one))
}

export const SNOOZES = [
  { value: '30m', label: '30 minutes' },
  { value: '1h', label: '1 hour' },
  { value: 'tomorrow', label: 'Until tomorrow' },
] as const

/** All there is to do, as it is offered for one. */
export const EVERY: readonly { action: Action; snooze?: Snooze; label: string }[] = [
  { action: 'renew', label: 'Make it new again' },
  { action: 'read', label: 'Mark read' },
  { action: 'snooze', snooze: '30m', label: 'Snooze 30 min' },
  { action: 'snooze', snooze: '1h', label: 'Snooze 1 h' },
  { action: 'snooze', snooze: 'tomorrow', label: 'Snooze until tomorrow' },
  { action: 'acknowledge', label: 'Acknowledge' },
  { action: 'dismiss', label: 'Dismiss' },
]

export type Snooze = (typeof SNOOZES)[number]['value']

/** The morning after, by the clock of whoever looks. */
export function tomorrow(now: Date): Date {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1, 8)
}

/** `14:30`, and with the day where that is another. */
export function until(at: string, now = new Date()): string {
  const then = new Date(at)
  const time = then.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  return then.toDateString() === now.toDateString() ? time : `${then.toLocaleDateString([], { weekday: 'short' })} ${time}`
}

export function edit(action: Action, snooze: Snooze = '30m', now = new Date()): NotificationEdit {
  switch (action) {
    case 'acknowledge':
      return { status: 'acknowledged' }
    case 'dismiss':
      return { status: 'dismissed' }
    case 'read':
      return { status: 'read' }
    case 'renew':
      return { status: 'new' }
    case 'snooze':
      if (snooze === 'tomorrow') return { status: 'snoozed', until: tomorrow(now).toISOString() }
      return { status: 'snoozed', snooze_ms: snooze === '30m' ? 1_800_000 : 3_600_000 }
  }
}

interface NotificationFilter {
  /** `open`, `all`, or one status. */
  status: string
  kind: string
  severity: string
  session: string
}

const STATUSES: readonly string[] = ['new', 'read', 'acknowledged', 'snoozed', 'dismissed']

export function listQuery(filter: NotificationFilter): Record<string, string | boolean> {
  const query: Record<string, string | boolean> = {}
  if (STATUSES.includes(filter.status)) query.status = filter.status
  else if (filter.status !== 'all') query.open = true
  if (filter.kind in KINDS) query.kind = filter.kind
  if (filter.severity in SEVERITIES) query.severity = filter.severity
  if (filter.session !== '') query.session = filter.session
  return query
}

/** Which ones an action for all is about. What somebody put to sleep is not woken by it, unless that is what is shown. */
const TOUCHED: Record<Action, readonly NotificationStatus[]> = {
  read: ['new'],
  acknowledge: ['new', 'read'],
  snooze: ['new', 'read', 'acknowledged'],
  dismiss: ['new', 'read', 'acknowledged', 'snoozed'],
  renew: [],
}

/** One request for each status, so that what was changed is out of the next one's way. */
export function bulk(filter: NotificationFilter, action: Action, now = new Date()): NotificationBulk[] {
  const shown = STATUSES.includes(filter.status) ? [filter.status as NotificationStatus] : TOUCHED[action]
  const { kind, severity, session } = listQuery(filter)
  const rest = { ...(kind && { kind }), ...(severity && { severity }), ...(session && { session }) } as NotificationWhich
  return shown
    .filter((status) => NEXT[status].includes(action))
    .map((status) => ({ filter: { ...rest, status }, limit: 500, ...edit(action, '30m', now) }))
}

export function delivered(state: DeliveryState): { label: string; tone: Tone; at: string } {
  switch (state.name) {
    case 'delivered':
      return { label: 'delivered', tone: 'ok', at: state.at }
    case 'pending':
      return { label: 'next try', tone: 'info', at: state.due_at }
    case 'dropped':
      return { label: 'not sent: dismissed before', tone: 'plain', at: state.at }
    case 'dead':
      return { label: 'given up', tone: 'bad', at: state.at }
  }
}
