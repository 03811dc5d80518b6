import { describe, expect, it } from 'vitest'

import { tokens } from './code'
import { rich, spans, type Block } from './rich'

describe('marks of an agent', () => {
  const short = (block: Block): string => {
    switch (block.as) {
      case 'code':
        return `code ${block.lang}: ${block.text}`
      case 'list':
        return `${block.ordered ? `ol${block.start}` : 'ul'}: ${block.items.map((item) => `${item.depth}${item.spans.map((span) => span.text).join('')}`).join(', ')}`
      case 'table':
        return `table ${block.head.length}x${block.rows.length}`
      case 'rule':
        return 'rule'
      default:
        return `${block.as}: ${block.spans.map((span) => span.text).join('')}`
    }
  }
  it.each([
    ['a\nb\n\nc', ['p: a\nb', 'p: c']],
    ['# Top\ntext', ['head: Top', 'p: text']],
    ['```rust\nfn a() {}\n```\nafter', ['code rust: fn a() {}', 'p: after']],
    ['```\nnever closed', ['code : never closed']],
    ['- a\n  - b\n- c', ['ul: 0a, 1b, 0c']],
    ['3. a\n4. b', ['ol3: 0a, 0b']],
    ['- a\n  goes on', ['ul: 0a\ngoes on']],
    ['> said\n> more', ['quote: said\nmore']],
    ['| a | b |\n|---|---|\n| 1 | 2 |', ['table 2x1']],
    ['a\n---\nb', ['p: a', 'rule', 'p: b']],
    ['<b>not bold</b>', ['p: <b>not bold</b>']],
  ])('%j', (text, blocks) => expect(rich(text).map(short)).toEqual(blocks))

  it.each([
    ['a `b` c', ['text a ', 'code b', 'text  c']],
    ['**x** and *y*', ['bold x', 'text  and ', 'em y']],
    ['[site](https://e.org/a)', ['link site https://e.org/a']],
    ['see https://e.org/a.', ['text see ', 'link https://e.org/a https://e.org/a', 'text .']],
    ['[bad](javascript:alert(1))', ['text [bad](javascript:alert(1))']],
    ['2 * 3 * 4', ['text 2 * 3 * 4']],
    ['**open', ['text **open']],
  ])('in a line: %j', (text, found) => expect(spans(text).map((span) => [span.as, span.text, span.href].filter((part) => part !== undefined).join(' '))).toEqual(found))

  it.each(['[', '*', '`', '**a', '[a](', '|', '- ', '> ', '#'])('comes to an end for many of %j', (sign) => {
    expect(rich(sign.repeat(30_000 / sign.length)).length).toBeGreaterThan(0)
  })
})

it.each([
  ['let a = "b" // c', ['word let', ' a = ', 'string "b"', ' ', 'comment // c']],
  ['x = 42 # no', ['x = ', 'number 42', ' ', 'comment # no']],
  ['"never closed', ['"never closed']],
])('colours of %j', (code, found) => expect(tokens(code).map((token) => (token.as === '' ? token.text : `${token.as} ${token.text}`))).toEqual(found))
