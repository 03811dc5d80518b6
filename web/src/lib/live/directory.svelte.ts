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
  /** Counts what was drawn: read in an effect, it runs again after the next change of any session. */
  drawn = $state(0)
  /** By id. Replaced as a whole when something changed: rows themselves are never changed. */
  rows: ReadonlyMap<string, SessionRow> = $state.raw(new Map())

  #held = new Map<string, SessionRow>()
  /** Sessions of the connection before that were not shown again yet. */
  #stale: Set<string> | null = null
  readonly #frame = new Frame(() => {
    this.rows = new Map(this.#held)
    this.drawn += 1
  })
  #socket: Socket | null = null

  #refused: (why: string) => void = () => undefined
  #waiting: ((rows: number) => void)[] = []

  open(refused: (why: string) => void): void {
    if (this.#socket !== null) return
    this.#refused = refused
    this.#socket = new Socket({
      where: () => path('/directory/stream', { limit: LIMIT }),
      frame: (frame) => this.apply(frame as DirectoryFrame),
      link: (link) => (this.link = link),
      refused,
    })
  }

  /** Asks for everything again; answers how many sessions there are once all of them have come. */
  refresh(): Promise<number> {
    this.#socket?.close()
    this.#socket = null
    const done = new Promise<number>((ready) => this.#waiting.push(ready))
    this.open(this.#refused)
    return done
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
        for (const done of this.#waiting.splice(0)) done(this.#held.size)
        this.#frame.ask()
        break
      default:
        break
    }
  }
}

export const directory = new Directory()
