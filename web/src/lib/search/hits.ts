// Texts that were found: their words, where they are opened, and what somebody who still types means.
import type { SearchHit } from '../api/types'
import { sessionPath } from '../router.svelte'

export interface Piece {
  text: string
  marked: boolean
}

/** A snippet in pieces, marked ones and others. Places are counted in characters, not in units of UTF-16. */
export function pieces(snippet: SearchHit['snippet']): Piece[] {
  const chars = [...snippet.text]
  const found: Piece[] = []
  const add = (from: number, to: number, marked: boolean): void => {
    if (to > from) found.push({ text: chars.slice(from, to).join(''), marked })
  }
  let at = 0
  for (const [from = 0, to = 0] of snippet.marks) {
    add(at, from, false)
    add(from, to, true)
    at = to
  }
  add(at, chars.length, false)
  return found
}

/** Words that the page of a session marks at most. */
const MARKED_MAX = 8

/** The session at that event, with the words marked. */
export function hitPath(hit: SearchHit): string {
  const words = [...new Set(pieces(hit.snippet).filter((piece) => piece.marked).map((piece) => piece.text.toLowerCase()))]
  const query = new URLSearchParams([['at', String(hit.seq)], ...words.slice(0, MARKED_MAX).map((word) => ['mark', word])])
  return `${sessionPath(hit.session)}?${query.toString()}`
}

/** The query of somebody who is not done with the last word yet: it may go on. */
export function unfinished(text: string): string {
  const quotes = text.split('"').length - 1
  return quotes % 2 === 0 && /(^|\s)[\p{L}\p{N}_]{3,}$/u.test(text) ? `${text}*` : text
}

export const KINDS = [
  { value: '', label: 'All' },
  { value: 'message', label: 'Messages' },
  { value: 'tool', label: 'Tool calls' },
  { value: 'result', label: 'Results' },
] as const

const DAY_MS = 86_400_000
export const SPANS = [
  { value: '', label: 'Any time', ms: 0 },
  { value: 'day', label: 'Last day', ms: DAY_MS },
  { value: 'week', label: 'Last week', ms: 7 * DAY_MS },
  { value: 'month', label: 'Last month', ms: 30 * DAY_MS },
] as const

/** The time from which on is searched. */
export function since(span: string, now: number): string | null {
  const ms = SPANS.find((one) => one.value === span)?.ms ?? 0
  return ms === 0 ? null : new Date(now - ms).toISOString()
}
