// What can be gone to by typing a part of its name: sessions and pages.
import type { SessionRow } from '../api/types'
import { base, short } from '../format'
import { OPERATOR_STATES, operatorState, type Operated, type OperatorState } from '../operator'
import { sessionPath } from '../router.svelte'
import { line } from '../text/clean'

export interface Place {
  to: string
  label: string
  /** What it is, beside the label. */
  about: string
  /** All that is searched, in small letters. */
  words: string
  /** Among equally good ones the higher comes first. */
  weight: number
}

/** How soon somebody wants to see a session in this state. */
const WEIGHTS: Record<OperatorState, number> = {
  needs_answer: 6,
  failed: 5,
  ready_for_review: 4,
  waiting_for_limit: 3,
  working: 2,
  idle: 1,
  done: 0,
}

export function page(to: string, label: string): Place {
  return { to, label, about: 'page', words: label.toLowerCase(), weight: 0 }
}

export function action(to: string, label: string): Place {
  return { to, label, about: 'action', words: label.toLowerCase(), weight: 0 }
}

export function session(row: SessionRow): Place {
  const label = row.title ? line(row.title).slice(0, 160) : short(row.id)
  const name = operatorState(row as Operated)
  const about = [OPERATOR_STATES[name].label, row.agent ?? '', row.workspace ? base(row.workspace) : ''].filter((part) => part !== '').join(' · ')
  return { to: sessionPath(row.id), label, about, words: `${label} ${about} ${row.id}`.toLowerCase(), weight: WEIGHTS[name] }
}

/** Places in which each word is found; those whose label begins with the text first, then by weight, then as they came. */
export function rank(places: readonly Place[], text: string, most: number): Place[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '')
  const whole = words.join(' ')
  const good = (place: Place): number => {
    const label = place.label.toLowerCase()
    return whole !== '' && label.startsWith(whole) ? 2 : words.every((word) => label.includes(word)) ? 1 : 0
  }
  return places
    .filter((place) => words.every((word) => place.words.includes(word)))
    .map((place, at) => ({ place, at, good: good(place) }))
    .sort((a, b) => b.good - a.good || b.place.weight - a.place.weight || a.at - b.at)
    .slice(0, most)
    .map(({ place }) => place)
}
