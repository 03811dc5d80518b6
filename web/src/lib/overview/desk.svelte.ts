// What somebody chose on the overview. It stays while other pages are looked at.
import type { SessionRow } from '../api/types'
import { short } from '../format'
import { brief } from '../text/clean'
import { Details } from './details.svelte'

class Desk {
  selected: string | null = $state(null)
  folded: ReadonlySet<string> = $state.raw(new Set())
  collapsed = $state(false)
  readonly details = new Details()

  fold(key: string, folded = !this.folded.has(key)): void {
    const next = new Set(this.folded)
    if (folded) next.add(key)
    else next.delete(key)
    this.folded = next
  }
}

export const desk = new Desk()

/** What people see a session under. */
export function nameOf(row: SessionRow): string {
  return row.title ? brief(row.title, 160) : short(row.id)
}
