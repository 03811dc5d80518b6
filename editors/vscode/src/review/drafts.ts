// Drafts of the daemon as the editor shows them, and lines of the editor as the daemon counts them.
import type { Actor, LineSpan, ReviewView } from '../api/schema.gen'

/** A comment that can be sent. The document describes it as a composition, which the generated types lose. */
export interface DraftView {
  comment: string
  path: string
  side?: 'old' | 'new'
  lines: LineSpan
  text: string
  author: Actor
  state: 'draft' | 'sent' | 'answered' | 'unanswered'
  anchor: 'same' | 'moved' | 'stale'
  now?: LineSpan
}

export const draftsOf = (review: Pick<ReviewView, 'comments'>): DraftView[] =>
  (review.comments as unknown as DraftView[]).filter((one) => one.state === 'draft' || one.state === 'unanswered')

interface Lines {
  path: string
  side: 'old' | 'new'
  first: number
  last: number
  quote: string
}

/** The lines of a selection, both ends from 0 in the shown text. A range that leaves its piece of a partial diff is its last line. */
export function placeIn(place: { path: string; side: 'before' | 'after' }, start: number, end: number, text: (at: number) => string, lineOf: (at: number) => number): Lines {
  const whole = lineOf(end) - lineOf(start) === end - start
  const from = whole ? Math.min(start, end) : end
  const shown = Array.from({ length: end - from + 1 }, (_, at) => text(from + at))
  return { path: place.path, side: place.side === 'before' ? 'old' : 'new', first: lineOf(from) + 1, last: lineOf(end) + 1, quote: shown.join('\n') }
}
