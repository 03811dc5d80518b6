import { describe, expect, it } from 'vitest'

import { parse } from './patch'

const PATCH = `diff --git a/src/a.txt b/src/a.txt
index 1..2 100644
--- a/src/a.txt
+++ b/src/a.txt
@@ -1,3 +1,3 @@ heading
 one
-two
+zwei
 three
\\ No newline at end of file
diff --git a/new b/new
new file mode 100644
--- /dev/null
+++ b/new
@@ -0,0 +1 @@
+++ plus
`

describe('a patch', () => {
  it('is read by file, with numbers of lines', () => {
    const [first, second] = parse(PATCH)
    expect(first?.path).toBe('src/a.txt')
    expect(first?.lines.map((row) => [row.kind, row.old, row.new, row.text])).toEqual([
      ['hunk', null, null, '@@ -1,3 +1,3 @@ heading'],
      ['same', 1, 1, 'one'],
      ['del', 2, null, 'two'],
      ['add', null, 2, 'zwei'],
      ['same', 3, 3, 'three'],
      ['note', null, null, 'No newline at end of file'],
    ])
    expect(second?.lines).toEqual([
      { kind: 'note', text: 'new file mode 100644', old: null, new: null },
      { kind: 'hunk', text: '@@ -0,0 +1 @@', old: null, new: null },
      { kind: 'add', text: '++ plus', old: null, new: 1 },
    ])
  })

  it.each(['', 'not a patch\n+x', '@@ -1 +1 @@\n+x'])('%j has no files', (text) => expect(parse(text)).toEqual([]))
})
