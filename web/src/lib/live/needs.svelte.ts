// What waits for a person, for all pages: open gates and notifications. Asked again when a session that asks something
// comes or goes, and every so often for what has no stream.
import { get } from '../api/client'
import { Ask } from '../ask.svelte'
import type { GateList, NotificationPage } from '../api/types'
import { directory } from './directory.svelte'

const EVERY_MS = 5_000

class Needs {
  gateList = new Ask<GateList>(() => get<GateList>('/gates'))
  notificationPage = new Ask<NotificationPage>(() => get<NotificationPage>('/notifications', { open: true, limit: 100 }))
  gates = $derived((this.gateList.value?.gates.length ?? 0) + (this.gateList.value?.flows?.length ?? 0))
  notifications = $derived(this.notificationPage.value?.notifications.filter((one) => one.status === 'new').length ?? 0)
  /** Sessions with something open, as one text: it changes when any of them does. */
  #asking = $derived(
    [...directory.rows.values()].filter((row) => row.pending.gates > 0).map((row) => `${row.id}:${row.pending.gates}`).join(),
  )

  /** For an `$effect` of the page as a whole. */
  start(): () => void {
    const gates = this.gateList.every(EVERY_MS)
    const notifications = this.notificationPage.every(EVERY_MS)
    return () => {
      gates()
      notifications()
    }
  }

  /** Follows the directory; to be called in an `$effect`. */
  follow(): void {
    void this.#asking
    this.gateList.soon(50)
    this.notificationPage.soon(400)
  }
}

export const needs = new Needs()
