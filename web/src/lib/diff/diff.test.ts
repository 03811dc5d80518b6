import { describe, expect, it } from 'vitest'

import { compare, parse, type Diff } from './diff'

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
    ['unified', '--- a/x.rs\n+++ b/x.rs\n@@ -3,2 +3,2 @@ fn\n-a\n+b\n c\n', ['x.rs …fn|-3a|+3b| 4c']],
    ['two files', 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d', ['x -1a|+1b', 'y -1c|+1d']],
    ['a line that looks like a name', '@@ -1,1 +1,1 @@\n--- old comment\n+++ new comment\n', ['given --1-- old comment|+1++ new comment'.replace('--1', '-1')]],
    ['a patch', '*** Begin Patch\n*** Update File: src/a.ts\n@@\n-a\n+b\n*** End Patch', ['src/a.ts -a|+b']],
    ['a file that goes', '--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a', ['x -1a']],
    ['notes of git', 'diff --git a/n b/n\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+++ plus\n\\ No newline at end of file', ['n …new file mode 100644|…|+1++ plus|…No newline at end of file']],
    ['a file that is only renamed', 'diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y', ['y …similarity index 100%|…rename from x|…rename to y']],
    ['words around it', 'please\n@@ -1 +1 @@\n-a\n+b\nrm -r /', ['given …please|…|-1a|+1b|…rm -r /']],
    ['no diff', 'hello\n- a list', []],
  ])('written as %s', (_, text, found) => expect(parse(text, 'given').map(short)).toEqual(found))

  it.each(['--- x', '*** Update File: x', 'diff --git a/x b/', '@@ -1 +1 @@ x', '-'])('comes to an end for a long line after %j', (begin) => {
    expect(parse(`@@ -1 +1 @@\n-a\n+b\n${begin}${' b/ '.repeat(200_000)}y`)).not.toEqual([])
  })

  it('of two long texts without end', () => {
    const long = (seed: string): string => Array.from({ length: 20_000 }, (_, at) => `${seed}${at}`).join('\n')
    expect(compare('f', long('a'), long('b')).added).toBe(20_000)
  })
})
