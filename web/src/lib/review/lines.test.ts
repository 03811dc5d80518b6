import { describe, expect, it } from 'vitest'

import type { ChangedFile } from '../api/types'
import { parse } from '../diff/diff'
import type { Comment } from './comment'
import { stateWords } from './comment'
import { marked, pairs, placed, selected } from './lines'
import { tree } from './tree'
import { wordChanges } from './words'

const rows = parse('--- a/x\n+++ b/x\n@@ -1,4 +1,5 @@\n a\n-let b = 1\n-c\n+let b = 2\n+d\n+e\n f\n@@ -20 +21 @@\n-g\n+h')[0]?.rows ?? []
const at = (text: string): number => rows.findIndex((row) => row.text === text)

describe('lines of a review', () => {
  it('stand beside each other', () => {
    const text = (index: number | null): string => (index === null ? '' : (rows[index]?.text ?? ''))
    expect(pairs(rows).map(({ left, right }) => `${text(left)}|${text(right)}`)).toEqual(['a|a', 'let b = 1|let b = 2', 'c|d', '|e', 'f|f', '|', 'g|h'])
  })

  it('say which words differ', () => {
    const parts = marked(rows).get(at('let b = 2')) ?? []
    expect(parts.filter((part) => part.changed).map((part) => part.text)).toEqual(['2'])
    expect(marked(rows).has(at('d'))).toBe(false)
  })

  it.each([
    ['one line', 'd', 'd', { side: 'new', lines: { first: 3, last: 3 }, quote: 'd' }],
    ['a range, from below', 'f', 'd', { side: 'new', lines: { first: 3, last: 5 }, quote: 'd\ne\nf' }],
    ['lines that go', 'let b = 1', 'c', { side: 'old', lines: { first: 2, last: 3 }, quote: 'let b = 1\nc' }],
    ['both sides', 'c', 'd', { side: 'new', lines: { first: 2, last: 3 }, quote: 'let b = 2\nd' }],
  ])('are selected: %s', (_, from, to, found) => expect(selected(rows, at(from), at(to))).toMatchObject(found))

  it('are not selected across a gap', () => {
    expect(selected(rows, at('f'), at('g'))).toBeNull()
    expect(selected([], 0, 0)).toBeNull()
  })

  it('have their comments below them', () => {
    const comment = (id: string, over: Partial<Comment>): Comment => ({ comment: id, anchor: 'same', lines: { first: 2, last: 3 }, state: 'draft', ...over }) as Comment
    const found = placed(rows, [comment('1', {}), comment('2', { side: 'old' }), comment('3', { anchor: 'moved', now: { first: 21, last: 21 } }), comment('4', { anchor: 'stale' }), comment('5', { lines: { first: 99, last: 99 } })])
    expect([...found].map(([row, comments]) => [row, comments.map((one) => one.comment)])).toEqual([
      [at('d'), ['1']],
      [at('c'), ['2']],
      [at('h'), ['3']],
      [-1, ['4', '5']],
    ])
  })

  it('have a state in words', () => {
    const words = (over: Partial<Comment>): string => stateWords(over as Comment)
    expect([words({ state: 'sent' }), words({ state: 'sent', number: 3 }), words({ state: 'answered', number: 3 })]).toEqual(['Sent, waits for its turn', 'Sent with turn 3', 'Answered by turn 3'])
  })
})

describe('words that differ', () => {
  it.each([
    ['foo(a, b)', 'foo(a, c)', 'foo(a, [b])|foo(a, [c])'],
    ['a', 'b', null],
    ['', 'b', null],
    ['same words here', 'same words there', 'same words [here]|same words [there]'],
  ])('%s → %s', (before, after, found) => {
    const shown = wordChanges(before, after)?.map((parts) => parts.map((part) => (part.changed ? `[${part.text}]` : part.text)).join(''))
    expect(shown?.join('|') ?? null).toBe(found)
  })

  it('of two long lines come to an end', () => {
    expect(wordChanges('a '.repeat(100_000), 'b '.repeat(100_000))).toBeNull()
  })
})

describe('the tree of files', () => {
  it('has folders first, and one row for folders that hold nothing else', () => {
    const file = (path: string): ChangedFile => ({ path, added: 1, removed: 2, change: 'modified', hash: '0a' })
    const drawn = tree([file('z.ts'), file('src/deep/down/a.ts'), file('src/deep/down/b.ts'), file('docs/x.md')])
    expect(drawn.map((one) => `${' '.repeat(one.depth)}${one.name}${one.file === null ? '/' : ''} +${one.added} -${one.removed}`)).toEqual([
      'docs/ +1 -2',
      ' x.md +1 -2',
      'src/deep/down/ +2 -4',
      ' a.ts +1 -2',
      ' b.ts +1 -2',
      'z.ts +1 -2',
    ])
  })
})
