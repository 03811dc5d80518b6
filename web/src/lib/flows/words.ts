// What flows read and look like.
import type { Choice, FlowState, FlowView, PhaseState, Readiness } from '../api/types'
import { count, dollars } from '../format'
import type { Tone } from '../states'

export const FLOW_STATES: Record<FlowState, { label: string; tone: Tone; means: string }> = {
  execute: { label: 'authoring', tone: 'info', means: 'the author works' },
  quality_check: { label: 'checking', tone: 'info', means: 'the quality commands run' },
  quality_retry: { label: 'mending checks', tone: 'info', means: 'the author mends what the checks found' },
  review: { label: 'reviewing', tone: 'violet', means: 'the reviewer judges' },
  review_gate: { label: 'waits: corrections', tone: 'warn', means: 'a person decides about corrections' },
  auto_fix: { label: 'correcting', tone: 'info', means: 'the author makes the corrections' },
  phase_gate: { label: 'phase ready', tone: 'warn', means: 'a phase is ready' },
  phase_complete: { label: 'phase complete', tone: 'ok', means: 'the next phase begins' },
  escalate: { label: 'needs a person', tone: 'warn', means: 'a person decides' },
  aborted: { label: 'aborted', tone: 'bad', means: 'it was ended; it can be taken up again' },
  completed: { label: 'completed', tone: 'ok', means: 'all phases are done' },
  approved: { label: 'approved', tone: 'ok', means: 'the plan was approved' },
}

export const PHASES: Record<PhaseState, { label: string; tone: Tone }> = {
  open: { label: 'open', tone: 'plain' },
  active: { label: 'at work', tone: 'info' },
  complete: { label: 'complete', tone: 'ok' },
  skipped: { label: 'skipped', tone: 'plain' },
  overridden: { label: 'overridden', tone: 'warn' },
}

export const READINESS: Record<Readiness, { label: string; tone: Tone }> = {
  ready: { label: 'ready', tone: 'ok' },
  ready_with_corrections: { label: 'ready with corrections', tone: 'warn' },
  not_ready: { label: 'not ready', tone: 'bad' },
}

export const CHOICES: Record<Choice, string> = {
  continue_session: 'continue the same session',
  continue: 'fix it in a new session',
  approve: 'let it pass as it is',
  abort: 'abort the flow',
}

export const over = (flow: FlowView): boolean => ['aborted', 'completed', 'approved'].includes(flow.state)
export const waits = (flow: FlowView): boolean => flow.gate != null && flow.gate.answered == null && !over(flow)

/** `2/3`, of those that are worked at. */
export function place(flow: FlowView): string {
  if (flow.kind === 'plan_review') return ''
  return `${Math.min(flow.phase + 1, flow.phases.length)}/${flow.phases.length}`
}

export function tokens(spent?: { input_tokens?: number; output_tokens?: number; cost_micros?: number } | null): string {
  const [into, out] = [spent?.input_tokens ?? 0, spent?.output_tokens ?? 0]
  const cost = spent?.cost_micros ? dollars(spent.cost_micros) : ''
  return [into + out === 0 ? '' : `${count(into)} tokens in, ${count(out)} out`, cost].filter(Boolean).join(', ')
}
