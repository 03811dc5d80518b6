// The page at an address, loaded when it is first opened. While it cannot be loaded nothing else is shown in its place,
// and it is tried again as soon as the daemon is back.
import type { Component } from 'svelte'

import { get } from './api/client'

export type Loader = () => Promise<{ default: Component }>

/** A page that fails twice on a live connection is of another build: only a reload finds its files. Not more often than this. */
const RELOAD_MS = 30_000
const RELOADED = 'lanyard.reloaded'

export class ShownPage {
  page: Component | null = $state.raw(null)
  /** What makes two addresses two pages: a session is not the one before with other contents. */
  key = $state('')
  /** It could not be loaded, and is tried again. */
  failed = $state(false)
  #load: Loader | null = null
  #wanted = ''
  #turn = 0

  /** Shows the page of an address. */
  show(key: string, load: Loader): void {
    this.#wanted = key
    this.#load = load
    void this.#try()
  }

  /** The connection is back. */
  retry(): void {
    if (this.failed) void this.#try(true)
  }

  async #try(live = false): Promise<void> {
    if (this.#load === null) return
    const turn = ++this.#turn
    try {
      const page = await this.#load()
      if (turn !== this.#turn) return
      this.page = page.default
      this.failed = false
    } catch {
      if (turn !== this.#turn) return
      if (live && (await answers()) && reload()) return
      if (turn !== this.#turn) return
      this.page = null
      this.failed = true
    }
    this.key = this.#wanted
  }
}

/** Whether the daemon is really there: a connection that broke is noticed only later. */
const answers = (): Promise<boolean> => get('/me').then(() => true, () => false)

/** A browser may keep the failure of a module for as long as the document lives. */
function reload(): boolean {
  const last = Number(sessionStorage.getItem(RELOADED) ?? 0)
  if (Date.now() - last < RELOAD_MS) return false
  sessionStorage.setItem(RELOADED, String(Date.now()))
  location.reload()
  return true
}
