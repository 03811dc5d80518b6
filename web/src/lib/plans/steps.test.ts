import { describe, expect, it } from 'vitest'

import type { StepView } from '../api/types'
import { byPhase, told } from './steps'

const step = (number: number, phase: string | null): StepView => ({ number, phase, type: 'code', task: `step ${number}`, done: false, state: 'pending' })

describe('FND-M4: what agents plan', () => {
  it('is shown by phase, and steps of no phase come last', () => {
    const phases = [
      { name: 'design', current: false, steps: 1, done: 1 },
      { name: 'build', current: true, steps: 1, done: 0 },
    ]
    const shown = byPhase({ phases, steps: [step(1, 'design'), step(2, 'gone'), step(3, 'build'), step(4, null)] })
    expect(shown.map((phase) => [phase.name, phase.current, phase.steps.map((one) => one.number)])).toEqual([
      ['design', false, [1]],
      ['build', true, [3]],
      [null, false, [2, 4]],
    ])
  })

  it('is counted over steps and tasks', () => {
    const none = { done: 0, total: 0, steps: 0, steps_done: 0, tasks: 0, tasks_done: 0 }
    expect(told(none)).toBe('nothing to do yet')
    expect(told({ ...none, steps: 3, steps_done: 1 })).toBe('1 of 3 steps done')
    expect(told({ ...none, steps: 1, tasks: 2, tasks_done: 2 })).toBe('0 of 1 step, 2 of 2 tasks done')
  })
})
