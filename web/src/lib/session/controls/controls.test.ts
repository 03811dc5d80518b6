import { describe, expect, it } from 'vitest'

import type { Run, StateChange, Stop, StopReceipt, TreeNode } from '../../api/types'
import type { Event } from '../events'
import { load, save } from './draft'
import { ceiling } from '../../chart/scale'
import { line, segments, tools, totals, usages } from './drawing'
import { below, ladder } from './ladder'
import { delivery, moved, ways } from './queue'
import { expected } from './resume'

const by = { kind: 'operator', name: 'local' } as const

describe('the ladder of a stop', () => {
  const receipt = (over: Partial<StopReceipt>): StopReceipt => ({
    session: 's', state: 'executing', level: 1, scope: 'session', by, requested_at: '2026-01-01T00:00:00Z', steps: [], confirmed: false, withdrawn: false, ...over,
  })
  const stop = (level: 1 | 2 | 3): Stop => ({ level, requested_at: '2026-01-01T00:00:00Z', level_at: '2026-01-01T00:00:10Z', told: 0, by })
  const limits = { stop_graceful_ms: 30_000, stop_immediate_ms: 10_000 }
  const ten = Date.parse('2026-01-01T00:00:10Z')

  it.each([
    ['asked', receipt({}), stop(1), 'here ahead ahead', 'pending', ten + 30_000, 2, true],
    ['refused', receipt({ level: 2 }), stop(2), 'passed here ahead', 'pending', ten + 10_000, 3, true],
    ['an older receipt', receipt({ level: 1 }), stop(2), 'passed here ahead', 'pending', ten + 10_000, 3, true],
    ['an older session', receipt({ level: 2 }), stop(1), 'passed here ahead', 'pending', null, 3, true],
    ['ended, not confirmed', receipt({ level: 3 }), stop(3), 'passed passed here', 'pending', null, null, false],
    ['confirmed early', receipt({ confirmed: true }), stop(1), 'here ahead ahead', 'confirmed', null, null, false],
    ['taken back', receipt({ withdrawn: true }), null, 'here ahead ahead', 'withdrawn', null, null, false],
  ])('%s', (_, given, held, rungs, outcome, risesAt, next, takeBack) => {
    const seen = ladder(given, held, limits)
    expect(seen.rungs.map((rung) => rung.at).join(' ')).toBe(rungs)
    expect(seen).toMatchObject({ outcome, risesAt, next, takeBack })
  })

  it('rises at no known time when the limits are unknown', () => {
    expect(ladder(receipt({}), stop(1), {}).risesAt).toBeNull()
  })

  it('counts what has ended below', () => {
    const node = (lifecycle: string, ...children: unknown[]): TreeNode => ({ lifecycle, children }) as unknown as TreeNode
    const tree = node('running', node('terminal', node('terminal')), node('running'))
    expect(below(tree)).toEqual({ all: 3, ended: 2, more: false })
    expect(below(node('idle'))).toEqual({ all: 0, ended: 0, more: false })
  })
})

describe('the queue', () => {
  it.each([
    ['abc', 0, 1, 'bac'],
    ['abc', 0, 2, 'bca'],
    ['abc', 2, 0, 'cab'],
    ['abc', 1, 1, 'abc'],
    ['abc', 0, -1, 'abc'],
    ['abc', 2, 9, 'abc'],
    ['abc', 5, 0, 'abc'],
    ['', 0, 0, ''],
  ])('%s: %i to %i is %s', (list, from, to, then) => {
    expect(moved(list.split(''), from, to).join('')).toBe(then)
  })

  it.each([
    [true, null, 'queue', 'queue'],
    [true, null, 'steer', 'steer'],
    [true, 'asked', 'interrupt', 'interrupt'],
    [false, null, 'interrupt', 'queue'],
    [false, 'failed', 'steer', 'reject'],
    [false, 'failed', 'queue', 'queue'],
  ] as const)('running %s, paused %s, chosen %s: %s', (running, paused, chosen, sent) => {
    expect(delivery(ways(running, paused, null), chosen)).toBe(sent)
  })

  it('FND-D16 steering is offered only to agents that can, and says why not', () => {
    const why = 'It takes no message into a running turn.'
    expect(ways(true, null, why).find((way) => way.value === 'steer')).toMatchObject({ disabled: true, means: why })
    expect(delivery(ways(true, null, why), 'steer')).toBe('queue')
  })
})

describe('drafts', () => {
  const store = (held: Record<string, string> = {}) => ({
    held,
    getItem: (name: string) => held[name] ?? null,
    setItem: (name: string, value: string) => void (held[name] = value),
    removeItem: (name: string) => void Reflect.deleteProperty(held, name),
  })
  it('come back, each to its session, and go when they are empty', () => {
    const kept = store()
    save('a', { text: 'hello', guide: '', attached: [], turn: 't1' }, kept)
    expect(load('a', kept)).toEqual({ text: 'hello', guide: '', attached: [], turn: 't1' })
    expect(load('b', kept).text).toBe('')
    save('a', { text: '', guide: '', attached: [], turn: 't1' }, kept)
    expect(kept.held).toEqual({})
  })
  it.each(['nonsense', 'null', '7', '{"text":4}'])('are empty when the store holds %s', (text) => {
    expect(load('a', store({ 'lanyard.draft.a': text }))).toEqual({ text: '', guide: '', attached: [], turn: null })
  })
  it('are not lost with a store that refuses', () => {
    const full = { ...store(), setItem: () => { throw new Error('full') } }
    expect(() => save('a', { text: 'x', guide: '', attached: [], turn: null }, full)).not.toThrow()
  })
})

describe('the timeline', () => {
  const history: StateChange[] = [
    { state: 'beginning', at: '2026-01-01T00:00:00Z' },
    { state: 'executing', at: '2026-01-01T00:00:10Z' },
    { state: 'between_turn', at: '2026-01-01T00:00:40Z' },
  ]
  it('has parts that fill the whole', () => {
    const parts = segments(history, Date.parse('2026-01-01T00:01:40Z'), false)
    expect(parts.map((part) => [part.state, part.left, part.width])).toEqual([['beginning', 0, 10], ['executing', 10, 30], ['between_turn', 40, 60]])
    expect(totals(parts).map((one) => one.ms)).toEqual([60_000, 30_000, 10_000])
  })
  it('does not grow after the end', () => {
    const parts = segments(history, Date.parse('2027-01-01T00:00:00Z'), true)
    expect(parts.at(-1)?.width).toBeCloseTo(2.9, 1)
  })
  it.each([[[], 0], [history.slice(0, 1), 1]])('takes little', (given, length) => {
    expect(segments(given as StateChange[], 0, false)).toHaveLength(length as number)
  })
})

describe('charts', () => {
  const event = (type: string, data: unknown, at = '2026-01-01T00:00:00Z'): Event => ({ type, data, at }) as unknown as Event
  it('sums up tokens, also from the middle of a log', () => {
    expect(usages([event('usage.reported', { input_tokens: 5, output_tokens: 1 })], { input_tokens: 9, output_tokens: 1 })).toMatchObject([{ input: 9, output: 1 }])
    const seen = usages([event('usage.reported', { input_tokens: 5, output_tokens: 1 }), event('message', {}), event('usage.reported', { input_tokens: 2, output_tokens: 2, context_tokens: 9 })])
    expect(seen.map(({ input, output, context }) => [input, output, context])).toEqual([[5, 1, null], [7, 3, 9]])
  })
  it('counts calls per tool, with those that failed and a rest', () => {
    const called = (tool: string, call: string): Event => event('tool.called', { tool, call, arguments: null })
    const events = [called('b', '1'), called('a', '2'), called('b', '3'), event('tool.returned', { call: '3', is_error: true }), called('c', '4')]
    expect(tools(events)).toEqual([
      { name: 'b', count: 2, failed: 1, width: 100 },
      { name: 'a', count: 1, failed: 0, width: 50 },
      { name: 'c', count: 1, failed: 0, width: 50 },
    ])
    expect(tools(events, 2).map((bar) => [bar.name, bar.count])).toEqual([['b', 2], ['2 others', 2]])
  })
  it.each([[0, 1], [-3, 1], [Number.NaN, 1], [1, 1], [7, 10], [128, 200], [2_100, 5_000], [50_001, 100_000]])('%d fits under %d', (highest, top) => {
    expect(ceiling(highest)).toBe(top)
  })
  it('draws lines', () => {
    const box = { width: 100, height: 10 }
    expect(line([], 10, box)).toBe('')
    expect(line([{ at: 0, value: 5 }], 10, box)).toBe('0,5.0 100,5.0')
    expect(line([{ at: 0, value: 0 }, { at: 10, value: 10 }], 10, box)).toBe('0.0,10.0 100.0,0.0')
    const many = Array.from({ length: 5_000 }, (_, at) => ({ at, value: at }))
    expect(line(many, 5_000, box).split(' ').length).toBeLessThan(60)
  })
})

describe('what to expect of a resume', () => {
  const run = (over: { [name in keyof Run]?: unknown }): Run => ({ id: 'run_1', number: 1, phase: 'ended', cursor: 0, ...over }) as unknown as Run
  it.each([
    [null, null, null],
    [run({ phase: 'ready' }), 'n', 'exact'],
    [run({ phase: 'starting' }), 'n', null],
    [run({}), null, null],
    [run({ capabilities: { load: true } }), 'n', 'native'],
    [run({ capabilities: { resume: true } }), 'n', 'native'],
    [run({ capabilities: {} }), 'n', 'lost'],
  ])('case %#', (given, native, continuity) => {
    const why = continuity === 'lost' ? 'It cannot continue.' : null
    expect(expected(given, native, why).continuity).toBe(continuity)
    expect(expected(given, native, why).says.includes('It cannot continue.')).toBe(continuity === 'lost')
  })
})
