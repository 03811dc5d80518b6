// Goes from hit to hit in a transcript, and into the part of the log that is not loaded yet.
import { next, type Hit } from './find'

/** Events that one press looks through in the past, with how many at a time; and those that are held for looking at all. */
const FAR = 10_000
const PIECE = 2_000
export const FARTHEST = 60_000

/** The transcript that is looked through. */
interface Searched {
  /** The first event that is loaded, and how many are. */
  first: () => number
  held: () => number
  hasOlder: () => boolean
  older: (events: number) => Promise<boolean>
  /** The place that is looked at, as an event. */
  place: () => number
  show: (hit: Hit) => Promise<void>
  /** The newest event before another one that the daemon's index finds; null where it finds none. */
  indexed: (before: number) => Promise<number | null>
  /** There are more events than are searched. */
  onend: () => void
}

export class Finder {
  /** The hit that is shown. */
  current: string | null = $state(null)
  searching = $state(false)
  #origin = Infinity

  constructor(
    private readonly list: () => readonly Hit[],
    private readonly log: Searched,
  ) {}

  /** Other words: from the place where looking began, which the hits of fewer letters have left. */
  async begin(fresh: boolean): Promise<void> {
    if (fresh) this.#origin = this.log.place()
    this.current = null
    const at = next(this.list(), null, this.#origin, -1)
    await this.#go(at < 0 ? 0 : at)
  }

  /** Goes to the next hit or to the one before; round from one end to the other once all of the log was looked at. */
  async seek(by: 1 | -1): Promise<void> {
    if (this.searching) return
    let at = next(this.list(), this.current, this.log.place(), by)
    if (at < 0 && by < 0 && this.log.hasOlder()) {
      await this.further()
      return
    }
    if (at < 0) at = by < 0 ? this.list().length - 1 : 0
    await this.#go(at)
  }

  /** Asks the daemon's index for the newest hit before the first event that is loaded, and goes there; without one it looks
   *  through the events themselves. */
  async further(): Promise<void> {
    if (this.searching) return
    const edge = this.log.first()
    let at = -1
    this.searching = true
    try {
      // The index knows whole words and their beginnings; what it does not find is looked for in the events themselves.
      const aim = await this.log.indexed(edge)
      const near = (): boolean => (aim === null ? edge - this.log.first() < FAR : this.log.first() > aim)
      while (at < 0 && near() && this.log.held() < FARTHEST && (await this.log.older(PIECE))) {
        await new Promise(requestAnimationFrame)
        at = this.list().findLastIndex((hit) => hit.seq < edge)
      }
    } finally {
      this.searching = false
    }
    if (at < 0 && this.log.held() >= FARTHEST) this.log.onend()
    await this.#go(at)
  }

  async #go(at: number): Promise<void> {
    const to = this.list()[at]
    if (to === undefined) return
    this.current = to.key
    await this.log.show(to)
  }
}
