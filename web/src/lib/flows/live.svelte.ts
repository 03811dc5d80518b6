// One flow as it goes on: its log is asked for with a question that waits, one at a time, over any restart of the daemon.
import { get, problem, type ApiError } from '../api/client'
import type { FlowEventPage, FlowView } from '../api/types'
import { Teller, type Story } from './story'

/** How long the daemon holds a question, and how many events an answer has. */
const HELD_MS = 25_000
const PAGE = 500
/** Between two tries while it does not answer. */
const FIRST_MS = 250
const LONGEST_MS = 4_000

export class FlowLive {
  view: FlowView | null = $state.raw(null)
  story: Story = $state.raw({ phases: [] })
  /** What no further try will mend. */
  error: ApiError | null = $state.raw(null)
  /** The daemon does not answer right now. */
  lost = $state(false)

  constructor(readonly id: string) {}

  get route(): string {
    return `/flows/${encodeURIComponent(this.id)}`
  }

  /** Follows it until the answer is called, for an `$effect`. */
  open(): () => void {
    const stop = new AbortController()
    void this.#follow(stop.signal)
    return () => stop.abort()
  }

  /** The flow as an order was answered with; what the log says comes by itself. */
  show(view: FlowView): void {
    if (view.seq >= (this.view?.seq ?? 0)) this.view = view
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const teller = new Teller()
    let wait = FIRST_MS
    // The first answer is at once, so that a flow on which nothing happens is seen.
    let held = 0
    // Whoever waits to be allowed something is news as well.
    let known = ''
    while (!signal.aborted) {
      try {
        const page = await get<FlowEventPage>(`${this.route}/events`, { after: teller.last, limit: PAGE, wait_ms: held, approvals: known }, signal)
        if (signal.aborted) return
        if (page.events.length > 0) this.story = teller.take(page.events)
        this.show(page.flow)
        known = (page.flow.approvals ?? []).map((entry) => entry.id).join(',')
        this.lost = false
        this.error = null
        wait = FIRST_MS
        held = teller.last < page.head ? 0 : HELD_MS
      } catch (error) {
        if (signal.aborted) return
        const told = problem(error)
        if (told.status > 0 && told.status < 500) {
          this.error = told
          return
        }
        this.lost = true
        await new Promise((done) => setTimeout(done, wait))
        wait = Math.min(LONGEST_MS, wait * 2)
      }
    }
  }
}
