import { describe, expect, test } from 'vitest'

import { between, evidence, unified } from './evidence'

const of = (detail: unknown): string[] =>
  evidence({ title: 'it', detail }).map((piece) =>
    piece.kind === 'diff' ? `${piece.label}: ${piece.lines.map((line) => line.mark + line.text).join('|')}` : `${piece.label}: ${piece.text}`,
  )

describe('what an agent wants to do', () => {
  test.each<[string, unknown, string[]]>([
    ['nothing told', undefined, []],
    ['only handles', { toolCallId: 'c1', title: 'it' }, []],
    ['an agent of the protocol', { toolCallId: 'c1', kind: 'execute', rawInput: { command: 'rm -r x', name: 'kept' }, locations: [{ path: '/a' }] },
      ['Kind: execute', 'Command: rm -r x', 'Arguments: {\n  "name": "kept"\n}', 'File: /a']],
    ['its diff', { content: [{ type: 'diff', path: 'a.rs', oldText: 'one\ntwo\n', newText: 'one\n2\n' }] }, ['a.rs:  one|-two|+2']],
    ['its words', { content: [{ type: 'content', content: { type: 'text', text: 'please' } }] }, ['In its words: please']],
    ['a command in words', { method: 'x', command: ['bash', '-lc', "echo 'hi'"], cwd: '/w' }, ["Command: bash -lc 'echo '\\''hi'\\'''", 'Folder: /w']],
    ['changes by path', { changes: { 'a.rs': { unified_diff: '@@ -1 +1 @@\n-a\n+b' } } }, ['a.rs: @@@ -1 +1 @@|-a|+b']],
    ['patterns', { permission: 'bash', patterns: ['git *'], always: ['git push'], metadata: { command: 'git push' } },
      ['Permission: bash', 'For: git *', 'Always would be: git push', 'Command: git push']],
    ['something else', { colour: { red: 1 } }, ['Arguments: {\n  "colour": {\n    "red": 1\n  }\n}']],
    ['no object', 'just words', ['Details: just words']],
  ])('%s', (_, detail, shown) => {
    expect(of(detail)).toEqual(shown)
  })
})

describe('diffs', () => {
  test('a new file is all new', () => {
    expect(between('', 'a\nb\n')).toEqual([{ mark: '+', text: 'a' }, { mark: '+', text: 'b' }])
    expect(unified('a\nb')).toEqual([{ mark: '+', text: 'a' }, { mark: '+', text: 'b' }])
  })

  test('headers go, marks stay', () => {
    const lines = unified('diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n')
    expect(lines.map((line) => line.mark).join('')).toBe('@ -+')
  })

  test('only a few lines around a change are shown', () => {
    const before = Array.from({ length: 100 }, (_, at) => `line ${at}`)
    const after = before.with(50, 'other')
    expect(between(before.join('\n'), after.join('\n')).map((line) => line.text)).toEqual([
      'line 47', 'line 48', 'line 49', 'line 50', 'other', 'line 51', 'line 52', 'line 53',
    ])
  })
})
