import { afterEach, beforeEach, expect, it, vi } from 'vitest'

import type { SessionDetail } from '../api/types'
import { Details } from './details.svelte'
import { session } from './testing'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const running = { state: 'executing', lifecycle: 'running' } as const

it('asks two at once, each at most every two seconds and only after something happened', async () => {
  const asked: string[] = []
  const waiting: (() => void)[] = []
  const details = new Details((id) => {
    asked.push(id)
    return new Promise((done) => waiting.push(() => done({ id } as SessionDetail)))
  })
  const answer = async (): Promise<void> => {
    for (const done of waiting.splice(0)) done()
    await vi.advanceTimersByTimeAsync(0)
  }
  const rows = ['a', 'b', 'c'].map((id) => session(id, running))
  details.want(rows)
  expect(asked).toEqual(['a', 'b'])
  await answer()
  expect(asked).toEqual(['a', 'b', 'c'])
  await answer()
  details.want(rows)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(asked).toEqual(['a', 'b', 'c'])
  expect([...details.shown.keys()]).toEqual(['a', 'b', 'c'])

  details.want([session('a', { ...running, last_seq: 6 })])
  details.want([session('a', { ...running, last_seq: 7 })])
  expect(asked.slice(3)).toEqual(['a'])
  await answer()
  expect(asked.slice(3)).toEqual(['a'])
  await vi.advanceTimersByTimeAsync(2_000)
  expect(asked.slice(3)).toEqual(['a', 'a'])
  details.stop()
})

it('asks for resting ones only once somebody looks, and never for new ones', async () => {
  const asked: string[] = []
  const details = new Details((id) => {
    asked.push(id)
    return Promise.reject(new Error('gone'))
  })
  details.want([session('a'), session('new', { last_seq: 1 })])
  await vi.advanceTimersByTimeAsync(300)
  details.want([session('b')])
  await vi.advanceTimersByTimeAsync(300)
  expect(asked).toEqual([])
  await vi.advanceTimersByTimeAsync(100)
  expect(asked).toEqual(['b'])
  await vi.advanceTimersByTimeAsync(5_000)
  expect(asked).toEqual(['b'])
  details.stop()
})
