import { expect, test } from 'vitest'

import type { FlowGate, GateOption } from '../api/types'
import { offersOf, offersOfFlow } from './choices'

const continuation = { session: 's', resume_state: 'execute', role: 'author' } as unknown as FlowGate['continue_session']

test.each<[string, Pick<FlowGate, 'kind' | 'continue_session'>, string]>([
  ['an escalation whose session can go on', { kind: 'escalation', continue_session: continuation }, 'continue_session* continue approve abort'],
  ['one whose session cannot', { kind: 'escalation' }, 'continue* approve abort'],
  ['corrections', { kind: 'review', continue_session: null }, 'continue* approve abort'],
  ['a phase that is ready', { kind: 'phase', continue_session: continuation }, 'continue_session continue approve* abort'],
])('%s', (_, gate, shown) => {
  const offers = offersOfFlow(gate)
  expect(offers.map((offer) => offer.id + (offer.kind === 'primary' ? '*' : '')).join(' ')).toBe(shown)
  expect(offers.filter((offer) => offer.words).every((offer) => offer.id.startsWith('continue'))).toBe(true)
})

test('options are offered as they came, and one yes stands out', () => {
  const option = (kind: GateOption['kind']): GateOption => ({ id: kind, name: kind, kind })
  const kinds = (options: GateOption[]): string => offersOf(options).map((offer) => offer.kind).join(' ')
  expect(kinds([option('allow_always'), option('allow_once'), option('reject_once')])).toBe('plain primary danger')
  expect(kinds([option('allow_always'), option('reject_always')])).toBe('primary danger')
  expect(kinds([option('other'), option('other')])).toBe('plain plain')
})
