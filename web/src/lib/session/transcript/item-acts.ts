// What can be done with an item of a transcript beside reading it.
import { sessionPath } from '../../router.svelte'
import { copy } from '../../ui/copy'
import type { MenuItem } from '../../ui/Menu.svelte'
import type { Item } from './items'

/** What is asked about first. */
export type Asked =
  | { as: 'fork'; at: number; text: string; files: string | null }
  | { as: 'rollback'; to: string; label: string }
  | { as: 'waterfall'; turn: string }

interface Around {
  session: string
  operator: boolean
  /** Whether the workspace has checkpoints. */
  kept: boolean
  /** Whether the message is shown as it was written. */
  raw: boolean
  onraw: (raw: boolean) => void
  onask: (asked: Asked) => void
}

export function itemActs(item: Item, around: Around): readonly MenuItem[] {
  const { session, operator, kept, raw, onraw, onask } = around
  const link: MenuItem = { label: 'Copy a link to here', icon: 'link', run: () => void copy(`${location.origin}${sessionPath(session)}?at=${item.seq}`) }
  if (item.kind === 'user') {
    const { begins, seq, text } = item
    const items: MenuItem[] = [
      { label: 'Copy the message', icon: 'copy', run: () => void copy(text) },
      { label: raw ? 'Show it formatted' : 'Show it as written', icon: 'eye', run: () => onraw(!raw) },
      link,
    ]
    if (begins != null) items.push({ label: 'Where the time went', icon: 'insight', title: 'calls, waits and model time of this turn', run: () => onask({ as: 'waterfall', turn: begins }) })
    if (!operator || begins == null || seq <= 1) return items
    items.push({ label: 'Fork before this message…', icon: 'fork', title: 'a new session, with the message to change and send', run: () => onask({ as: 'fork', at: seq - 1, text, files: kept ? begins : null }) })
    if (kept) items.push({ label: 'Roll back files to before it…', icon: 'reset', title: 'the workspace as the turn began', run: () => onask({ as: 'rollback', to: begins, label: 'at the start of this turn' }) })
    return items
  }
  if (item.kind !== 'end') return []
  const { ends, seq } = item
  const checkpoint = kept && ends ? `${ends}-end` : null
  const items = [link]
  if (!operator) return items
  items.push({ label: 'Fork from here…', icon: 'fork', title: 'a new session that knows all up to here', run: () => onask({ as: 'fork', at: seq, text: '', files: checkpoint }) })
  if (checkpoint !== null) items.push({ label: 'Roll back files to here…', icon: 'reset', title: 'the workspace as the turn ended', run: () => onask({ as: 'rollback', to: checkpoint, label: 'at the end of this turn' }) })
  return items
}

/** An answer from its beginning on, whose parts may be several items. */
export function wholeAnswer(shown: readonly Item[], item: Item): string {
  const from = shown.findIndex((one) => one.key === item.key)
  let text = ''
  for (let at = from, one = shown[at]; one?.kind === 'agent' && (at === from || one.rest); one = shown[++at]) text += one.text
  return text
}
