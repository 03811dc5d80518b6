// A long list in chunks, of which only those near what is seen exist. Where one ends is told by the numbers of its
// events, so that neither older ones nor a filter move it.
import type { Item } from './items'

export interface Chunk {
  key: string
  items: readonly Item[]
}

/** Numbers of events that share a chunk. */
const SIZE = 32
/** What an item takes, before it was ever laid out. */
const GUESS: Record<Item['kind'], number> = {
  user: 90, agent: 110, thought: 32, tool: 41, tools: 41, note: 90, gate: 60, plan: 100, run: 28, end: 46, compacted: 46, mark: 28,
}

/** Chunks of these items; those that hold what they held before are the same as before. */
export function chunked(items: readonly Item[], before: readonly Chunk[]): Chunk[] {
  const known = new Map(before.map((chunk) => [chunk.key, chunk]))
  const found: Chunk[] = []
  for (let from = 0; from < items.length; ) {
    const part = Math.floor((items[from]?.seq ?? 0) / SIZE)
    let to = from + 1
    while (to < items.length && Math.floor((items[to]?.seq ?? 0) / SIZE) === part) to += 1
    const key = `${part}`
    const old = known.get(key)
    if (old?.items.length === to - from && old.items.every((item, at) => item === items[from + at])) found.push(old)
    else found.push({ key, items: items.slice(from, to) })
    from = to
  }
  return found
}

export function guess(chunk: Chunk): number {
  return chunk.items.reduce((sum, item) => sum + GUESS[item.kind], 0)
}

/** The chunks between two heights, and what is above and below them. */
export function range(heights: readonly number[], from: number, to: number): { first: number; last: number; above: number; below: number } {
  let above = 0
  let first = 0
  while (first < heights.length - 1 && above + (heights[first] ?? 0) < from) above += heights[first++] ?? 0
  let last = first
  let at = above
  while (last < heights.length && (last === first || at < to)) at += heights[last++] ?? 0
  let below = 0
  for (let next = last; next < heights.length; next++) below += heights[next] ?? 0
  return { first, last, above, below }
}
