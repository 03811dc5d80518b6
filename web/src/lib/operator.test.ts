import { describe, expect, it } from 'vitest'

import { operatorState, type Operated } from './operator'

const idle: Operated = { state: 'between_turn', lifecycle: 'idle' }

describe('FND-D2 the state a person acts on', () => {
  it.each<[string, Partial<Operated>, string]>([
    ['what the daemon says counts', { operator_state: 'ready_for_review', state: 'executing' }, 'ready_for_review'],
    ['a session at a gate does not read as working', { state: 'executing', lifecycle: 'running', active_runs: 1, attention: ['gate'] }, 'needs_answer'],
    ['a failed one does not read as between turns', { attention: ['failed'] }, 'failed'],
    ['one that was cut off waits for a decision', { state: 'interrupted', attention: ['uncertain'] }, 'needs_answer'],
    ['a turn that runs', { state: 'executing', lifecycle: 'running', active_runs: 1 }, 'working'],
    ['an end', { state: 'completed', lifecycle: 'terminal' }, 'done'],
    ['a failed end', { state: 'failed', lifecycle: 'terminal' }, 'failed'],
    ['nothing to do', {}, 'idle'],
  ])('%s', (_, of, state) => expect(operatorState({ ...idle, ...of })).toBe(state))
})
