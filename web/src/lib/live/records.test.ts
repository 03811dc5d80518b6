import { beforeEach, expect, it, vi } from 'vitest'

import { records } from './records.svelte'

beforeEach(() => {
  vi.stubGlobal('document', { visibilityState: 'visible' })
  vi.stubGlobal('requestAnimationFrame', (run: () => void) => void run())
})

it('counts a change of its kind alone', () => {
  const before = { ...records.seen }
  records.apply({ type: 'task.started', kind: 'task' })
  expect(records.seen).toEqual({ ...before, task: before.task + 1 })
})

it('counts everything after a connection was lost, and nothing for frames that are no change', () => {
  const before = { ...records.seen }
  for (const type of ['ready', 'heartbeat', 'goodbye', 'approvals']) records.apply({ type })
  expect(records.seen).toEqual(before)
  records.apply({ type: 'connected' })
  for (const [kind, count] of Object.entries(before)) expect(records.seen).toHaveProperty(kind, count + 1)
})

it('draws many changes once', () => {
  const drawn: (() => void)[] = []
  vi.stubGlobal('requestAnimationFrame', (run: () => void) => void drawn.push(run))
  const before = records.seen.flow
  for (let change = 0; change < 100; change += 1) records.apply({ type: 'flow.stepped', kind: 'flow' })
  expect(drawn).toHaveLength(1)
  drawn[0]?.()
  expect(records.seen.flow).toBe(before + 1)
})
