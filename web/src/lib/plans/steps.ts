// The steps agents keep in a plan, as pages show them: by phase, with what each state looks like.
import type { PlanView, StepState, StepView } from '../api/types'
import { plural } from '../format'
import type { Tone } from '../states'

export const STEP_STATES: Record<StepState, { label: string; tone: Tone }> = {
  pending: { label: 'pending', tone: 'plain' },
  active: { label: 'active', tone: 'info' },
  done: { label: 'done', tone: 'ok' },
}

export interface PhaseSteps {
  /** Nothing for steps outside of the plan's phases. */
  name: string | null
  current: boolean
  steps: StepView[]
}

/** The phases in their order, each with its steps, then the steps that belong to none. */
export function byPhase(plan: Pick<PlanView, 'phases' | 'steps'>): PhaseSteps[] {
  const known = new Set(plan.phases.map((phase) => phase.name))
  const phases: PhaseSteps[] = plan.phases.map(({ name, current }) => ({ name, current, steps: plan.steps.filter((step) => step.phase === name) }))
  const others = plan.steps.filter((step) => step.phase == null || !known.has(step.phase))
  return others.length === 0 ? phases : [...phases, { name: null, current: false, steps: others }]
}

/** How far a plan is, in words. */
export function told(progress: PlanView['progress']): string {
  const parts = [
    progress.steps > 0 ? `${progress.steps_done} of ${plural(progress.steps, 'step')}` : '',
    progress.tasks > 0 ? `${progress.tasks_done} of ${plural(progress.tasks, 'task')}` : '',
  ].filter((part) => part !== '')
  return parts.length === 0 ? 'nothing to do yet' : `${parts.join(', ')} done`
}
