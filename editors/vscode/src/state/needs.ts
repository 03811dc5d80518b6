// What waits for a person: approvals of agents, approvals of flows, notifications.
import type { FlowGateEntry, GateEntry, GateList, GateOption, Notification, Choice } from '../api/schema.gen'
import { elapsed, oneLine, shortId } from './words'

export type Need =
  | { kind: 'approval'; id: string; label: string; about: string; gate: GateEntry }
  | { kind: 'flow'; id: string; label: string; about: string; entry: FlowGateEntry }
  | { kind: 'notification'; id: string; label: string; about: string; notification: Notification }

/** Notifications of what is shown as an approval. */
const OF_APPROVALS: ReadonlySet<string> = new Set(['gate_waiting', 'flow_waiting'])

/** Approvals first, the oldest on top; then notifications that nobody has read. */
export function needsOf(gates: GateList | null, notifications: readonly Notification[], now: number): Need[] {
  const approvals = (gates?.gates ?? []).map((gate): [string, Need] => [gate.opened_at, { kind: 'approval', id: gate.id, label: oneLine(gate.title), about: `${gateOwner(gate)} · ${elapsed(gate.opened_at, now)}`, gate }])
  const flows = (gates?.flows ?? []).map((entry): [string, Need] => [entry.gate.opened_at, { kind: 'flow', id: entry.gate.id, label: oneLine(entry.gate.reason), about: `${oneLine(entry.title, 40)} · ${elapsed(entry.gate.opened_at, now)}`, entry }])
  const open = [...approvals, ...flows].sort(([a], [b]) => a.localeCompare(b)).map(([, need]) => need)
  // An approval has a notification of its own, which may arrive before it; only the approval is shown.
  const others = notifications.filter((one) => one.status === 'new' && !OF_APPROVALS.has(one.kind))
  return [...open, ...others.map((notification): Need => ({ kind: 'notification', id: notification.id, label: oneLine(notification.title), about: elapsed(notification.raised_at, now), notification }))]
}

const gateOwner = (gate: GateEntry): string => oneLine(gate.session_title ?? '', 40) || `session ${shortId(gate.session)}`

/** The mildest yes and the mildest no; undefined where the agent offers no such option. */
export function allowOf(options: readonly GateOption[]): GateOption | undefined {
  return options.find((option) => option.kind === 'allow_once') ?? options.find((option) => option.kind === 'allow_always')
}

export function denyOf(options: readonly GateOption[]): GateOption | undefined {
  return options.find((option) => option.kind === 'reject_once') ?? options.find((option) => option.kind === 'reject_always')
}

/** A question without a plain yes and no is answered from a list. */
export const isYesNo = (options: readonly GateOption[]): boolean => allowOf(options) !== undefined && denyOf(options) !== undefined

export interface FlowOffer {
  choice: Choice
  label: string
  /** Whether text for the agent may go with it. */
  words: boolean
}

export function flowOffers(entry: FlowGateEntry): FlowOffer[] {
  const { kind, continue_session: same } = entry.gate
  const anew = { escalation: 'Fix it in a new session', review: 'Make the corrections', phase: 'Change something first' }[kind]
  const offers: FlowOffer[] = [
    { choice: 'continue', label: anew, words: true },
    { choice: 'approve', label: kind === 'phase' ? 'Approve the phase' : 'Override: let it pass as it is', words: false },
    { choice: 'abort', label: 'Abort the flow', words: false },
  ]
  if (same != null) offers.unshift({ choice: 'continue_session', label: 'Continue the session', words: true })
  return offers
}

/** Refusals that say that there is nothing left to answer. */
const SETTLED: ReadonlySet<string> = new Set(['gate_already_answered', 'gate_answered', 'gate_void', 'gate_not_open', 'gate_not_found', 'flow_ended', 'session_ended', 'session_deleted', 'session_not_found'])

export const isSettled = (code: string): boolean => SETTLED.has(code)
