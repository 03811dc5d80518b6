import { describe, expect, it } from 'vitest'

import { base, bytes, count, dollars, short, span, took } from './format'

describe('times and sizes', () => {
  it.each([
    [0, '0s'],
    [59_999, '59s'],
    [61_000, '1m 1s'],
    [3_600_000 * 3 + 300_000, '3h 5m'],
    [86_400_000 * 2 + 3_600_000, '2d 1h'],
    [-5, '0s'],
  ])('%d ms is %s', (ms, text) => expect(span(ms)).toBe(text))

  it('says milliseconds where they matter', () => {
    expect([took(12.4), took(2_400), took(120_000)]).toEqual(['12 ms', '2.4 s', '2m 0s'])
  })

  it('shortens large numbers', () => {
    expect([count(999), count(9_999), count(12_345), count(1_250_000)]).toEqual(['999', '9,999', '12.3k', '1.3M'])
    expect([bytes(10), bytes(2_048), bytes(3_145_728)]).toEqual(['10 B', '2.0 KiB', '3.0 MiB'])
  })

  it('says dollars as the command line does', () => {
    expect([1, 9_780, 10_000, 421_000, 12_345_678].map(dollars)).toEqual(['$0.0001', '$0.0098', '$0.01', '$0.42', '$12.35'])
  })

  it('keeps the end of ids, where they differ', () => {
    expect(short('sess_01m7gaxvjqfz4besdnx2xjhyve')).toBe('sess…xjhyve')
    expect(base('/repos/shop/')).toBe('shop')
  })
})
