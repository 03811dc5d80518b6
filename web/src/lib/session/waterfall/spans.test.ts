import { describe, expect, it } from 'vitest'

import type { Event } from '../events'
import { SPANS_MAX, turnEvents, waterfall, type Span } from './spans'

const BEGAN = Date.parse('2026-11-19T10:00:00Z')
let seq = 0
/** An event so many milliseconds after the beginning of the turn. */
const at = (ms: number, type: string, data: object): Event =>
  ({ seq: (seq += 1), session: 'sess_1', at: new Date(BEGAN + ms).toISOString(), actor: { kind: 'system', name: 'agents' }, type, data }) as unknown as Event
const started = (turn = 'turn_1'): Event => at(0, 'turn.started', { turn, prompt: 'go' })
const finished = (ms: number): Event => at(ms, 'turn.finished', { turn: 'turn_1', outcome: 'completed' })
const called = (ms: number, call: string, tool = 'bash'): Event => at(ms, 'tool.called', { call, tool })
const returned = (ms: number, call: string, is_error = false): Event => at(ms, 'tool.returned', { call, is_error })
const told = (spans: readonly Span[]): string[] =>
  spans.map((span) => `${span.kind} ${span.name} ${span.from}-${span.to}${span.open ? ' open' : ''}${span.failed ? ' failed' : ''}${span.of > 1 ? ` x${span.of}` : ''}`)

describe('the spans of a turn', () => {
  it('are calls, waits, and the model between them', () => {
    const events = [
      started(), called(1_000, 'a', 'read'), returned(1_500, 'a'), called(2_000, 'b'), at(2_100, 'gate.opened', { gate: 'gate_1', title: 'Run npm test' }),
      at(5_100, 'gate.answered', { gate: 'gate_1', option: 'allow' }), returned(6_000, 'b', true), finished(8_000),
    ]
    const found = waterfall(events, 0)
    expect(told(found.spans)).toEqual([
      'model Model 0-1000', 'call read 1000-1500', 'model Model 1500-2000', 'call bash 2000-6000 failed', 'approval Run npm test 2100-5100', 'model Model 6000-8000',
    ])
    expect([found.length, found.ended, found.model, found.tools, found.waits, found.calls]).toEqual([8_000, true, 3_500, 4_500, 3_000, 2])
  })

  it('an unfinished call lasts to the end of the turn, or to now', () => {
    expect(told(waterfall([started(), called(500, 'a'), finished(900)], 0).spans)).toEqual(['model Model 0-500', 'call bash 500-900 open'])
    const running = waterfall([started(), called(500, 'a')], BEGAN + 3_000)
    expect([told(running.spans), running.ended, running.length]).toEqual([['model Model 0-500', 'call bash 500-3000 open'], false, 3_000])
  })

  it('calls at the same time cover their time once', () => {
    const found = waterfall([started(), called(0, 'a'), called(100, 'b'), returned(400, 'a'), returned(900, 'b'), finished(1_000)], 0)
    expect([found.tools, found.model]).toEqual([900, 100])
  })

  it('a limit that is waited for is a wait', () => {
    const found = waterfall([started(), at(100, 'turn.waiting', { turn: 'turn_1', limit: { kind: 'usage' } }), at(5_100, 'turn.continued', { turn: 'turn_1' }), finished(6_000)], 0)
    expect([found.waits, told(found.spans)[1]]).toEqual([5_000, 'limit usage limit 100-5100'])
  })

  it('calls that only came by have the time of their record', () => {
    const found = waterfall([started(), at(900, 'tool.relayed', { call: 'r', tool: 'fetch', took_ms: 300, is_error: false }), finished(1_000)], 0)
    expect(told(found.spans)).toEqual(['model Model 0-600', 'call fetch 600-900', 'model Model 900-1000'])
  })

  it('a return without a call and a call that is told twice change nothing', () => {
    const found = waterfall([started(), returned(10, 'x'), called(100, 'a'), called(150, 'a'), returned(200, 'a'), finished(300)], 0)
    expect([found.calls, told(found.spans)[1]]).toEqual([1, 'call bash 100-200'])
  })

  it('a thousand calls are folded, and all are counted', () => {
    const calls = Array.from({ length: 1_000 }, (_, nth) => [called(nth * 10, `c${nth}`, nth % 2 === 0 ? 'read' : 'bash'), returned(nth * 10 + 5, `c${nth}`, nth === 77)]).flat()
    const found = waterfall([started(), ...calls, finished(10_000)], 0)
    expect(found.calls).toBe(1_000)
    expect(found.spans.length).toBeLessThanOrEqual(SPANS_MAX)
    expect(found.spans.reduce((sum, span) => sum + span.of, 0)).toBe(1_000)
    expect(found.spans.filter((span) => span.failed).length).toBe(1)
    const alike = Array.from({ length: 1_000 }, (_, nth) => [called(nth * 10, `c${nth}`), returned(nth * 10 + 5, `c${nth}`)]).flat()
    expect(told(waterfall([started(), ...alike, finished(10_000)], 0).spans)).toEqual(['call bash 0-9995 x1000'])
  })

  it('belong to one turn of a log', () => {
    const log = [started('turn_0'), finished(1), started(), called(5, 'a'), finished(9), started('turn_2')]
    expect(turnEvents(log, 'turn_1').map((event) => event.type)).toEqual(['turn.started', 'tool.called', 'turn.finished'])
    expect(turnEvents(log, 'turn_9')).toEqual([])
    expect(waterfall([], 5).spans).toEqual([])
  })
})
