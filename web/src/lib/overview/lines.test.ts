import { describe, expect, it } from 'vitest'

import type { SessionRow } from '../api/types'
import { arrange, below, choices, costSince, EVERYTHING, LINGER_MS, steady, tally, type Line, type Wanted } from './lines'
import { session } from './testing'

const NOW = Date.parse('2026-11-16T12:00:00Z')

const over = { state: 'completed', lifecycle: 'terminal' } as const
const book = (rows: SessionRow[]): Map<string, SessionRow> => new Map(rows.map((row) => [row.id, row]))

/** `a`, ` b` for a child, `(a)` for one that is only there for what is below it, `a+2` for two folded away, `[g 3]` for a group. */
function drawn(lines: readonly Line[]): string[] {
  return lines.map((line) => {
    if (line.kind === 'group') return `[${line.label} ${line.count}]`
    const name = line.context ? `(${line.row.id})` : line.row.id
    return ' '.repeat(line.depth) + name + (line.folded ? `+${line.below}${line.urgent ? '!' : ''}` : '')
  })
}

function shown(rows: SessionRow[], wanted: Partial<Wanted> = {}, folded: string[] = []): string[] {
  return drawn(arrange(book(rows), { ...EVERYTHING, ...wanted }, new Set(folded), NOW).lines)
}

describe('families', () => {
  const family = [session('a'), session('b', { parent: 'a' }), session('c', { parent: 'a' }), session('d', { parent: 'b' })]

  it('stand below their parents in whatever order they came', () => {
    const expected = ['a', ' b', '  d', ' c']
    expect(shown(family)).toEqual(expected)
    expect(shown(family.toReversed())).toEqual(expected)
  })

  it.each<[string, SessionRow[], string[]]>([
    ['a parent that is not there', [session('b', { parent: 'gone' })], ['b']],
    ['itself as parent', [session('a', { parent: 'a' })], ['a']],
    ['a loop of two', [session('a', { parent: 'b' }), session('b', { parent: 'a' })], ['a', ' b']],
    ['a tail that leads into a loop', [session('t', { parent: 'a' }), session('a', { parent: 'b' }), session('b', { parent: 'a' })], ['a', ' b', ' t']],
  ])('%s', (_what, rows, expected) => {
    expect(shown(rows)).toEqual(expected)
  })

  it('fold, and tell what is hidden', () => {
    const urgent = [...family, session('e', { parent: 'd', attention: ['gate'] })]
    expect(shown(urgent, {}, ['b'])).toEqual(['a', ' b+2!', ' c'])
    expect(shown(family, {}, ['a'])).toEqual(['a+3'])
    expect(shown(family, {}, ['d'])).toEqual(['a', ' b', '  d', ' c'])
  })

  it('keep those a match hangs from', () => {
    expect(shown(family, { text: 'title-d' })).toEqual(['(a)', ' (b)', '  d'])
    expect(arrange(book(family), { ...EVERYTHING, text: 'title-d' }, new Set(), NOW).matches).toBe(1)
  })
})

describe('order', () => {
  it('puts what needs somebody first, then what runs, then the newest', () => {
    const rows = [
      session('a', { ...over, since: new Date(NOW).toISOString() }),
      session('b'),
      session('c', { last_activity_at: '2026-11-16T11:00:00Z' }),
      session('d', { state: 'executing', lifecycle: 'running' }),
      session('e', { state: 'failed', lifecycle: 'terminal', attention: ['failed'] }),
      session('f'),
    ]
    expect(shown(rows)).toEqual(['e', 'd', 'c', 'f', 'b', 'a'])
  })

  it('brings a family up by its most pressing member, and not by a stop somebody asked for', () => {
    const rows = [session('a'), session('b', { parent: 'a', attention: ['gate'] }), session('c', { attention: ['stopping'] })]
    expect(shown(rows)).toEqual(['a', ' b', 'c'])
  })
})

describe('FND-D4 sorting', () => {
  const glance = (more: object): SessionRow['glance'] => ({ steps: 0, steps_done: 0, files: 0, added: 0, removed: 0, usage: { input_tokens: 0, output_tokens: 0 }, ...more })
  const rows = [
    session('a', { title: 'zebra', glance: glance({ usage: { input_tokens: 0, output_tokens: 0, cost_micros: 5, context_tokens: 10 } }) }),
    session('b', { title: 'ant', glance: glance({ added: 7, steps: 4, steps_done: 1 }) }),
    session('c', { title: 'bee', parent: 'b', glance: glance({ usage: { input_tokens: 0, output_tokens: 0, cost_micros: 9 } }) }),
    session('d', { title: 'cat', attention: ['gate'], glance: glance({ steps: 2, steps_done: 2, removed: 1 }) }),
  ]

  it.each<[Wanted['sort'], string[]]>([
    ['need', ['d', 'b', ' c', 'a']],
    ['title', ['b', ' c', 'd', 'a']],
    ['cost', ['b', ' c', 'a', 'd']],
    ['changes', ['b', ' c', 'd', 'a']],
    ['plan', ['d', 'b', ' c', 'a']],
    ['context', ['a', 'd', 'b', ' c']],
    ['created', ['d', 'b', ' c', 'a']],
  ])('by %s keeps families together', (sort, expected) => {
    expect(shown(rows, { sort })).toEqual(expected)
  })

  it('keeps the order while somebody points at it, and puts new ones last', () => {
    const { lines } = arrange(book(rows), EVERYTHING, new Set(), NOW)
    expect(drawn(steady(lines, ['a', 'gone', 'b', 'c']))).toEqual(['a', 'b', ' c', 'd'])
    expect(steady(lines, lines.map((line) => line.key))).toBe(lines)
  })

  it('adds up what was reported since midnight', () => {
    const hourly = [{ hour: '2026-11-15T23:00:00Z', cost_micros: 100 }, { hour: '2026-11-16T00:00:00Z', cost_micros: 20 }]
    const all = [session('a', { glance: glance({ hourly }) }), session('b', { glance: glance({ hourly: hourly.slice(1) }) }), session('c')]
    expect(costSince(book(all), Date.parse('2026-11-16T00:00:00Z'))).toBe(40)
  })
})

describe('views and filters', () => {
  const rows = [
    session('a', { agent: 'codex', plan: 'p1', workspace: '/w/one' }),
    session('b', { ...over }),
    session('c', { ...over, since: new Date(NOW - LINGER_MS + 1).toISOString() }),
    session('d', { archived: true, attention: ['failed'] }),
    session('e', { state: 'failed', lifecycle: 'terminal', attention: ['failed'], owner: 'ann', memory_mode: 'off' }),
  ]
  it.each<[Partial<Wanted>, string[]]>([
    [{}, ['e', 'a', 'c']],
    [{ view: 'all' }, ['e', 'a', 'd', 'c', 'b']],
    [{ view: 'archived' }, ['d']],
    [{ agent: 'codex' }, ['a']],
    [{ plan: 'p1', workspace: '/w/one' }, ['a']],
    [{ plan: 'p1', workspace: '/w/two' }, []],
    [{ owner: 'ann' }, ['e']],
    [{ memory: 'off' }, ['e']],
    [{ state: 'failed' }, ['e']],
    [{ lifecycle: 'terminal', view: 'all' }, ['e', 'c', 'b']],
    [{ attention: true, view: 'all' }, ['e']],
    [{ text: 'TITLE-A' }, ['a']],
    [{ text: 'codex one' }, ['a']],
    [{ text: 'title-a nobody' }, []],
  ])('%j', (wanted, expected) => {
    expect(shown(rows, wanted)).toEqual(expected)
  })
})

describe('groups', () => {
  const rows = [
    session('a', { plan: 'p2' }),
    session('b', { plan: 'p1' }),
    session('c', { plan: 'p1', parent: 'b' }),
    session('d', { plan: 'p2', parent: 'b' }),
    session('e'),
  ]
  it('have headers with counts, and families stay together within them', () => {
    expect(shown(rows, { group: 'plan' })).toEqual(['[p1 2]', 'b', ' c', '[p2 2]', 'd', 'a', '[ 1]', 'e'])
  })
  it('count what is folded away', () => {
    expect(shown(rows, { group: 'plan' }, ['b', 'group:plan:p2'])).toEqual(['[p1 2]', 'b+1', '[p2 2]', '[ 1]', 'e'])
  })
})

describe('many', () => {
  const N = 10_000
  const id = (at: number): string => `s${String(at).padStart(5, '0')}`

  it('a chain of ten thousand', () => {
    const rows = Array.from({ length: N }, (_, at) => session(id(at), { parent: at === 0 ? null : id(at - 1) }))
    const { lines } = arrange(book(rows.toReversed()), EVERYTHING, new Set(), NOW)
    expect(lines.length).toBe(N)
    expect(lines.at(-1)).toMatchObject({ key: id(N - 1), depth: N - 1 })
  })

  it('a ring of ten thousand', () => {
    const rows = Array.from({ length: N }, (_, at) => session(id(at), { parent: id((at + 1) % N) }))
    expect(arrange(book(rows), EVERYTHING, new Set(), NOW).lines.length).toBe(N)
  })

  it('ten thousand in families of ten, grouped, searched', () => {
    const rows = Array.from({ length: N }, (_, at) => session(id(at), { parent: at % 10 === 0 ? null : id(at - (at % 10)), owner: `o${Math.floor(at / 10) % 7}` }))
    const all = book(rows)
    expect(arrange(all, { ...EVERYTHING, group: 'owner' }, new Set(), NOW).lines.length).toBe(N + 7)
    const keys = arrange(all, { ...EVERYTHING, text: 's0000' }, new Set(), NOW).lines.map((line) => line.key)
    expect(new Set(keys).size).toBe(10)
  })
})

it('what lives below a session is counted, loops or not', () => {
  const all = book([
    session('a'), session('b', { parent: 'a' }), session('c', { parent: 'b' }), session('d', { parent: 'b', ...over }), session('e'),
    session('x', { parent: 'y' }), session('y', { parent: 'x' }),
  ])
  expect(['a', 'b', 'c', 'e', 'x'].map((id) => below(all, id))).toEqual([2, 1, 0, 0, 1])
})

it('totals and choices leave nothing out but the archive', () => {
  const all = book([session('a'), session('b', { source: 'web' }), session('c', { archived: true, state: 'failed' })])
  expect([...tally(all)]).toEqual([['idle', 2]])
  expect(choices(all, 'source')).toEqual(['cli', 'web'])
})
