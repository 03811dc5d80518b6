// All sessions as they are, live. Frames are gathered and applied once per frame of the screen, so that a thousand
// changes cost one rendering.
import { path } from '../api/client'
import type { DirectoryFrame, SessionRow } from '../api/types'
import { Frame } from './frame'
import { Socket, type Link } from './socket'

/** Sessions the daemon is asked for; older ones are found by searching. */
export const LIMIT = 10_000

class Directory {
  link: Link = $state('connecting')
  /** Whether all there was at the beginning has arrived. */
  ready = $state(false)
  /** By id. Replaced as a whole when something changed: rows themselves are never changed. */
  rows: ReadonlyMap<string, SessionRow> = $state.raw(new Map())

  #held = new Map<string, SessionRow>()
  /** Sessions of the connection before that were not shown again yet. */
  #stale: Set<string> | null = null
  readonly #frame = new Frame(() => (this.rows = new Map(this.#held)))
  #socket: Socket | null = null

  open(refused: (why: string) => void): void {
    if (this.#socket !== null) return
    this.#socket = new Socket({
      where: () => path('/directory/stream', { limit: LIMIT }),
      frame: (frame) => this.apply(frame as DirectoryFrame),
      link: (link) => (this.link = link),
      refused,
    })
  }

  close(): void {
    this.#socket?.close()
    this.#socket = null
    this.#held = new Map()
    this.rows = new Map()
    this.ready = false
  }

  apply(frame: DirectoryFrame): void {
    switch (frame.type) {
      case 'connected':
        this.#stale = new Set(this.#held.keys())
        break
      case 'row':
        this.#stale?.delete(frame.row.id)
        this.#held.set(frame.row.id, frame.row)
        this.#frame.ask()
        break
      case 'gone':
        this.#held.delete(frame.session)
        this.#frame.ask()
        break
      case 'ready':
        // What was there before and did not come again was deleted meanwhile.
        for (const id of this.#stale ?? []) this.#held.delete(id)
        this.#stale = null
        this.ready = true
        this.#frame.ask()
        break
      default:
        break
    }
  }
}

export const directory = new Directory()
