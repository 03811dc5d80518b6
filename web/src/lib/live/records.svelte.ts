// Changes of records, live: one stream for all pages. A page asks again when a record of its kinds changed.
import { path } from '../api/client'
import { Frame } from './frame'
import { Socket, type Link } from './socket'

export type Kind = 'task' | 'plan' | 'flow' | 'notification' | 'mail'
const KINDS: readonly Kind[] = ['task', 'plan', 'flow', 'notification', 'mail']

/** A frame of the stream, as far as it matters here. */
export interface RecordFrame {
  type: string
  kind?: string
}

class Records {
  link: Link = $state('connecting')
  /** Counts changes of each kind: read in an effect, it runs again after the next. */
  seen: Readonly<Record<Kind, number>> = $state.raw({ task: 0, plan: 0, flow: 0, notification: 0, mail: 0 })

  #changed = new Set<Kind>()
  readonly #frame = new Frame(() => this.#draw())
  #socket: Socket | null = null

  open(refused: (why: string) => void): void {
    if (this.#socket !== null) return
    this.#socket = new Socket({
      where: () => path('/records/stream'),
      frame: (frame) => this.apply(frame as RecordFrame),
      link: (link) => (this.link = link),
      refused,
    })
  }

  close(): void {
    this.#socket?.close()
    this.#socket = null
  }

  apply(frame: RecordFrame): void {
    // Whatever changed while there was no connection is asked for again.
    const changed = frame.type === 'connected' ? KINDS : KINDS.filter((kind) => kind === frame.kind)
    if (changed.length === 0) return
    for (const kind of changed) this.#changed.add(kind)
    this.#frame.ask()
  }

  #draw(): void {
    const seen = { ...this.seen }
    for (const kind of this.#changed) seen[kind] += 1
    this.#changed.clear()
    this.seen = seen
  }
}

export const records = new Records()
