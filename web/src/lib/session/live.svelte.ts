// One session, attached: its log as it grows, what it is, who watches. Comes back by itself after the last event that
// arrived, so nothing is missing and nothing is there twice.
import { get, path, post, problem, refusal, type ApiError } from '../api/client'
import type { PresentConnection, PreviewKind, SessionDetail, Writer } from '../api/types'
import { Ask } from '../ask.svelte'
import { Frame as Drawn } from '../live/frame'
import { Socket, type Link } from '../live/socket'
import type { Operated } from '../operator'
import type { Event, Frame } from './events'

/** Events loaded at first, and with each piece of the past. */
const PIECE = 400
/** While somebody reads at the end, no more than so many events are held; older ones are loaded again when wanted. */
const MOST = 30_000
const KEPT = 20_000
/** Between two looks at the log where attaching is switched off. */
const POLL_MS = 1_000

interface Preview {
  kind: PreviewKind
  text: string
  /** The agent's own name of the message. */
  message: string | null
}

export class SessionLive {
  /** `polling`: attaching is switched off in the daemon's config, and the log is read every so often instead. */
  link: Link | 'polling' = $state('connecting')
  error: ApiError | null = $state.raw(null)
  /** Without gaps, in order. Replaced as a whole, once per frame of the screen. */
  events: readonly Event[] = $state.raw([])
  /** Text that is being written and is in no event yet. */
  preview: Preview | null = $state.raw(null)
  presence: readonly PresentConnection[] = $state.raw([])
  present = $state(0)
  /** Ours, given back when we come back. */
  connection: string | null = $state(null)
  clientTurnId: string | null = null
  /** Whether there is more before the first event that is here. */
  older = $state(false)
  loading = $state(false)
  /** Whether the end of the log is here: before that, nothing says that there is nothing. */
  started = $state(false)
  /** Changes of the review that have come by. */
  reviewed = $state(0)
  /** Whether somebody reads at the end. */
  following = true
  /** Whether reading it to the end is told to the daemon: readers of a share link tell nothing. */
  marks = true
  readonly detail: Ask<SessionDetail>

  #held: Event[] = []
  readonly #frame = new Drawn(() => this.#draw())
  #socket: Socket | null = null
  #timer: ReturnType<typeof setTimeout> | null = null
  #seen = 0
  #seeing = false

  constructor(readonly id: string) {
    this.detail = new Ask(() => get<SessionDetail>(`/sessions/${encodeURIComponent(id)}`))
  }

  get route(): string {
    return `/sessions/${encodeURIComponent(this.id)}`
  }

  writer: Writer | null = $derived.by(() => this.detail?.value?.writer ?? null)
  /** Whether the lease is ours. */
  writing = $derived(this.writer !== null && this.writer.connection === this.connection)

  /** Attaches; detaches with the answer, for an `$effect`. The agent does not notice either. */
  open(): () => void {
    let gone = false
    this.error = null
    void this.#begin().then(() => {
      if (!gone && this.error === null) this.#attach()
    })
    return () => {
      gone = true
      this.#leave()
    }
  }

  #leave(): void {
    this.#socket?.close()
    this.#socket = null
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  /** The piece before what is here; answers how many events came. */
  async past(piece = PIECE): Promise<number> {
    const first = this.#held[0]?.seq ?? 0
    if (this.loading || first <= 1) return 0
    this.loading = true
    try {
      const after = Math.max(0, first - 1 - piece)
      const page = await this.#page(after, first - 1 - after)
      // The oldest may have been let go of meanwhile; then this would leave a gap.
      if (this.#held[0]?.seq !== first) return 0
      const before = page.filter((event) => event.seq < first)
      this.#held = [...before, ...this.#held]
      this.#frame.ask()
      return before.length
    } finally {
      this.loading = false
    }
  }

  async #begin(): Promise<void> {
    try {
      await this.detail.now()
      if (this.detail.error !== null) throw this.detail.error
      const head = this.detail.value?.last_seq ?? 0
      this.#held = await this.#page(Math.max(0, head - PIECE), PIECE)
      this.#frame.ask()
    } catch (error) {
      this.error = problem(error)
    }
  }

  async #page(after: number, limit: number): Promise<Event[]> {
    const found: Event[] = []
    // A page of large events is shorter than was asked for.
    while (found.length < limit) {
      const from = found.at(-1)?.seq ?? after
      const page = await get<{ events: Event[]; head: number }>(`${this.route}/events`, { after: from, limit: Math.min(1_000, limit - found.length) })
      found.push(...page.events)
      if (page.events.length === 0 || (page.events.at(-1)?.seq ?? 0) >= page.head) break
    }
    return found
  }

  #attach(): void {
    this.#socket = new Socket({
      where: () =>
        path(`${this.route}/attach`, { after: this.#held.at(-1)?.seq ?? 0, client: 'web', connection: this.connection, write: true }),
      frame: (frame) => this.apply(frame as Frame | Event),
      link: (link) => {
        this.link = link
        // What was being written may be in the log by now, or never will be.
        if (link === 'reconnecting') {
          this.preview = null
          void this.#know()
        }
        if (link === 'live') this.detail.soon(0)
      },
    })
  }

  /** A socket is not told why it is refused; a plain request is. */
  async #know(): Promise<void> {
    const socket = this.#socket
    const refused = await refusal(`${this.route}/attach`, { after: this.#held.at(-1)?.seq ?? 0, client: 'web' })
    if (socket === null || socket !== this.#socket) return
    if (refused?.status === 404 || refused?.status === 410) {
      this.error = refused
      this.#leave()
    } else if (refused?.code === 'attach_off') {
      this.#leave()
      this.#poll(false)
    }
  }

  /** Reads the log every so often. After the daemon was away attaching is tried again: its config may be another. */
  #poll(away: boolean): void {
    this.#timer = setTimeout(() => {
      this.#read().then(
        () => {
          if (this.#timer === null) return
          if (away) {
            this.#timer = null
            this.#attach()
            return
          }
          // As with a socket that has come: events that were here before may say more than what is known of the session.
          if (this.link !== 'polling') this.detail.soon(0)
          this.link = 'polling'
          this.#poll(false)
        },
        (error: unknown) => {
          if (this.#timer === null) return
          const told = problem(error)
          if (told.status === 404 || told.status === 410) this.error = told
          else {
            this.link = 'reconnecting'
            this.#poll(true)
          }
        },
      )
    }, this.link === 'polling' || away ? POLL_MS : 0)
  }

  async #read(): Promise<void> {
    const after = this.#held.at(-1)?.seq ?? 0
    for (const event of await this.#page(after, PIECE)) this.apply(event)
  }

  apply(frame: Frame | Event): void {
    if ('seq' in frame) {
      if (frame.seq <= (this.#held.at(-1)?.seq ?? 0)) return
      this.#held.push(frame)
      if (this.preview !== null && ends(frame)) this.preview = null
      if (frame.type.startsWith('review.')) this.reviewed += 1
      if (frame.type === 'session.deleted') void this.#know()
      else if (!QUIET.has(frame.type)) this.detail.soon(150)
      this.#frame.ask()
      return
    }
    switch (frame.type) {
      case 'connected':
        this.connection = frame.connection
        this.clientTurnId = frame.client_turn_id
        break
      case 'preview':
        // All of it each time, so one that was missed does no harm.
        this.preview = { kind: frame.kind, text: frame.text, message: frame.message_id ?? null }
        break
      case 'presence':
        this.presence = frame.connections
        this.present = frame.count
        this.detail.soon(150)
        break
      default:
        break
    }
  }

  /** Somebody sees the end of the log; the daemon is told once for each result that was not seen. */
  async see(): Promise<void> {
    const seq = this.events.at(-1)?.seq ?? 0
    const unread = (this.detail.value as Operated | null)?.unread ?? false
    if (!this.marks || !unread || this.#seeing || seq <= this.#seen) return
    this.#seeing = true
    this.#seen = seq
    // What was not taken is told again with the next event.
    await post(`${this.route}/seen`, { seq }).then(() => this.detail.now(), () => undefined)
    this.#seeing = false
  }

  #draw(): void {
    if (this.following && this.#held.length > MOST) this.#held = this.#held.slice(-KEPT)
    this.started = true
    this.events = this.#held.slice()
    this.older = (this.#held[0]?.seq ?? 1) > 1
  }
}

/** Events that change nothing of what a session is beyond its transcript. */
const QUIET: ReadonlySet<string> = new Set(['message', 'thought', 'tool.relayed', 'plan.updated', 'file.changed'])

/** Whether what was being written is in the log now. */
function ends(event: Event): boolean {
  return event.type === 'message' || event.type === 'thought' || event.type.startsWith('turn.')
}
