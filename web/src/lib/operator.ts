// The one state of a session that a person acts on. The daemon derives it; one that does not is read from what else it says.
import type { Attention, Lifecycle } from './api/types'
import type { Tone } from './states'

export type OperatorState = 'working' | 'needs_answer' | 'waiting_for_limit' | 'ready_for_review' | 'failed' | 'idle' | 'done'

export const OPERATOR_STATES: Record<OperatorState, { label: string; tone: Tone }> = {
  needs_answer: { label: 'Needs answer', tone: 'warn' },
  failed: { label: 'Failed', tone: 'bad' },
  ready_for_review: { label: 'Ready for review', tone: 'violet' },
  working: { label: 'Working', tone: 'ok' },
  waiting_for_limit: { label: 'Waiting for limit', tone: 'warn' },
  idle: { label: 'Idle', tone: 'plain' },
  done: { label: 'Done', tone: 'plain' },
}

export interface Operated {
  operator_state?: OperatorState
  unread?: boolean
  state: string
  lifecycle: Lifecycle
  attention?: readonly Attention[]
  active_runs?: number
}


/** What waits for a decision. */
const ANSWERED: readonly Attention[] = ['gate', 'limit_reached', 'uncertain', 'inbox_paused']

export function operatorState(of: Operated): OperatorState {
  if (of.operator_state !== undefined && of.operator_state in OPERATOR_STATES) return of.operator_state
  const reasons = of.attention ?? []
  if (of.state === 'failed' || reasons.includes('failed')) return 'failed'
  if (reasons.some((reason) => ANSWERED.includes(reason))) return 'needs_answer'
  if (of.lifecycle === 'terminal') return 'done'
  return of.state === 'executing' || (of.active_runs ?? 0) > 0 ? 'working' : 'idle'
}
