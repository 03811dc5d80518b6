// Messages of the browser for what comes while no page of Lanyard is looked at. Of several tabs one shows them.
import type { Need } from '../overview/needs'
import { brief } from '../text/clean'

/** A page that is looked at says so this often; within the double of it, nobody needs a message. */
const LOOKED = 'lanyard.looked'
const LOOK_MS = 1_000
const LOCK = 'lanyard.notices'

/** What is new in a list, in few words. */
export function titleOf(need: Need): { title: string; body: string; to: string } {
  switch (need.kind) {
    case 'gate':
      return { title: `Approval: ${brief(need.gate.title, 120)}`, body: need.row?.title ?? '', to: '/inbox' }
    case 'flow':
      return { title: `Approval: ${brief(need.flow.gate.reason, 120)}`, body: need.flow.title, to: '/inbox' }
    case 'session':
      return { title: need.row.title ?? 'A session needs you', body: need.reasons.join(', ').replaceAll('_', ' '), to: `/sessions/${encodeURIComponent(need.row.id)}` }
    case 'alert':
      return { title: brief(need.alert.title, 120), body: '', to: '/inbox' }
  }
}

class Notices {
  readonly possible = typeof Notification !== 'undefined'
  permission: NotificationPermission = $state(typeof Notification === 'undefined' ? 'denied' : Notification.permission)
  /** Whether this tab shows them. */
  #leads = false
  #known: Set<string> | null = null

  async ask(): Promise<void> {
    this.permission = await Notification.requestPermission()
  }

  start(): () => void {
    const stop = new AbortController()
    // Held as long as the tab lives; the next tab in line gets it then.
    void navigator.locks?.request(LOCK, { signal: stop.signal }, () => {
      this.#leads = true
      return new Promise<void>((done) => stop.signal.addEventListener('abort', () => done()))
    }).catch(() => undefined)
    const look = (): void => {
      if (document.visibilityState === 'visible' && document.hasFocus()) localStorage.setItem(LOOKED, String(Date.now()))
    }
    look()
    const timer = setInterval(look, LOOK_MS)
    return () => {
      clearInterval(timer)
      stop.abort()
      this.#leads = false
    }
  }

  /** Takes each new list of needs. What was there at first is nothing new. */
  see(list: readonly Need[], open: (path: string) => void): void {
    const known = this.#known
    // The row of a session says that it asks before its question is known.
    const settled = list.filter((need) => need.kind !== 'session' || need.reasons.some((reason) => reason !== 'gate'))
    this.#known = new Set(settled.map((need) => need.key))
    if (known === null || !this.#leads || this.permission !== 'granted' || Date.now() - Number(localStorage.getItem(LOOKED) ?? 0) < 2 * LOOK_MS) return
    for (const need of settled.filter((one) => !known.has(one.key))) {
      const { title, body, to } = titleOf(need)
      const shown = new Notification(title, { body, tag: need.key, icon: '/icon.svg' })
      shown.onclick = () => {
        window.focus()
        open(to)
        shown.close()
      }
    }
  }
}

export const notices = new Notices()
