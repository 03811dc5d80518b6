import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { afterEach, beforeEach, expect, test } from 'vitest'

import { lineInFile, parsePatch, reversed, sidesOf, type FilePatch } from './patch'

let folder = ''
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'lyp'))))
afterEach(() => rmSync(folder, { recursive: true }))

/** What git says of a change; `null` is no file. */
function diff(path: string, before: string | null, after: string | null): FilePatch[] {
  for (const [side, text] of [['a', before], ['b', after]] as const) {
    const file = join(folder, side, path)
    mkdirSync(dirname(file), { recursive: true })
    if (text === null) rmSync(file, { force: true })
    else writeFileSync(file, text)
  }
  const done = spawnSync('git', ['diff', '--no-index', '--no-prefix', 'a', 'b'], { cwd: folder, encoding: 'utf8' })
  return parsePatch(done.stdout)
}

function only(files: readonly FilePatch[]): FilePatch {
  const [file] = files
  if (file === undefined || files.length !== 1) throw new Error(`${files.length} files`)
  return file
}

/** A number generator with a seed, so that a failure can be repeated. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

test('the text before is what git says it was, whatever was changed', () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const next = random(seed)
    const lines = Array.from({ length: Math.floor(next() * 40) }, () => ['', 'a', '- b', '+ c', '@@ -1 +1 @@', 'diff --git a/x b/x', '\\ no'][Math.floor(next() * 7)] ?? '')
    const changed = lines.flatMap((line) => (next() < 0.1 ? [] : next() < 0.1 ? [`${line}!`] : next() < 0.1 ? [line, 'new'] : [line]))
    const text = (of: string[]): string => (of.length === 0 ? '' : of.join('\n') + (next() < 0.7 ? '\n' : ''))
    const [before, after] = [text(lines), text(changed)]
    if (before === after) continue
    const file = only(diff('f.txt', before, after))
    expect(reversed(file, after), `seed ${seed}`).toBe(before)
    expect(sidesOf(file, after)).toEqual({ before, after, partial: false })
  }
})

test('a file that was made or removed has one empty side', () => {
  expect(sidesOf(only(diff('new.txt', null, 'x\ny\n')), null)).toEqual({ before: '', after: 'x\ny\n', partial: false })
  expect(sidesOf(only(diff('new.txt', 'x\ny\n', null)), null)).toEqual({ before: 'x\ny\n', after: '', partial: false })
})

test('a file that was changed since is shown by its hunks, with the right lines', () => {
  const lines = Array.from({ length: 40 }, (_, at) => `line ${at + 1}`)
  const after = lines.map((line, at) => (at === 4 || at === 29 ? `${line} changed` : line))
  const file = only(diff('far.txt', `${lines.join('\n')}\n`, `${after.join('\n')}\n`))
  const sides = sidesOf(file, 'something else\n')
  expect(sides.partial).toBe(true)
  const shown = sides.after.split('\n')
  for (const [at, line] of shown.entries()) if (line !== '') expect(after[lineInFile(file, at)]).toBe(line)
  expect(sides.before).toContain('line 30\n')
})

test('names are read as git writes them', () => {
  const named = (text: string): [string, string] => {
    const file = only(parsePatch(text))
    return [file.oldPath, file.path]
  }
  expect(named('diff --git a/x y.txt b/x y.txt\nindex 1..2 100644\n--- a/x y.txt\t\n+++ b/x y.txt\t\n@@ -1 +1 @@\n-a\n+b\n')).toEqual(['x y.txt', 'x y.txt'])
  expect(named('diff --git "a/\\303\\274.txt" "b/\\303\\274.txt"\n--- "a/\\303\\274.txt"\n+++ "b/\\303\\274.txt"\n@@ -1 +1 @@\n-a\n+b\n')).toEqual(['ü.txt', 'ü.txt'])
  expect(named('diff --git a/old.txt b/new.txt\nsimilarity index 100%\nrename from old.txt\nrename to new.txt\n')).toEqual(['old.txt', 'new.txt'])
  const binary = only(parsePatch('diff --git a/p.png b/p.png\nindex 1..2 100644\nBinary files a/p.png and b/p.png differ\n'))
  expect([binary.path, binary.binary]).toEqual(['p.png', true])
})

test('several files stay apart, and text that is no patch is none', () => {
  const files = parsePatch('diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n--- x\n+++ y\n same\ndiff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-1\n+2\n')
  expect(files.map((file) => [file.path, file.hunks[0]?.lines])).toEqual([
    ['a', ['--- x', '+++ y', ' same']],
    ['b', ['-1', '+2']],
  ])
  expect(parsePatch('hello\n@@ -1 +1 @@\n')).toEqual([])
})
