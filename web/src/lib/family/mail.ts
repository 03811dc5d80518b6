// Mail of a family: what lies in the boxes of its sessions and of the tasks they work at, and what they sent.
import { get } from '../api/client'
import type { Mail, MailPage, WorkerRow } from '../api/types'
import type { Tone } from '../states'

export const MAIL_STATES: Record<Mail['state'], { label: string; tone: Tone }> = {
  pending: { label: 'waits', tone: 'info' },
  given: { label: 'given', tone: 'info' },
  shown: { label: 'shown', tone: 'info' },
  acknowledged: { label: 'acknowledged', tone: 'ok' },
  dead: { label: 'nobody can take it', tone: 'bad' },
}

/** Letters looked at: more than that are told as "and more". */
const PAGES_MOST = 4
const PAGE = 500

interface Post {
  mail: Mail[]
  more: boolean
}

/** What is on its way and what nobody can take, of everybody. */
export async function open(): Promise<Post> {
  const [waiting, dead] = await Promise.all([all({}), all({ dead: true })])
  return { mail: [...dead.mail, ...waiting.mail], more: waiting.more || dead.more }
}

async function all(query: Record<string, boolean>): Promise<Post> {
  const mail: Mail[] = []
  let cursor: string | undefined
  for (let page = 0; page < PAGES_MOST; page++) {
    const found = await get<MailPage>('/mail', { ...query, limit: PAGE, cursor })
    mail.push(...found.mail)
    if (found.next == null) return { mail, more: false }
    cursor = found.next
  }
  return { mail, more: true }
}

/** The boxes of a family: of its sessions, and of the tasks these work at. */
export function boxes(ids: ReadonlySet<string>, workers: readonly Pick<WorkerRow, 'task' | 'session'>[]): Set<string> {
  const found = new Set(ids)
  for (const worker of workers) if (worker.session != null && ids.has(worker.session)) found.add(worker.task)
  return found
}

export function ofFamily(mail: readonly Mail[], found: ReadonlySet<string>): Mail[] {
  const has = (id: string | null | undefined): boolean => id != null && found.has(id)
  return mail.filter((one) => has(one.to) || has(one.from.session) || has(one.from.task) || has(one.forwarded_from))
}
