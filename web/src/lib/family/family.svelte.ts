// A family as it is: asked as a tree, and again when somebody of it comes or goes; how each stands comes by the stream.
import { get } from '../api/client'
import type { Delegation, SessionRow, TreeNode } from '../api/types'
import { Ask } from '../ask.svelte'
import { directory } from '../live/directory.svelte'
import { members } from './layout'

type Kin = Pick<SessionRow, 'id' | 'title' | 'agent' | 'state' | 'cause' | 'lifecycle' | 'pending' | 'attention' | 'level' | 'since' | 'parent' | 'archived'>

interface Known {
  /** The session that was asked for. */
  self: string
  root: TreeNode
}

const route = (id: string): string => `/sessions/${encodeURIComponent(id)}`

export const delegation = (id: string): Promise<Delegation> => get<Delegation>(`${route(id)}/delegation`)

export class Family {
  readonly ask: Ask<Known>
  known: Known | null = $derived.by(() => this.ask.value)
  ids: ReadonlySet<string> = $derived(new Set(this.known === null ? [] : members(this.known.root).map((node) => node.id)))
  /** Who is of it by the stream, as one text: it changes when somebody comes or goes. */
  #present = $derived.by(() => {
    const ids = this.ids
    if (ids.size === 0) return ''
    const found: string[] = []
    for (const row of directory.rows.values()) if (ids.has(row.id) || (row.parent != null && ids.has(row.parent))) found.push(row.id)
    return found.join()
  })

  constructor(readonly id: string) {
    this.ask = new Ask(async () => {
      const stack = await delegation(id)
      const root = await get<TreeNode>(`${route(stack.call_stack[0]?.session ?? id)}/tree`)
      return { self: stack.session, root }
    })
  }

  /** Follows the stream; to be called in an `$effect`. */
  follow(): void {
    // Also when the daemon came back: an answer may have been lost with it.
    if (this.#present !== '' && directory.link === 'live') this.ask.soon(150)
  }
}

/** How somebody of a tree stands now. */
export function now(node: TreeNode): Kin {
  return directory.rows.get(node.id) ?? node
}

export const isLive = (kin: Pick<Kin, 'lifecycle'>): boolean => kin.lifecycle !== 'terminal'

/** What waits in a session, in a few words. */
export function waits(kin: Kin): string[] {
  const { pending } = kin
  const found: string[] = []
  if (pending.gates > 0) found.push(`approvals ${pending.gates}`)
  if (pending.stop_level > 0 && isLive(kin)) found.push(`stop level ${pending.stop_level}`)
  if (pending.guidance > 0) found.push(`guidance ${pending.guidance}`)
  if (pending.inbox > 0) found.push(pending.paused ? `inbox ${pending.inbox}, paused` : `inbox ${pending.inbox}`)
  if (pending.in_call) found.push('in a tool')
  return found
}
