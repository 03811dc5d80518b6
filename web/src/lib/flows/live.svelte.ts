// One flow as it goes on: its stream says when there is something new, and its log is read from where it was left, over any
// restart of the daemon.
import { get, path, problem, type ApiError } from '../api/client'
import type { FlowEventPage, FlowView } from '../api/types'
import { Socket } from '../live/socket'
import { Teller, type Story } from './story'

/** Events of one answer. */
const PAGE = 500

export class FlowLive {
  view: FlowView | null = $state.raw(null)
  story: Story = $state.raw({ phases: [] })
  /** What no further try will mend. */
  error: ApiError | null = $state.raw(null)
  /** The daemon does not answer right now. */
  lost = $state(false)

  readonly #teller = new Teller()
  #socket: Socket | null = null
  #looking = false
  #again = false

  constructor(readonly id: string) {}

  get route(): string {
    return `/flows/${encodeURIComponent(this.id)}`
  }

  /** Follows it until the answer is called, for an `$effect`. */
  open(): () => void {
    void this.#look()
    this.#socket = new Socket({
      where: () => path('/records/stream', { record: this.id }),
      frame: (frame) => {
        const { type } = frame as { type?: string }
        // The first frame of a connection, an event, or a gate of an agent; beats and goodbyes say nothing new.
        if (type !== 'ready' && type !== 'heartbeat' && type !== 'goodbye') void this.#look()
      },
      link: (link) => (this.lost = link === 'reconnecting'),
    })
    return () => this.#close()
  }

  /** The flow as an order was answered with; what the log says comes by itself. */
  show(view: FlowView): void {
    if (view.seq >= (this.view?.seq ?? 0)) this.view = view
  }

  #close(): void {
    this.#socket?.close()
    this.#socket = null
  }

  /** One look at a time; what comes meanwhile is looked at afterwards. */
  async #look(): Promise<void> {
    this.#again = true
    if (this.#looking) return
    this.#looking = true
    try {
      while (this.#again) {
        this.#again = false
        await this.#page()
      }
    } catch (error) {
      const told = problem(error)
      // A daemon that is away comes back, and the stream with it.
      if (told.status > 0 && told.status < 500) {
        this.error = told
        this.#close()
      }
    } finally {
      this.#looking = false
    }
  }

  async #page(): Promise<void> {
    const page = await get<FlowEventPage>(`${this.route}/events`, { after: this.#teller.last, limit: PAGE })
    if (page.events.length > 0) this.story = this.#teller.take(page.events)
    this.show(page.flow)
    this.error = null
    if (page.events.length > 0 && this.#teller.last < page.head) this.#again = true
  }
}
