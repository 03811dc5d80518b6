import { describe, expect, it } from 'vitest'

import type { SessionRow } from '../api/types'
import { batches, below, changed, draftOf, filterOf, forgetting, linesOf, refusals, statusLine, tagsOf, tighter, wanted } from './asking'

const filter = (text = '') => filterOf(new URLSearchParams(text))

describe('a filter', () => {
  it.each([
    ['', '/memory', {}],
    ['q=json&store=nonsense&tags=a, b', '/memory', { query: 'json', tags: 'a,b' }],
    ['session=s&store=session', '/memory', { session: 's', store: 'session' }],
    ['session=s&sees=1&owner=me', '/sessions/s/memory', {}],
    ['sees=1', '/memory', {}],
  ])('%s', (text, route, query) => {
    const made = wanted(filter(text))
    const given = Object.fromEntries(Object.entries(made.query).filter(([, value]) => value !== ''))
    expect([made.route, given]).toEqual([route, query])
  })

  it.each([
    ['', [], null],
    ['tags=x y', ['m'], { tags: ['x', 'y'] }],
    ['q=word', ['m'], { ids: ['m'] }],
    ['q=word', [], null],
    ['scope=plan', ['m'], { ids: ['m'] }],
    ['session=s&sees=1', ['m'], { ids: ['m'] }],
    ['session=s&owner= ', [], { session: 's' }],
  ])('%s forgets', (text, ids, made) => expect(forgetting(filter(text), ids)).toEqual(made))
})

it('tags are words, each once', () => expect(tagsOf(' a, b  a\nc,')).toEqual(['a', 'b', 'c']))

describe('files', () => {
  it('have an entry on each line', () => expect(linesOf('{"a":1}\n\n{"a":2}\n')).toEqual({ entries: [{ a: 1 }, { a: 2 }] }))
  it('say which line is none', () => expect(linesOf('{}\nnope')).toMatchObject({ line: 2 }))
  it('go in parts', () => {
    expect(batches([1, 2, 3, 4, 5], 2).map((part) => part.length)).toEqual([2, 2, 1])
    expect(batches(['x'.repeat(50), 'y'.repeat(50)], 9, 60)).toHaveLength(2)
    expect(batches([])).toEqual([])
  })
})

describe('a policy', () => {
  const policy = { mode: 'session_only' as const, tags: ['b', 'a'] }
  it.each([
    [{}, null],
    [{ tags: 'a b' }, null],
    [{ mode: 'full' as const }, { mode: 'full' }],
    [{ session_memory: false, allow: 'x' }, { session_memory: false, allow: ['x'] }],
    [{ tags: '' }, { tags: [] }],
  ])('%o changes', (more, ask) => expect(changed(policy, { ...draftOf(policy), ...more })).toEqual(ask))

  it('that could not be read is always set', () => {
    const broken = { mode: 'off' as const, unreadable: 'what is it' }
    expect(changed(broken, draftOf(broken))).toEqual({ mode: 'off' })
  })

  it('is tighter or is not', () => expect([tighter('off', 'full'), tighter('full', 'full'), tighter('selective', 'session_only')]).toEqual([true, false, false]))
  it('says what it refused', () => expect(refusals({ session_only: 2, off: 0 })).toEqual([{ rule: 'session_only', count: 2, says: 'nothing might go into long-term memory' }]))
})

it('finds all below, also in a circle', () => {
  const row = (id: string, parent: string | null) => ({ id, parent }) as SessionRow
  const rows = new Map([row('a', 'c'), row('b', 'a'), row('c', 'b'), row('d', 'a'), row('e', null)].map((one) => [one.id, one]))
  expect(below(rows, 'a').map((one) => one.id)).toEqual(['b', 'd', 'c'])
})

it('tells of memory in a line', () => {
  const status = { mode: 'on' as const, session_entries: 1, long_term_entries: 2, refused: { off: 3 } }
  expect(statusLine(status)).toEqual(['1 entry in session memory', '2 entries in long-term memory', 'found by words', '3 writes refused since the start'])
})
