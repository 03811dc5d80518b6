import { expect, it } from 'vitest'

import { columnsOf } from './columns'
import { session } from './testing'

const glance = { steps: 0, steps_done: 0, files: 0, added: 0, removed: 0, usage: { input_tokens: 0, output_tokens: 0 } }
const names = (rows: Parameters<typeof columnsOf>[0], width: number): string[] => columnsOf(rows, width).map((column) => column.name)

it('FND-D4 shows the columns there is something for, as far as there is room', () => {
  expect(names([session('a')], 1_366)).toEqual(['title', 'state', 'activity', 'age'])
  const rows = [
    session('a', { glance: { ...glance, steps: 3 } }),
    session('b', { glance: { ...glance, files: 1, usage: { input_tokens: 1, output_tokens: 1, context_tokens: 9, cost_micros: 5 } } }),
  ]
  expect(names(rows, 1_366)).toEqual(['title', 'state', 'activity', 'plan', 'changes', 'cost', 'context', 'age'])
  expect(names(rows, 900)).toEqual(['title', 'state', 'activity', 'changes', 'age'])
})
