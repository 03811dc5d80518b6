// What can be answered, and what comes of it.
import type { Choice, FlowGate, FlowGateKind, GateOption } from '../api/types'

export interface Offer {
  id: string
  label: string
  /** What it does, in a few words. */
  does: string
  kind: 'plain' | 'primary' | 'danger'
  /** Whether words for the agent may go with it. */
  words: boolean
}

const DOES: Record<GateOption['kind'], string> = {
  allow_once: 'this time',
  allow_always: 'and do not ask again',
  reject_once: 'this time',
  reject_always: 'and do not ask again',
  other: '',
}

export function offersOf(options: readonly GateOption[]): Offer[] {
  // The gentlest way to say yes is the one that stands out.
  const first = options.find((option) => option.kind === 'allow_once') ?? options.find((option) => option.kind === 'allow_always')
  return options.map((option) => ({
    id: option.id,
    label: option.name,
    does: DOES[option.kind],
    kind: option === first ? 'primary' : option.kind.startsWith('reject') ? 'danger' : 'plain',
    words: true,
  }))
}

const ALL: readonly Choice[] = ['continue_session', 'continue', 'approve', 'abort']

const ANEW: Record<FlowGateKind, [label: string, does: string]> = {
  escalation: ['Fix it anew', 'fixes it in a new session'],
  review: ['Make the corrections', 'lets the author make these corrections'],
  phase: ['Change something', 'has the author change something first'],
}

function called(choice: Choice, kind: FlowGateKind): [label: string, does: string] {
  switch (choice) {
    case 'continue_session':
      return ['Continue the session', 'goes on in the same session, which keeps everything it knows']
    case 'continue':
      return ANEW[kind]
    case 'approve':
      return kind === 'phase' ? ['Approve the phase', 'goes on with the next'] : ['Override', 'lets it pass as it is']
    case 'abort':
      return ['Abort the flow', 'ends it; it can be taken up again']
  }
}

export const choiceLabel = (choice: Choice, kind: FlowGateKind): string => called(choice, kind)[0]

/** Going on with the session is offered only where the flow put it. */
export function offersOfFlow(gate: Pick<FlowGate, 'kind' | 'continue_session'>): Offer[] {
  const offered = ALL.filter((choice) => choice !== 'continue_session' || gate.continue_session != null)
  const first = gate.kind === 'phase' ? 'approve' : offered[0]
  return offered.map((choice) => {
    const [label, does] = called(choice, gate.kind)
    return {
      id: choice,
      label,
      does,
      kind: choice === first ? 'primary' : choice === 'abort' ? 'danger' : 'plain',
      words: choice === 'continue_session' || choice === 'continue',
    }
  })
}

/** Refusals that say that there is nothing left to answer. */
const SETTLED = new Set(['gate_already_answered', 'gate_answered', 'gate_void', 'gate_not_open', 'gate_not_found', 'flow_ended', 'session_ended', 'session_deleted', 'session_not_found'])

export const isSettled = (code: string): boolean => SETTLED.has(code)
