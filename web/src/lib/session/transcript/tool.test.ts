import { describe, expect, it } from 'vitest'

import type { Diff } from '../../diff/diff'
import { answer, diffs, given, point } from './tool'

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

  const short = (diff: Diff): string => `${diff.path} ${diff.rows.map((row) => `${row.sign}${row.new ?? row.old ?? ''}${row.text}`).join('|')}`
  it.each([
    ['edit', { file_path: '/f', old_string: 'a', new_string: 'b' }, undefined, ['/f -1a|+1b']],
    ['multi', { path: '/f', edits: [{ oldText: 'a', newText: 'b' }, { oldText: 'c', newText: 'd' }] }, undefined, ['/f -1a|+1b', '/f -1c|+1d']],
    ['write', { path: '/f', content: 'x' }, undefined, ['/f +1x']],
    ['read', { path: '/f', content: 'x' }, undefined, []],
    ['edit', { path: '/f' }, [{ type: 'text', text: 'ok' }, { type: 'diff', path: '/f', line: 4, oldText: 'a', newText: 'b' }], ['/f -4a|+4b']],
    ['apply', { changes: [{ path: '/n', kind: { type: 'add' }, diff: 'x' }, { path: '/u', kind: { type: 'update' }, diff: '@@ -2 +2 @@\n-a\n+b' }] }, undefined, ['/n +1x', '/u -2a|+2b']],
    ['run', { command: 'ls' }, 'text', []],
  ])('of %s %j', (tool, args, content, found) => expect(diffs(tool, args, content).map(short)).toEqual(found))
})
