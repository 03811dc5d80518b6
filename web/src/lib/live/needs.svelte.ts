// What waits for a person, for all pages: open gates and notifications. Asked again when a session that asks something
// comes or goes, and when a flow or a notification changed.
import { get } from '../api/client'
import { Ask } from '../ask.svelte'
import type { GateList, NotificationPage } from '../api/types'
import { needsOf } from '../overview/needs'
import { directory } from './directory.svelte'
import { records } from './records.svelte'

class Needs {
  gateList = new Ask<GateList>(() => get<GateList>('/gates'))
  notificationPage = new Ask<NotificationPage>(() => get<NotificationPage>('/notifications', { open: true, limit: 100 }))
  gates = $derived((this.gateList.value?.gates.length ?? 0) + (this.gateList.value?.flows?.length ?? 0))
  /** Each once, the oldest first. */
  readonly list = $derived(needsOf(directory.rows, this.gateList.value, this.notificationPage.value))
  /** What snoozed notifications are about. */
  readonly snoozed = $derived(
    (this.notificationPage.value?.notifications ?? []).filter((one) => one.status === 'snoozed').flatMap((one) => (one.subject == null ? [] : [one.subject])),
  )
  /** Sessions with something open, as one text: it changes when any of them does. */
  readonly asking = $derived(
    [...directory.rows.values()].filter((row) => row.pending.gates > 0).map((row) => `${row.id}:${row.pending.gates}`).join(),
  )

  /** Follows sessions, flows and notifications; to be called in an `$effect`. */
  follow(): void {
    this.gateList.when(this.asking, records.seen.flow)
  }

  /** As `follow`, for notifications. */
  followNotifications(): void {
    this.notificationPage.when(this.asking, records.seen.notification)
  }
}

export const needs = new Needs()
