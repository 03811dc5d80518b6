// What changed in a file, as rows: from two texts, or from a diff somebody wrote.

export interface Row {
  sign: '+' | '-' | ' ' | '…'
  old: number | null
  new: number | null
  text: string
}

export interface Diff {
  path: string
  rows: Row[]
  added: number
  removed: number
  /** Lines the log does not have. */
  missing: number
}

/** Lines kept around a change. */
const AROUND = 3
/** Beyond this many pairs of lines the two sides are shown whole, one after the other. */
const PAIRS = 400_000

export function compare(path: string, before: string, after: string, line = 1, missing = 0): Diff {
  const rows = around(pair(split(before), split(after), line))
  return { path, rows, missing, ...counted(rows) }
}

function split(text: string): string[] {
  const lines = text.replace(/\r\n?/g, '\n').split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

function pair(a: string[], b: string[], line: number): Row[] {
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const rows: Row[] = []
  const same = (i: number, j: number): number => rows.push({ sign: ' ', old: line + i, new: line + j, text: a[i] ?? '' })
  const gone = (i: number): number => rows.push({ sign: '-', old: line + i, new: null, text: a[i] ?? '' })
  const come = (j: number): number => rows.push({ sign: '+', old: null, new: line + j, text: b[j] ?? '' })
  for (let i = 0; i < head; i++) same(i, i)
  const n = a.length - tail
  const m = b.length - tail
  let [i, j] = [head, head]
  if ((n - head) * (m - head) <= PAIRS) {
    // The longest common sequence, counted from the end.
    const width = m - head + 1
    const best = new Uint32Array((n - head + 1) * width)
    const at = (x: number, y: number): number => best[(x - head) * width + y - head] ?? 0
    for (let x = n - 1; x >= head; x--) {
      for (let y = m - 1; y >= head; y--) {
        best[(x - head) * width + y - head] = a[x] === b[y] ? at(x + 1, y + 1) + 1 : Math.max(at(x + 1, y), at(x, y + 1))
      }
    }
    while (i < n && j < m) {
      if (a[i] === b[j]) same(i++, j++)
      else if (at(i + 1, j) >= at(i, j + 1)) gone(i++)
      else come(j++)
    }
  }
  while (i < n) gone(i++)
  while (j < m) come(j++)
  for (let k = 0; k < tail; k++) same(n + k, m + k)
  return rows
}

function around(rows: Row[]): Row[] {
  const near = new Uint8Array(rows.length)
  rows.forEach((row, at) => {
    if (row.sign !== ' ') near.fill(1, Math.max(0, at - AROUND), at + AROUND + 1)
  })
  const kept: Row[] = []
  rows.forEach((row, at) => {
    if (near[at] === 1) kept.push(row)
    else if (kept.length > 0 && kept.at(-1)?.sign !== '…') kept.push({ sign: '…', old: null, new: null, text: '' })
  })
  if (kept.at(-1)?.sign === '…') kept.pop()
  return kept
}

function counted(rows: readonly Row[]): { added: number; removed: number } {
  return { added: rows.filter((row) => row.sign === '+').length, removed: rows.filter((row) => row.sign === '-').length }
}

/** Of a line such as `+++ b/src/x.rs`, which may end with a date. */
const name = (line: string): string => line.slice(4).replace(/^[ab]\//, '').split('\t', 1)[0]?.trim() ?? ''

/**
 * A unified diff of one file or several, as git writes it or in the form of `*** Begin Patch`. Nothing in it is trusted to
 * be well formed, and nothing but the names of files and their hashes is left out: what is not understood is a note.
 */
export function parse(text: string, path = ''): Diff[] {
  const found: Diff[] = []
  /** Whether anything but words came yet; words alone are no diff. */
  let begun = false
  let [old, fresh] = [0, 0]
  /** Lines the hunk still has, by what its head said: a `--- x` among them is no name of a file. */
  let [olds, news] = [0, 0]
  const file = (name: string): Diff => {
    const made = { path: name, rows: [], added: 0, removed: 0, missing: 0 }
    found.push(made)
    ;[old, fresh, olds, news] = [0, 0, 0, 0]
    return made
  }
  const rows = (): Row[] => (found.at(-1) ?? file(path)).rows
  const note = (words: string): number => rows().push({ sign: '…', old: null, new: null, text: words })
  const take = (line: string): void => {
    const sign = line[0] === '+' || line[0] === '-' ? line[0] : ' '
    const number = (at: number): number | null => (at > 0 ? at : null)
    rows().push({ sign, old: sign === '+' ? null : number(old), new: sign === '-' ? null : number(fresh), text: line.slice(1) })
    if (sign !== '+') {
      if (old > 0) old++
      olds--
    }
    if (sign !== '-') {
      if (fresh > 0) fresh++
      news--
    }
  }
  const lines = split(text)
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    if ((olds > 0 || news > 0) && /^[-+ ]|^$/.test(line)) {
      take(line)
      continue
    }
    const head = /^diff --git "?a\/.*? "?b\/(.*?)"?$|^\*\*\* (?:Update|Add|Delete) File: (.+)$/.exec(line)
    const named = line.startsWith('--- ') && (lines[at + 1] ?? '').startsWith('+++ ')
    const hunk = /^@@(?: -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@)?(.*)$/.exec(line)
    begun ||= named || (head ?? hunk) !== null
    if (head !== null) file((head[1] ?? head[2] ?? path).trim())
    else if (named) {
      at += 1
      const after = name(lines[at] ?? '')
      const is = after === '/dev/null' ? name(line) : after
      // Git has named it above already.
      if (found.at(-1)?.path !== is || rows().some((row) => row.sign !== '…')) file(is)
    } else if (hunk !== null) {
      const words = (hunk[5] ?? '').trim()
      if (words !== '' || rows().length > 0) note(words)
      ;[old, fresh] = [Number(hunk[1] ?? 0), Number(hunk[3] ?? 0)]
      ;[olds, news] = hunk[1] === undefined ? [0, 0] : [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)]
    } else if (/^(?:index |\*\*\* (?:Begin|End) Patch)/.test(line)) continue
    else if (begun && /^[-+ ]/.test(line)) take(line)
    else if (line.trim() !== '') note(line.replace(/^\\ /, ''))
  }
  for (const one of found) Object.assign(one, counted(one.rows))
  return begun ? found.filter((one) => one.rows.length > 0) : []
}
