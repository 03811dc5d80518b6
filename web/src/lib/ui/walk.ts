// Keys for a list of links or buttons: j and k go from one to the next.
import type { Key } from '../keys.svelte'

export function walk(selector: string): Key[] {
  const go = (by: number): void => {
    const all = [...document.querySelectorAll<HTMLElement>(selector)]
    const at = all.indexOf(document.activeElement as HTMLElement)
    all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + by))]?.focus()
  }
  return [
    { key: 'j', does: 'Next in the list', run: () => go(1) },
    { key: 'k', does: 'Previous in the list', run: () => go(-1) },
  ]
}
