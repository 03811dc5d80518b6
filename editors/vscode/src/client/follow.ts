// A stream of the daemon that comes back: after a break it is opened again with the position of the last frame.
import { DaemonError, refused } from './errors'
import type { DaemonHttp } from './http'
import { SseParser, type SseEvent } from './sse'

/** Between two tries, doubled each time up to the longest. */
const FIRST_MS = 250
const LONGEST_MS = 5_000

export type FollowState = 'connecting' | 'live' | 'away' | 'refused'

interface Follower {
  /** Path and query of the next try, asked before each. */
  where: () => string
  event: (event: SseEvent) => void
  state: (state: FollowState, error: DaemonError | null) => void
}

/** Time before try number `tries`, from 0; `chance` is in 0..1 and keeps many windows from coming back as one. */
export function pause(tries: number, chance: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(tries, 10)) * (0.75 + chance / 2)
}

/** Follows until the answer is called. */
export function follow(http: DaemonHttp, follower: Follower): () => void {
  const stop = new AbortController()
  void run(http, follower, stop.signal)
  return () => stop.abort()
}

async function run(http: DaemonHttp, follower: Follower, signal: AbortSignal): Promise<void> {
  follower.state('connecting', null)
  for (let tries = 0; !signal.aborted; tries += 1) {
    let failure: DaemonError | null = null
    try {
      const parser = new SseParser()
      await http.stream(follower.where(), signal, (piece) => {
        for (const event of parser.push(piece)) {
          if (event.name === 'connected') {
            tries = 0
            follower.state('live', null)
          }
          follower.event(event)
        }
      })
    } catch (error) {
      failure = error instanceof DaemonError ? error : refused(0, '')
    }
    if (signal.aborted) return
    follower.state(failure?.status === 401 || failure?.status === 403 ? 'refused' : 'away', failure)
    await sleep(pause(tries, Math.random()), signal)
  }
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((done) => {
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), done()), { once: true })
  })
}
