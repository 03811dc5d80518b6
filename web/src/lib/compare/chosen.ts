// Sessions beside each other, as the address names them.
import { sessionPath } from '../router.svelte'

/** More do not fit beside each other. */
export const MOST = 4

/** The sessions of an address, each once. */
export function chosen(params: Record<string, string>): string[] {
  return [...new Set(['a', 'b', 'c', 'd'].flatMap((name) => params[name] ?? []))]
}

/** The address that shows these; one alone has a page of its own. */
export function comparePath(ids: readonly string[]): string {
  const each = [...new Set(ids)].slice(0, MOST)
  return each.length === 0 ? '/' : each.length === 1 ? sessionPath(each[0] ?? '') : `/compare/${each.map(encodeURIComponent).join('/')}`
}
