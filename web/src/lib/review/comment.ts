// A comment as the API gives it, and what to say of it. The document describes it as a composition, which the generated
// types lose.
import type { Actor, LineSpan, ReviewBase, TurnEnd } from '../api/types'
import { words } from '../format'

export type Side = 'old' | 'new'

export interface Comment {
  comment: string
  path: string
  side?: Side
  lines: LineSpan
  quote: string
  text: string
  base: ReviewBase
  author: Actor
  at: string
  edited_at?: string | null
  state: 'draft' | 'sent' | 'answered' | 'unanswered'
  turn?: string
  number?: number | null
  how?: TurnEnd
  anchor: 'same' | 'moved' | 'stale'
  now?: LineSpan
}

/** Whether it can be changed, and sent. */
export const isOpen = (one: Comment): boolean => one.state === 'draft' || one.state === 'unanswered'

/** The lines as they are now; null when their text is gone. */
export const linesNow = (one: Comment): LineSpan | null => (one.anchor === 'stale' ? null : one.anchor === 'moved' ? (one.now ?? null) : one.lines)

export function stateWords(one: Comment): string {
  switch (one.state) {
    case 'draft':
      return 'Draft'
    case 'sent':
      return one.number == null ? 'Sent, waits for its turn' : `Sent with turn ${one.number}`
    case 'answered':
      return `Answered by turn ${one.number ?? ''}`.trim()
    case 'unanswered':
      return `Not answered: turn ${one.number ?? ''} ${words(one.how ?? 'ended')}`
  }
}

export const tone = (one: Comment): 'info' | 'ok' | 'warn' | undefined =>
  one.state === 'draft' ? undefined : one.state === 'sent' ? 'info' : one.state === 'answered' ? 'ok' : 'warn'

export const span = ({ first, last }: LineSpan): string => (first === last ? `line ${first}` : `lines ${first}–${last}`)
