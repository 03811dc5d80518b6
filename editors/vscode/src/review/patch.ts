// Unified diffs of the daemon: read into files and hunks, and both sides of a file made from one side and the hunks.

interface Hunk {
  oldStart: number
  newStart: number
  lines: string[]
}

export interface FilePatch {
  path: string
  oldPath: string
  change: 'added' | 'deleted' | 'modified'
  binary: boolean
  hunks: Hunk[]
}

export interface Sides {
  before: string
  after: string
  /** Only the changed places are here, not the whole file. */
  partial: boolean
}

export function parsePatch(text: string): FilePatch[] {
  const files: FilePatch[] = []
  let file: FilePatch | null = null
  let hunk: Hunk | null = null
  let left = { old: 0, new: 0 }
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  for (const line of lines) {
    if (hunk !== null && (left.old > 0 || left.new > 0 || line.startsWith('\\'))) {
      hunk.lines.push(line === '' ? ' ' : line)
      if (line.startsWith('-')) left.old -= 1
      else if (line.startsWith('+')) left.new -= 1
      else if (!line.startsWith('\\')) left = { old: left.old - 1, new: left.new - 1 }
      continue
    }
    const header = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line)
    if (line.startsWith('diff --git ')) {
      const path = samePath(line)
      file = { path, oldPath: path, change: 'modified', binary: false, hunks: [] }
      hunk = null
      files.push(file)
    } else if (file === null) continue
    else if (header !== null) {
      hunk = { oldStart: Number(header[1]), newStart: Number(header[3]), lines: [] }
      left = { old: Number(header[2] ?? 1), new: Number(header[4] ?? 1) }
      file.hunks.push(hunk)
    } else readHeader(file, line)
  }
  return files
}

function readHeader(file: FilePatch, line: string): void {
  if (line.startsWith('new file')) file.change = 'added'
  else if (line.startsWith('deleted file')) file.change = 'deleted'
  else if (line.startsWith('Binary files ') || line.startsWith('GIT binary patch')) file.binary = true
  else if (line.startsWith('rename from ')) file.oldPath = unquoted(line.slice('rename from '.length))
  else if (line.startsWith('rename to ')) file.path = unquoted(line.slice('rename to '.length))
  else if (line.startsWith('--- ')) file.oldPath = named(line.slice(4), 'a/') ?? file.oldPath
  else if (line.startsWith('+++ ')) file.path = named(line.slice(4), 'b/') ?? file.path
}

/** `diff --git a/x b/x`, both the same; a rename has lines of its own. */
function samePath(line: string): string {
  const rest = line.slice('diff --git '.length)
  const quoted = /^"a\/((?:[^"\\]|\\.)*)"/.exec(rest)
  if (quoted !== null) return unquoted(`"${quoted[1] ?? ''}"`)
  return rest.slice(2, Math.floor(rest.length / 2))
}

function named(text: string, prefix: string): string | null {
  const path = unquoted(text.replace(/\t$/, ''))
  return path === '/dev/null' ? null : path.startsWith(prefix) ? path.slice(prefix.length) : path
}

/** Git quotes names with unusual bytes: octal escapes of UTF-8. */
function unquoted(text: string): string {
  if (!text.startsWith('"') || !text.endsWith('"')) return text
  const plain: Record<string, string> = { n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' }
  const bytes: Buffer[] = []
  for (const [part, octal, letter] of text.slice(1, -1).matchAll(/\\([0-7]{3})|\\(.)|[^\\]+/gs)) {
    bytes.push(octal === undefined ? Buffer.from(letter === undefined ? part : (plain[letter] ?? letter)) : Buffer.from([parseInt(octal, 8)]))
  }
  return Buffer.concat(bytes).toString('utf8')
}

/** Both sides from the text after the change; only the hunks where that text is missing or does not fit them. */
export function sidesOf(file: FilePatch, after: string | null): Sides {
  if (file.binary) return { before: '(binary)', after: '(binary)', partial: true }
  if (file.change === 'added' || file.change === 'deleted') return { ...fromHunks(file), partial: false }
  const before = after === null ? null : reversed(file, after)
  return before === null || after === null ? { ...fromHunks(file), partial: true } : { before, after, partial: false }
}

/** The text before the change; null where the hunks do not fit this text. */
export function reversed(file: FilePatch, after: string): string | null {
  const lines = after.split('\n')
  const whole = lines.at(-1) === ''
  if (whole) lines.pop()
  const found: string[] = []
  let at = 0
  const ending = { before: true, after: true }
  for (const hunk of file.hunks) {
    const added = hunk.lines.some((line) => line.startsWith('+') || line.startsWith(' '))
    const start = added ? hunk.newStart - 1 : hunk.newStart
    if (start < at || start > lines.length) return null
    found.push(...lines.slice(at, start))
    at = start
    let last = ''
    for (const line of hunk.lines) {
      const text = line.slice(1)
      if (line.startsWith('\\')) {
        // No newline at the end: of the side that the line before belongs to.
        if (last === '+') ending.after = false
        else ending.before = false
        continue
      }
      last = line[0] ?? ''
      if (last === '-') found.push(text)
      else {
        if (lines[at] !== text) return null
        if (last === ' ') found.push(text)
        at += 1
      }
    }
  }
  found.push(...lines.slice(at))
  // Without a word about it, the end of the file is in no hunk: it is as it was.
  const newline = ending.before && (whole || !ending.after)
  return found.join('\n') + (newline && found.length > 0 ? '\n' : '')
}

function fromHunks(file: FilePatch): { before: string; after: string } {
  const before: string[] = []
  const after: string[] = []
  for (const hunk of file.hunks) {
    for (const line of hunk.lines) {
      const text = line.slice(1)
      if (line.startsWith(' ')) {
        before.push(text)
        after.push(text)
      } else if (line.startsWith('-')) before.push(text)
      else if (line.startsWith('+')) after.push(text)
    }
  }
  const text = (lines: string[]): string => (lines.length === 0 ? '' : `${lines.join('\n')}\n`)
  return { before: text(before), after: text(after) }
}

/** Line of the file at a line of a side that holds only the hunks; both from 0. */
export function lineInFile(file: FilePatch, line: number, side: 'before' | 'after' = 'after'): number {
  const own = side === 'after' ? '+' : '-'
  let seen = 0
  for (const hunk of file.hunks) {
    const lines = hunk.lines.filter((one) => one.startsWith(' ') || one.startsWith(own)).length
    if (line < seen + lines) return (side === 'after' ? hunk.newStart : hunk.oldStart) - 1 + line - seen
    seen += lines
  }
  return line
}
