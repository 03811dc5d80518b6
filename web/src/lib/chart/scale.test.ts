import { describe, expect, it } from 'vitest'

import { ceiling, dayLabel, dayTicks, levels, pieces, stacked, timeTicks } from './scale'

describe('a scale', () => {
  it.each([[0, 1], [0.03, 0.05], [7, 10], [11, 20], [480, 500], [1_000, 1_000]])('%d fits below %d', (highest, top) => expect(ceiling(highest)).toBeCloseTo(top))
  it('has evenly spaced levels', () => expect(levels(20)).toEqual([0, 5, 10, 15, 20]))
  it('names days', () => expect(dayLabel('2026-11-09')).toBe('9 Nov'))

  it('shows as many days as have room, and always the last', () => {
    const days = Array.from({ length: 30 }, (_, at) => `2026-11-${String(at + 1).padStart(2, '0')}`)
    const ticks = dayTicks(days, 6)
    expect(ticks.map((tick) => tick.label)).toEqual(['5 Nov', '10 Nov', '15 Nov', '20 Nov', '25 Nov', '30 Nov'])
    expect(ticks.at(-1)?.at).toBeCloseTo(29.5 / 30)
    expect(dayTicks(['2026-11-19'], 6)).toEqual([{ at: 0.5, label: '19 Nov' }])
  })

  it('puts times on whole hours, and on days over a week', () => {
    const from = new Date(2026, 10, 19, 8, 20).getTime()
    const hours = timeTicks(from, from + 6 * 3_600_000, 6)
    expect(hours.map((tick) => tick.label)).toEqual(['09:00', '10:00', '11:00', '12:00', '13:00', '14:00'])
    expect(hours[0]?.at).toBeCloseTo(40 / 360)
    const week = timeTicks(from, from + 7 * 86_400_000, 8)
    expect(week.map((tick) => tick.label)).toEqual(['20 Nov', '21 Nov', '22 Nov', '23 Nov', '24 Nov', '25 Nov', '26 Nov'])
  })
})

describe('what is drawn', () => {
  it('a missing value interrupts a line', () => {
    const found = pieces([{ at: 0, value: 1 }, { at: 0.25, value: 0.5 }, { at: 0.5, value: null }, { at: 1, value: 2 }], 1)
    expect(found).toEqual([[{ x: 0, y: 0 }, { x: 0.25, y: 0.5 }], [{ x: 1, y: 0 }]])
  })

  it('bars stand on each other, and nothing is drawn for nothing', () =>
    expect(stacked([3, 0, 2])).toEqual([{ series: 0, from: 0, to: 3 }, { series: 2, from: 3, to: 5 }]))
})
