import { describe, expect, it } from 'vitest'

import { tokens } from './code'
import { plain, rich, safe, type Block, type Span } from './rich'

const inline = (span: Span): string => {
  switch (span.as) {
    case 'text':
      return span.text
    case 'raw':
      return `<raw ${span.text}>`
    case 'code':
      return `<code ${span.text}>`
    case 'break':
      return '<br>'
    case 'link':
      return `<link ${span.href ?? 'none'}: ${line(span.spans)}>`
    case 'image':
      return `<image ${span.href ?? 'none'}: ${span.alt}>`
    default:
      return `<${span.as} ${line(span.spans)}>`
  }
}
const line = (spans: readonly Span[]): string => spans.map(inline).join('')
const short = (block: Block): string => {
  switch (block.as) {
    case 'code':
      return `code ${block.lang}: ${block.text}`
    case 'list':
      return `${block.ordered ? `ol${block.start}` : 'ul'}[${block.items.map((item) => `${item.done === null ? '' : item.done ? '☑ ' : '☐ '}${item.blocks.map(short).join('; ')}`).join(', ')}]`
    case 'table':
      return `table ${[block.head, ...block.rows].map((row) => row.map(line).join(' / ')).join(' // ')}`
    case 'quote':
      return `quote(${block.blocks.map(short).join('; ')})`
    case 'rule':
      return 'rule'
    case 'raw':
      return `raw ${block.text}`
    case 'head':
      return `h${block.level} ${line(block.spans)}`
    case 'p':
      return line(block.spans)
  }
}
const all = (text: string): string => rich(text).map(short).join(' | ')

describe('Markdown of an agent', () => {
  it.each([
    ['a\nb\n\nc', 'a\nb | c'],
    ['# Top\ntext', 'h1 Top | text'],
    ['```rust\nfn a() {}\n```\nafter', 'code rust: fn a() {} | after'],
    ['```\nnever closed', 'code : never closed'],
    ['> said\n> more', 'quote(said\nmore)'],
    ['a `b` **x** and *y*', 'a <code b> <bold x> and <em y>'],
    ['2 * 3 * 4', '2 * 3 * 4'],
    ['**open', '**open'],
  ])('%j', (text, blocks) => expect(all(text)).toBe(blocks))

  it.each([
    ['nested lists keep their numbers', '1. a\n   - x\n   - y\n2. b\n   1. z\n3. c', 'ol1[a; ul[x, y], b; ol1[z], c]'],
    ['a list that code interrupts goes on', '1. a\n\n   ```\n   x\n   ```\n\n2. b', 'ol1[a; code : x, b]'],
    ['a list that begins elsewhere', '3. a\n4. b', 'ol3[a, b]'],
    ['pipes in a table', '| a | b |\n|---|:-:|\n| `x\\|y` | p \\| q |', 'table a / b // <code x|y> / p | q'],
    ['a table without outer pipes', 'a | b\n--|--\n1 | 2', 'table a / b // 1 / 2'],
    ['underscores', '_em_ and __bold__ but snake_case_name', '<em em> and <bold bold> but snake_case_name'],
    ['strikethrough', '~~gone~~ here', '<struck gone> here'],
    ['task boxes', '- [x] done\n- [ ] open\n- [y] neither', 'ul[☑ done, ☐ open, [y] neither]'],
    ['an image', '![a plan](https://e.org/p.png)', '<image https://e.org/p.png: a plan>'],
    ['a reference', '[site][s]\n\n[s]: https://e.org "Title"', '<link https://e.org: site>'],
    ['escapes', '\\*not em\\*', '*not em*'],
  ])('FND-D5 %s', (_, text, blocks) => expect(all(text)).toBe(blocks))

  it.each([
    ['HTML is text', '<b>x</b>\n\n<script>alert(1)</script>', '<raw <b>>x<raw </b>> | raw <script>alert(1)</script>'],
    ['a script is no link', '[bad](javascript:alert(1)) <javascript:alert(1)>', '<link none: bad> <link none: javascript:alert(1)>'],
    ['nor is a hidden one', '[bad](java&#115;cript:alert(1)) [b](data:text/html,x) [c](//e.org)', '<link none: bad> <link none: b> <link none: c>'],
    ['a path is no link', '[main](src/main.rs)', '<link none: main>'],
    ['mail is one', '[me](mailto:a@e.org) <a@e.org>', '<link mailto:a@e.org: me> <link mailto:a@e.org: a@e.org>'],
    ['bare addresses', 'see https://e.org/a. And www.e.org', 'see <link https://e.org/a: https://e.org/a>. And <link http://www.e.org: www.e.org>'],
    ['what is hidden in a reference is seen', 'a&#8238;b `c`', 'a⟦RLO⟧b <code c>'],
    ['what is nested beyond reason stays as it is', `${'> '.repeat(60)}x`, `raw ${'> '.repeat(60)}x`],
  ])('FND-D5 safe: %s', (_, text, blocks) => expect(all(text)).toBe(blocks))

  it('follows web and mail addresses only', () => {
    expect(['https://e.org', 'HTTP://e.org', 'mailto:a@e.org', 'file:///etc', 'vbscript:x', '/x', ''].map((one) => safe(one) !== null)).toEqual([true, true, true, false, false, false, false])
    expect(plain(rich('a **b `c`** [d](https://e.org)').flatMap((block) => (block.as === 'p' ? [...block.spans] : [])))).toBe('a b c d')
  })

  it.each(['[', '*', '_a', '`', '**a', '[a](', '|', '- ', '> ', '#', '~~a', '![', '<', '&', '\\', '1. ', 'a|', '*a_ ', '[^', 'http://a ', '*a **a ', '\n> - '])('comes to an end for many of %j', (sign) => {
    const before = performance.now()
    rich(sign.repeat(Math.floor(24_000 / sign.length)))
    expect(performance.now() - before).toBeLessThan(4_000)
  })
})

it.each([
  ['let a = "b" // c', ['word let', ' a = ', 'string "b"', ' ', 'comment // c']],
  ['x = 42 # no', ['x = ', 'number 42', ' ', 'comment # no']],
  ['"never closed', ['"never closed']],
])('colours of %j', (code, found) => expect(tokens(code).map((token) => (token.as === '' ? token.text : `${token.as} ${token.text}`))).toEqual(found))
