import { describe, expect, test } from 'vitest'

import { evidence, inLine } from './evidence'

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

describe('FND-D1 FND-D3 a question on one line', () => {
  const line = (title: string, detail: unknown) => inLine(title, evidence({ title, detail }))

  test.each<[string, string, unknown, { more: string; whole: boolean }]>([
    ['nothing but a title', 'May I?', { kind: 'execute' }, { more: '', whole: true }],
    ['a title that is the command', 'npm test', { kind: 'execute', rawInput: { command: 'npm test' } }, { more: '', whole: true }],
    ['a command beside its title', 'bash', { rawInput: { command: 'npm test', description: 'Runs the tests' } }, { more: 'npm test', whole: true }],
    ['a command of two lines', 'bash', { rawInput: { command: 'npm test\nrm -rf /' } }, { more: 'npm test', whole: false }],
    ['a command in a folder', 'bash', { command: 'ls', cwd: '/' }, { more: 'ls', whole: false }],
    ['a long command', 'bash', { rawInput: { command: 'x'.repeat(200) } }, { more: 'x'.repeat(200), whole: false }],
    ['a change', 'Edit', { content: [{ type: 'diff', path: 'a.ts', oldText: '', newText: 'b' }] }, { more: 'a.ts', whole: false }],
    ['a title of many lines', 'May I?\nAnd this?', undefined, { more: '', whole: false }],
  ])('%s', (_, title, detail, shown) => {
    expect(line(title, detail)).toEqual(shown)
  })
})
