// Calls of one kind that follow each other share one line. A thousand of them are one item, and the failed ones stay open.
import { took } from '../../format'
import type { Item, ToolItem, ToolsItem } from './items'

/** Fewer calls than this stay as they are. */
const FEW = 3

const LOOKS = /read|grep|glob|search|find|list|view|look|fetch|^ls$|^cat$/i
const RUNS = /bash|shell|exec|terminal|command|^run$/i
/** Changes are what one wants to see. */
const CHANGES = /edit|write|patch|create|replace|delete|move/i

/** What makes two calls alike; null for one that always stands by itself. */
export function kindOf(item: ToolItem): string | null {
  if (item.files.length > 0 || CHANGES.test(item.tool)) return null
  return LOOKS.test(item.tool) ? 'look' : RUNS.test(item.tool) ? 'run' : item.tool
}

export class Grouped {
  #known = new Map<string, ToolsItem>()

  /** The items with calls of one kind together. A group that holds what it held before is the same as before. */
  of(items: readonly Item[]): readonly Item[] {
    const found: Item[] = []
    const known = new Map<string, ToolsItem>()
    for (let from = 0; from < items.length; ) {
      const item = items[from] as Item
      const kind = item.kind === 'tool' ? kindOf(item) : null
      let to = from + 1
      for (let next = items[to]; kind !== null && next?.kind === 'tool' && kindOf(next) === kind; next = items[to]) to += 1
      if (to - from < FEW) found.push(...items.slice(from, to))
      else {
        const group = this.#group(items.slice(from, to) as ToolItem[])
        known.set(group.key, group)
        found.push(group)
      }
      from = to
    }
    this.#known = known
    return found
  }

  #group(calls: readonly ToolItem[]): ToolsItem {
    const [first] = calls as [ToolItem]
    const key = `tools${first.seq}`
    const old = this.#known.get(key)
    if (old?.calls.length === calls.length && old.calls.every((call, at) => call === calls[at])) return old
    return {
      kind: 'tools', key, calls, seq: first.seq, last: Math.max(...calls.slice(-1).map((call) => call.last), first.last), at: first.at,
      sum: calls.reduce((sum, call) => sum + call.sum, 0),
    }
  }
}

/** `Ran 25 tools, 1 failed, 3.1 s`. */
export function summary(calls: readonly ToolItem[]): string {
  const failed = calls.filter((call) => call.state === 'error').length
  const open = calls.filter((call) => call.state === 'open').length
  const running = calls.filter((call) => call.state === 'running').length
  const ms = calls.reduce((sum, call) => sum + (call.ms ?? 0), 0)
  return [
    `Ran ${(calls.length - running).toLocaleString('en-US')} tools`,
    failed > 0 ? `${failed.toLocaleString('en-US')} failed` : '',
    open > 0 ? `${open.toLocaleString('en-US')} never came back` : '',
    running > 0 ? `${running} running` : '',
    ms >= 1 ? took(ms) : '',
  ].filter((part) => part !== '').join(', ')
}

/** `read 20 · grep 5`, the most frequent first. */
export function names(calls: readonly ToolItem[], most = 3): string {
  const counts = new Map<string, number>()
  for (const call of calls) counts.set(call.tool, (counts.get(call.tool) ?? 0) + 1)
  const all = [...counts].sort(([, a], [, b]) => b - a)
  return all.slice(0, most).map(([name, count]) => `${name} ${count.toLocaleString('en-US')}`).join(' · ') + (all.length > most ? ' …' : '')
}
