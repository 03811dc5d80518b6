// Code that will probably be wanted, loaded while nothing else is going on: the first look at a page does not pay for it,
// and it is there when the daemon goes away.

/** Loads these parts at leisure; ends with the answer, for an `$effect`. What fails is loaded again when it is wanted. */
export function ahead(parts: readonly (() => Promise<unknown>)[]): () => void {
  const load = (): void => {
    for (const part of parts) part().catch(() => undefined)
  }
  if (!('requestIdleCallback' in globalThis)) {
    const timer = setTimeout(load, 1_000)
    return () => clearTimeout(timer)
  }
  const handle = requestIdleCallback(load, { timeout: 4_000 })
  return () => cancelIdleCallback(handle)
}
