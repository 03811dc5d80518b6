import { describe, expect, it } from 'vitest'

import { brief, clean, pieces } from './clean'
import { tokens } from './code'
import { compare, parse, type Diff } from './diff'
import { rich, spans, type Block } from './rich'
import { answer, diffs, given, point } from './tool'

describe('text of others', () => {
  it.each([
    ['colours of a terminal go', '\u001b[1;31mred\u001b[0m', 'red'],
    ['titles of a terminal go', '\u001b]0;evil\u0007x', 'x'],
    ['a bare escape is seen', 'a\u001b', 'a␛'],
    ['what turns text around is seen', 'a\u202eb\u2069', 'a⟦RLO⟧b⟦PDI⟧'],
    ['hidden letters are counted', `a${String.fromCodePoint(0xe0041, 0xe0042)}b`, 'a⟦2 hidden⟧b'],
    ['other controls are seen', 'a\u0000\u0085b', 'a␀⟦U+0085⟧b'],
    ['lines end alike', 'a\r\nb\rc', 'a\nb\nc'],
    ['letters and faces stay', 'שלום 👩‍👩‍👧 é', 'שלום 👩‍👩‍👧 é'],
    ['markup stays text', '<script>alert(1)</script>', '<script>alert(1)</script>'],
  ])('%s', (_, text, shown) => expect(clean(text)).toBe(shown))

  it('is brief on one line', () => expect(brief('a\n b'.repeat(100), 20)).toHaveLength(20))

  it.each([
    ['aaaa\nbb\ncc', 6, ['aaaa\n', 'bb\ncc']],
    ['a'.repeat(10), 4, ['aaaa', 'aaaa', 'aa']],
    ['', 4, []],
  ])('in pieces: %j', (text, size, found) => {
    expect(pieces(text, size)).toEqual(found)
    expect(found.join('')).toBe(text)
  })
})

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

describe('changes', () => {
  const short = (diff: Diff): string => `${diff.path} ${diff.rows.map((row) => `${row.sign}${row.new ?? row.old ?? ''}${row.text}`).join('|')}`
  it.each([
    ['one line', compare('f', 'a\nb\nc\n', 'a\nx\nc\n'), 'f  1a|-2b|+2x| 3c'],
    ['a new file', compare('f', '', 'a\nb\n'), 'f +1a|+2b'],
    ['far apart', compare('f', [...'abcdefghijkl'].join('\n'), [...'Abcdefghijkl'].join('\n')), 'f -1a|+1A| 2b| 3c| 4d'],
    ['from a line on', compare('f', 'a', 'b', 10), 'f -10a|+10b'],
    ['moved', compare('f', 'a\nb\nc', 'b\nc\na'), 'f -1a| 1b| 2c|+3a'],
  ])('%s', (_, diff, found) => expect(short(diff)).toBe(found))

  it.each([
    ['unified', '--- a/x.rs\n+++ b/x.rs\n@@ -3,2 +3,2 @@ fn\n-a\n+b\n c\n', ['x.rs -3a|+3b| 4c']],
    ['two files', 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d', ['x -1a|+1b', 'y -1c|+1d']],
    ['a line that looks like a name', '@@ -1,1 +1,1 @@\n--- old comment\n+++ new comment\n', ['given --1-- old comment|+1++ new comment'.replace('--1', '-1')]],
    ['a patch', '*** Begin Patch\n*** Update File: src/a.ts\n@@\n-a\n+b\n*** End Patch', ['src/a.ts -a|+b']],
    ['no diff', 'hello', []],
  ])('written as %s', (_, text, found) => expect(parse(text, 'given').map(short)).toEqual(found))

  it.each([
    ['edit', { file_path: '/f', old_string: 'a', new_string: 'b' }, undefined, ['/f -1a|+1b']],
    ['multi', { path: '/f', edits: [{ oldText: 'a', newText: 'b' }, { oldText: 'c', newText: 'd' }] }, undefined, ['/f -1a|+1b', '/f -1c|+1d']],
    ['write', { path: '/f', content: 'x' }, undefined, ['/f +1x']],
    ['read', { path: '/f', content: 'x' }, undefined, []],
    ['edit', { path: '/f' }, [{ type: 'text', text: 'ok' }, { type: 'diff', path: '/f', line: 4, oldText: 'a', newText: 'b' }], ['/f -4a|+4b']],
    ['apply', { changes: [{ path: '/n', kind: { type: 'add' }, diff: 'x' }, { path: '/u', kind: { type: 'update' }, diff: '@@ -2 +2 @@\n-a\n+b' }] }, undefined, ['/n +1x', '/u -2a|+2b']],
    ['run', { command: 'ls' }, 'text', []],
  ])('of %s %j', (tool, args, content, found) => expect(diffs(tool, args, content).map(short)).toEqual(found))

  it('of two long texts without end', () => {
    const long = (seed: string): string => Array.from({ length: 20_000 }, (_, at) => `${seed}${at}`).join('\n')
    expect(compare('f', long('a'), long('b')).added).toBe(20_000)
  })
})

describe('a call', () => {
  it.each([
    [{ command: 'ls -la\nsecond' }, 'ls -la second'],
    [{ n: 3, path: '/f' }, '/f'],
    [{ n: 3 }, '3'],
    [undefined, ''],
    ['plain', 'plain'],
  ])('%j comes to the point', (args, found) => expect(point(args)).toBe(found))

  it.each([
    ['text', 'text'],
    [[{ type: 'text', text: 'a' }, { type: 'diff', path: 'x' }, { type: 'content', content: { type: 'text', text: 'b' } }], 'a\nb'],
    [null, ''],
    [{ exit: 0 }, '{\n  "exit": 0\n}'],
    [[{ type: 'image', data: 'xxx' }], '[image]'],
  ])('answers %j', (content, found) => expect(answer(content)).toBe(found))

  it('shows each argument once', () => {
    expect(given({ path: 'f', old_string: 'a', flag: true }, true)).toEqual([{ name: 'flag', text: 'true' }])
    expect(given({ path: 'f', old_string: 'a' }, false)).toHaveLength(2)
  })
})
