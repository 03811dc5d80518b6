// What somebody chose on the overview. It stays while other pages are looked at.
import type { SessionRow } from '../api/types'
import { short } from '../format'
import { brief } from '../text/clean'

class Desk {
  /** The row that keys act on. */
  selected: string | null = $state(null)
  /** Rows that one action is for. */
  marked: ReadonlySet<string> = $state.raw(new Set())
  folded: ReadonlySet<string> = $state.raw(new Set())
  collapsed = $state(false)
  /** The mouse is on the list: nothing may slide away under it. */
  pointing = $state(false)
  /** Where a range of marks begins. */
  #from: string | null = null

  fold(key: string, folded = !this.folded.has(key)): void {
    this.folded = changed(this.folded, [key], folded)
  }

  mark(key: string, marked = !this.marked.has(key)): void {
    this.#from = key
    this.marked = changed(this.marked, [key], marked)
  }

  /** Marks all from the row that was marked or selected last to this one, in the order they are shown. */
  markTo(key: string, order: readonly string[]): void {
    const from = order.indexOf(this.#from ?? this.selected ?? key)
    const to = order.indexOf(key)
    if (to < 0) return
    const range = from < 0 ? [key] : order.slice(Math.min(from, to), Math.max(from, to) + 1)
    this.#from ??= this.selected
    this.marked = changed(this.marked, range, true)
  }

  unmark(): void {
    this.#from = null
    this.marked = new Set()
  }
}

function changed(set: ReadonlySet<string>, keys: readonly string[], there: boolean): ReadonlySet<string> {
  const next = new Set(set)
  for (const key of keys) {
    if (there) next.add(key)
    else next.delete(key)
  }
  return next
}

export const desk = new Desk()

/** What people see a session under. */
export function nameOf(row: SessionRow): string {
  return row.title ? brief(row.title, 160) : short(row.id)
}
