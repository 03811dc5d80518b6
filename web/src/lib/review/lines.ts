// Rows of a diff for reviewing: beside each other, with the words that differ, and the lines that a selection means.
import type { LineSpan } from '../api/types'
import type { Row } from '../diff/diff'
import type { Comment, Side } from './comment'
import { linesNow } from './comment'
import { wordChanges, type Part } from './words'

/** Two rows in one line of the screen; the same row twice where nothing changed. */
export interface Pair {
  left: number | null
  right: number | null
}

/** Rows beside each other, by their index: what goes on the left, what comes on the right. */
export function pairs(rows: readonly Row[]): Pair[] {
  const found: Pair[] = []
  let at = 0
  while (at < rows.length) {
    const sign = rows[at]?.sign
    if (sign === ' ' || sign === '…') {
      found.push({ left: at, right: at })
      at++
      continue
    }
    const gone = run(rows, at, '-')
    const come = run(rows, gone, '+')
    const [olds, news] = [gone - at, come - gone]
    for (let i = 0; i < Math.max(olds, news); i++) found.push({ left: i < olds ? at + i : null, right: i < news ? gone + i : null })
    at = come
  }
  return found
}

function run(rows: readonly Row[], from: number, sign: Row['sign']): number {
  let at = from
  while (rows[at]?.sign === sign) at++
  return at
}

/** The parts of lines that changed in a few words, by the index of their row. */
export function marked(rows: readonly Row[]): Map<number, Part[]> {
  const found = new Map<number, Part[]>()
  for (const { left, right } of pairs(rows)) {
    if (left === null || right === null || left === right) continue
    const changes = wordChanges(rows[left]?.text ?? '', rows[right]?.text ?? '')
    if (changes === null) continue
    found.set(left, changes[0])
    found.set(right, changes[1])
  }
  return found
}

export interface Selected {
  side: Side
  lines: LineSpan
  quote: string
  /** The row the comment is written below. */
  row: number
}

const number = (row: Row | undefined, side: Side): number | null => (row === undefined ? null : side === 'old' ? row.old : row.new)

/** The lines between two rows: those before the change where nothing else is selected. Null across a gap. */
export function selected(rows: readonly Row[], from: number, to: number, only?: Side): Selected | null {
  const [first, last] = [Math.min(from, to), Math.max(from, to)]
  const within = rows.slice(first, last + 1)
  if (within.length === 0 || within.some((row) => row.sign === '…')) return null
  const side: Side = only ?? (within.every((row) => row.sign === '-') ? 'old' : 'new')
  const lines = within.filter((row) => row.sign === ' ' || row.sign === (side === 'old' ? '-' : '+'))
  const [begin, end] = [number(lines[0], side), number(lines.at(-1), side)]
  if (begin === null || end === null) return null
  return { side, lines: { first: begin, last: end }, quote: lines.map((row) => row.text).join('\n'), row: last }
}

/** Comments by the row they stand below; those whose lines are not shown come under -1. */
export function placed(rows: readonly Row[], comments: readonly Comment[]): Map<number, Comment[]> {
  const found = new Map<number, Comment[]>()
  for (const one of comments) {
    const side = one.side ?? 'new'
    const last = linesNow(one)?.last
    const row = last === undefined ? -1 : rows.findIndex((row) => row.sign !== '…' && number(row, side) === last)
    found.set(row, [...(found.get(row) ?? []), one])
  }
  return found
}
