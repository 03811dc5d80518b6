// The gates on a page. A card keeps its place: one that is settled stays until it is dismissed or the page is left, and
// one that is new comes last, so that nothing slides under the pointer.
import { untrack } from 'svelte'

import { get } from '../api/client'
import type { FlowEventPage, FlowGateEntry, GateAnswered, GateEntry, GateList } from '../api/types'
import { outcomeOf, outcomeOfFlow, SETTLED, type Outcome } from './outcome'

export type Asked = { entry: GateEntry; flow?: undefined } | { flow: FlowGateEntry; entry?: undefined }
export type Card = Asked & { key: string; settled: Outcome | null }

export type Order = 'oldest' | 'newest'

const PAGE = 1_000

const openedAt = (asked: Asked): string => asked.entry?.opened_at ?? asked.flow?.gate.opened_at ?? ''

/** Open gates by key, in order. */
function openOf(list: GateList, order: Order): Map<string, Asked> {
  const all: [string, Asked][] = [
    ...list.flows.map((flow): [string, Asked] => [`flow:${flow.gate.id}`, { flow }]),
    ...list.gates.map((entry): [string, Asked] => [`gate:${entry.session}:${entry.id}`, { entry }]),
  ]
  const sign = order === 'newest' ? -1 : 1
  return new Map(all.sort(([, a], [, b]) => sign * openedAt(a).localeCompare(openedAt(b))))
}

/** The next cards: those that are there keep their places, new ones follow while fewer than `most` are open. */
export function arranged(cards: readonly Card[], open: ReadonlyMap<string, Asked>, dismissed: ReadonlySet<string>, most: number): Card[] {
  const next = cards.map((card): Card => {
    const asked = open.get(card.key)
    if (asked !== undefined) return { ...asked, key: card.key, settled: null }
    return card.settled === null ? { ...card, settled: SETTLED } : card
  })
  const placed = new Set(next.map((card) => card.key))
  let room = most - next.filter((card) => card.settled === null).length
  for (const [key, asked] of open) {
    if (room <= 0) break
    if (placed.has(key) || dismissed.has(key)) continue
    next.push({ ...asked, key, settled: null })
    room -= 1
  }
  return next
}

export class GateBoard {
  cards: readonly Card[] = $state.raw([])
  /** Open gates that have no card here. */
  further = $state(0)
  settled = $derived(this.cards.filter((card) => card.settled !== null).length)
  #dismissed = new Set<string>()
  #order: Order = 'oldest'

  /** Takes each new list of open gates; for an `$effect`. */
  see(list: GateList, most: number, order: Order = 'oldest'): void {
    untrack(() => {
      const open = openOf(list, order)
      // Another order is asked for by hand, and begins anew.
      const before = order === this.#order ? this.cards : []
      this.#order = order
      for (const key of this.#dismissed) if (!open.has(key)) this.#dismissed.delete(key)
      const next = arranged(before, open, this.#dismissed, most)
      const placed = new Set(next.map((card) => card.key))
      this.further = [...open.keys()].filter((key) => !placed.has(key) && !this.#dismissed.has(key)).length
      this.cards = next
      for (const card of next) if (card.settled === SETTLED) void this.#learn(card)
    })
  }

  dismiss(key: string): void {
    this.#dismissed.add(key)
    this.cards = this.cards.filter((card) => card.key !== key)
  }

  dismissSettled(): void {
    this.cards = this.cards.filter((card) => card.settled === null)
  }

  async #learn(card: Card): Promise<void> {
    // Replaced at once, so that it is asked for only once.
    this.#settle(card.key, { ...SETTLED })
    try {
      const outcome = card.entry ? await ofSession(card.entry) : await ofFlow(card.flow)
      if (outcome !== null) this.#settle(card.key, outcome)
    } catch {
      // The card says that the gate is settled; how is not known while the daemon does not answer.
    }
  }

  #settle(key: string, settled: Outcome): void {
    this.cards = this.cards.map((card) => (card.key === key && card.settled !== null ? { ...card, settled } : card))
  }
}

async function ofSession(entry: GateEntry): Promise<Outcome | null> {
  const list = await get<GateList>(`/sessions/${encodeURIComponent(entry.session)}/gates`)
  const found = list.gates.find((gate) => gate.id === entry.id)
  return found === undefined ? null : outcomeOf(entry, found.status)
}

async function ofFlow({ flow, gate }: FlowGateEntry): Promise<Outcome | null> {
  for (let after = 0; ; ) {
    const page = await get<FlowEventPage>(`/flows/${encodeURIComponent(flow)}/events`, { after, limit: PAGE })
    for (const event of page.events) {
      if (event.type === 'flow.gate_answered' && event.data.gate === gate.id) {
        return outcomeOfFlow({ kind: gate.kind, answered: event.data as GateAnswered })
      }
    }
    const last = page.events.at(-1)?.seq ?? page.head
    if (last >= page.head) return null
    after = last
  }
}
