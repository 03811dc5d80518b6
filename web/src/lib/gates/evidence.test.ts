import { describe, expect, test } from 'vitest'

import { evidence } from './evidence'

const of = (detail: unknown): string[] =>
  evidence({ title: 'it', detail }).map((piece) =>
    piece.kind === 'diff' ? `${piece.diff.path}: ${piece.diff.rows.map((row) => row.sign + row.text).join('|')}` : `${piece.label}: ${piece.text}`,
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
    ['changes by path', { changes: { 'a.rs': { unified_diff: '@@ -1 +1 @@\n-a\n+b' } } }, ['a.rs: -a|+b']],
    ['a file without marks', { changes: [{ path: 'n.md', diff: '- a\n- b' }] }, ['n.md: +- a|+- b']],
    ['patterns', { permission: 'bash', patterns: ['git *'], always: ['git push'], metadata: { command: 'git push' } },
      ['Permission: bash', 'For: git *', 'Always would be: git push', 'Command: git push']],
    ['something else', { colour: { red: 1 } }, ['Arguments: {\n  "colour": {\n    "red": 1\n  }\n}']],
    ['no object', 'just words', ['Details: just words']],
  ])('%s', (_, detail, shown) => {
    expect(of(detail)).toEqual(shown)
  })
})
