import { describe, expect, it } from 'vitest'

import type { SearchHit } from '../api/types'
import { hitPath, pieces, since, unfinished } from './hits'

const hit = (text: string, marks: [number, number][]): SearchHit => ({ session: 'sess_1', seq: 7, last_seq: 9, at: '2026-11-15T08:00:00Z', kind: 'message', snippet: { text, marks } })

describe('texts that were found', () => {
  it('are shown in pieces, counted in characters', () => {
    expect(pieces(hit('🎈 the Größe fits', [[6, 11]]).snippet)).toEqual([{ text: '🎈 the ', marked: false }, { text: 'Größe', marked: true }, { text: ' fits', marked: false }])
    expect(pieces(hit('all', [[0, 3]]).snippet)).toEqual([{ text: 'all', marked: true }])
    expect(pieces(hit('none', []).snippet)).toEqual([{ text: 'none', marked: false }])
    expect(pieces(hit('', []).snippet)).toEqual([])
  })
  it('are opened at their event with each word once', () =>
    expect(hitPath(hit('Login and login', [[0, 5], [10, 15]]))).toBe('/sessions/sess_1?at=7&mark=login'))
})

describe('what somebody means who still types', () => {
  it.each([
    ['log', 'log*'],
    ['fix log', 'fix log*'],
    ['lo', 'lo'],
    ['login ', 'login '],
    ['"fix log', '"fix log'],
    ['"fix" login', '"fix" login*'],
    ['fix agent:cla', 'fix agent:cla'],
    ['log*', 'log*'],
    ['parse_con', 'parse_con*'],
  ])('%j is %j', (text, query) => expect(unfinished(text)).toBe(query))
})

it('a span counts from now', () => {
  expect(since('', 0)).toBeNull()
  expect(since('day', Date.parse('2026-11-15T08:00:00Z'))).toBe('2026-11-14T08:00:00.000Z')
})
