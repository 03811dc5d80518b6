import { describe, expect, it } from 'vitest'

import type { FlowEnvelope } from '../api/types'
import { Teller, type Part } from './story'

let seq = 0
const event = (type: string, data: unknown = {}): FlowEnvelope => ({ seq: ++seq, at: '2026-01-01T00:00:00Z', flow: 'flow_1', actor: { kind: 'system', name: 'flow' }, type, data }) as unknown as FlowEnvelope

function created(states: string[], kind = 'phases'): FlowEnvelope {
  seq = 0
  return event('flow.created', { kind, phases: states.map((state, at) => ({ title: `Phase ${at + 1}`, state, text: '' })), title: 'T', plan: '/p', workspace: '/w', settings: {} })
}
const moved = (to: string): FlowEnvelope => event('flow.moved', { to })
const invoked = (step: number, role: string, more = {}): FlowEnvelope => event('flow.invoked', { step, role, session: `sess_${step}`, turn: 't', ...more })
const concluded = (conclusion: unknown): FlowEnvelope => event('flow.concluded', { conclusion, spent: { ms: 5, input_tokens: 10, output_tokens: 2 } })
const kinds = (parts: Part[]): string[] => parts.map((part) => (part.kind === 'turn' ? `${part.role} ${part.state}` : part.kind))

describe('the story of a flow', () => {
  it('puts everything into its phase, and skips what is skipped', () => {
    const teller = new Teller()
    const { phases } = teller.take([
      created(['skipped', 'open', 'skipped', 'open']),
      invoked(1, 'author'),
      concluded({ is: 'author', status: 'complete' }),
      moved('quality_check'),
      event('flow.check_begun', { place: 0, run: 'a' }),
      event('flow.check_ended', { result: { name: 'tests', passed: false, ms: 3, output: 'no' } }),
      event('flow.check_begun', { place: 1, run: 'b' }),
      event('flow.check_ended', { result: { name: 'lint', passed: true, ms: 3, output: '' } }),
      moved('review'),
      invoked(3, 'reviewer'),
      concluded({ is: 'verdict', readiness: 'ready' }),
      moved('phase_gate'),
      event('flow.phase_ended', { phase: 1, state: 'complete' }),
      moved('phase_complete'),
      moved('execute'),
      invoked(4, 'author'),
      event('flow.ended', { state: 'completed' }),
    ])
    expect(phases.map((phase) => phase.state)).toEqual(['skipped', 'complete', 'skipped', 'active'])
    expect(kinds(phases[1]?.parts ?? [])).toEqual(['author execute', 'checks', 'reviewer review'])
    expect(phases[1]?.parts[1]).toMatchObject({ results: [{ name: 'tests' }, { name: 'lint' }], place: null })
    expect(kinds(phases[3]?.parts ?? [])).toEqual(['author execute', 'note'])
  })

  it('has gates with their answers, and turns that were lost', () => {
    const teller = new Teller()
    teller.take([created(['open']), invoked(1, 'author'), moved('escalate'), event('flow.gate_opened', { gate: { id: 'gate_1', reason: 'why' } })])
    const told = teller.take([
      event('flow.continuation_withdrawn', { gate: 'gate_1', why: 'it is gone' }),
      event('flow.gate_answered', { gate: 'gate_1', choice: 'continue', guidance: 'softly', by: { kind: 'operator', name: 'ann' }, at: 'x' }),
      invoked(2, 'author', { guidance: 'softly' }),
      event('flow.retried', { reason: 'it crashed' }),
    ])
    const parts = told.phases[0]?.parts ?? []
    expect(kinds(parts)).toEqual(['author execute', 'gate', 'author execute', 'note'])
    expect(parts[1]).toMatchObject({ withdrawn: 'it is gone', answer: { by: 'ann', choice: 'continue', guidance: 'softly' } })
    expect(parts[2]).toMatchObject({ guidance: 'softly', over: true })
  })

  it('tells an event once, and knows nothing of new ones', () => {
    const teller = new Teller()
    const log = [created([], 'plan_review'), event('flow.sung'), invoked(1, 'reviewer')]
    teller.take(log)
    const told = teller.take(log)
    expect(told.phases).toHaveLength(1)
    expect(kinds(told.phases[0]?.parts ?? [])).toEqual(['reviewer review'])
    expect(teller.last).toBe(3)
  })
})
