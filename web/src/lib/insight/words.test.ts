import { describe, expect, it } from 'vitest'

import type { InsightCounts, InsightReport, InsightRow } from '../api/types'
import { failed, named, said, seriesOf, zoneOffset } from './words'

const none: InsightCounts = { cost_micros: 0, input_tokens: 0, output_tokens: 0, turns: 0, turns_failed: 0, turn_ms: 0, calls: 0, calls_failed: 0, approvals: 0, approval_wait_ms: 0 }
const row = (name: string, costs: Record<number, number>): InsightRow => ({
  ...none,
  name,
  cost_micros: Object.values(costs).reduce((sum, cost) => sum + cost, 0),
  daily: Object.entries(costs).map(([index, cost_micros]) => ({ index: Number(index), cost_micros, tokens: 0, turns: 0, turn_ms: 0 })),
})
const report = (rows: InsightRow[], others: InsightRow | null = null): InsightReport => ({
  zone: 'UTC', by: 'agent', total: none, rows, others, days: ['2026-11-18', '2026-11-19'].map((day) => ({ ...none, day })),
})

describe('insight', () => {
  it('gives the largest groups a colour each, and the rest one together', () => {
    const many = Array.from({ length: 7 }, (_, at) => row(`a${at}`, { 1: 10 - at }))
    const series = seriesOf(report(many, row('', { 0: 100 })), 'cost')
    expect(series.map((one) => one.name)).toEqual(['a0', 'a1', 'a2', 'a3', 'a4', 'Others'])
    expect(series.at(-1)?.values).toEqual([100, 5 + 4])
    expect(new Set(series.map((one) => one.colour)).size).toBe(6)
  })

  it('shows no series for a group without anything', () => expect(seriesOf(report([row('a', {})]), 'cost')).toEqual([]))

  it('names what logs do not name', () => {
    expect(named('model', '')).toBe('model not told')
    expect(named('folder', '/home/ann/shop')).toBe('shop')
    expect(named('folder', '')).toBe('no folder')
  })

  it('says numbers by what they are', () => {
    expect([said('cost', 1_500_000), said('cost', 0), said('tokens', 12_000), said('time', 65_000)]).toEqual(['$1.50', '$0', '12.0k', '1m 5s'])
    expect([failed(3, 0, 'turn'), failed(3, 1, 'turn')]).toEqual(['3 turns', '3 turns, 1 failed'])
  })

  it('writes the offset of a clock', () => expect(zoneOffset()).toMatch(/^[+-]\d{2}:\d{2}$/))
})
