// What is looked for in a transcript: words, or calls and turns that failed. A hit is an item, or one call of a group.
import { matches, type Item, type ToolItem } from './items'

export interface Hit {
  item: Item
  /** The call within a group. */
  call: ToolItem | null
  key: string
  seq: number
}

const one = (item: Item, call: ToolItem | null = null): Hit => ({ item, call, key: (call ?? item).key, seq: (call ?? item).seq })

function among(items: readonly Item[], fits: (item: Item) => boolean): Hit[] {
  return items.flatMap((item) => (item.kind === 'tools' ? item.calls.filter(fits).map((call) => one(item, call)) : fits(item) ? [one(item)] : []))
}

/** Items with these words, which are in small letters. */
export function hits(items: readonly Item[], words: string): Hit[] {
  return words === '' ? [] : among(items, (item) => matches(item, 'all', words))
}

/** Calls and turns that failed. */
export function failures(items: readonly Item[]): Hit[] {
  return among(items, (item) => (item.kind === 'tool' && item.state === 'error') || (item.kind === 'end' && item.tone === 'bad'))
}

/** The next hit in a direction: from the one that is current, or from a place in the log where none is. -1: there is none. */
export function next(found: readonly Hit[], current: string | null, seq: number, by: 1 | -1): number {
  const at = found.findIndex((hit) => hit.key === current)
  if (at >= 0) return at + by >= found.length ? -1 : at + by
  return by < 0 ? found.findLastIndex((hit) => hit.seq <= seq) : found.findIndex((hit) => hit.seq >= seq)
}

/** Places of words in the text that is shown, not more than can be drawn quickly. */
export function places(root: Node, words: string, most = 400): Range[] {
  const found: Range[] = []
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  for (let node = texts.nextNode(); node !== null && found.length < most; node = texts.nextNode()) {
    const text = node.textContent?.toLowerCase() ?? ''
    // Some capitals have longer small letters: places would not be the same.
    if (text.length !== node.textContent?.length) continue
    for (let at = text.indexOf(words); at >= 0 && found.length < most; at = text.indexOf(words, at + words.length)) {
      const range = new Range()
      range.setStart(node, at)
      range.setEnd(node, at + words.length)
      found.push(range)
    }
  }
  return found
}

const marked = new Map<object, readonly Range[]>()

/** Marks these places for one transcript; several may be on a page. A browser without highlights shows none. */
export function highlight(of: object, ranges: readonly Range[]): void {
  if (!('highlights' in CSS)) return
  if (ranges.length === 0) marked.delete(of)
  else marked.set(of, ranges)
  CSS.highlights.set('found', new Highlight(...[...marked.values()].flat()))
}
