// What can be done about a need: each act is a button. Texts that name commands of a terminal are shown without them.
import { patch, post } from '../api/client'
import type { Notification, SessionRow } from '../api/types'
import { edit } from '../notifications/handling'
import type { Need } from '../overview/needs'
import { sessionPath } from '../router.svelte'

export type Listed = Extract<Need, { kind: 'session' | 'alert' }>

export interface InboxAct {
  /** Of its kind the only one: by it tests and keys find it. */
  name: 'done' | 'resume' | 'go' | 'archive'
  label: string
  title: string
  run: () => Promise<unknown>
}

const ENDS: readonly string[] = ['turn_finished', 'turn_failed', 'turn_refused', 'agent_crashed']

/** Where a press on it leads. */
export function pathOf(need: Listed): string {
  if (need.row) return sessionPath(need.row.id)
  const { alert } = need as Extract<Listed, { kind: 'alert' }>
  if (alert.session != null) return sessionPath(alert.session)
  if (alert.subject?.startsWith('flow_')) return `/flows/${encodeURIComponent(alert.subject)}`
  return alert.kind.startsWith('continuity') ? '/health' : '/notifications'
}

export function actsOf(need: Listed): readonly InboxAct[] {
  if (need.kind === 'alert') {
    return [{ name: 'done', label: 'Done', title: 'Dismisses the notification', run: () => patch(`/notifications/${need.alert.id}`, edit('dismiss')) }]
  }
  const { row } = need
  const route = sessionPath(row.id)
  const reasons: readonly string[] = need.reasons
  const acts: InboxAct[] = []
  if (reasons.includes('limit_reached')) acts.push({ name: 'resume', label: 'Go on now', title: 'The turn goes on without waiting for the limit', run: () => post(`${route}/resume`) })
  if (reasons.includes('inbox_paused')) acts.push({ name: 'go', label: 'Resume queue', title: 'The next message in the queue starts', run: () => post(`${route}/inbox/go`) })
  if (reasons.includes('agent_crashed') || reasons.includes('uncertain')) acts.push({ name: 'resume', label: 'Resume', title: 'Starts the agent again with its conversation', run: () => post(`${route}/resume`) })
  if (reasons.some((reason) => ENDS.includes(reason))) acts.push({ name: 'done', label: 'Done', title: 'Marks the end of the turn as seen; the session stays as it is', run: () => seen(row) })
  else if (reasons.includes('failed')) acts.push({ name: 'archive', label: 'Archive', title: 'Takes the session out of the lists; nothing is deleted', run: () => post(`${route}/archive`) })
  return acts
}

const seen = (row: SessionRow): Promise<unknown> => post(`${sessionPath(row.id)}/seen`, { seq: row.last_seq })

/** An hour without it; null for what cannot be snoozed. */
export function snooze(notice: Notification | undefined): (() => Promise<unknown>) | null {
  return notice === undefined ? null : () => patch(`/notifications/${notice.id}`, edit('snooze', '1h'))
}

/** A text without the sentences that name commands: here there are buttons. */
export function withoutCommands(text: string): string {
  return text
    .split(/(?<=[.;!?])\s+/)
    .filter((sentence) => !/`lanyard\b/.test(sentence) && !/^or `/.test(sentence))
    .join(' ')
    .replace(/;$/, '.')
}
