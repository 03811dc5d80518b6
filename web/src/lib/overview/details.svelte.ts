// What rows do not tell, the last tool call and the writer, of the sessions in sight. Asked for slowly: few at once, each
// rarely, and only when something happened in it.
import { get } from '../api/client'
import type { SessionDetail, SessionRow } from '../api/types'

const AT_ONCE = 2
const BETWEEN_MS = 2_000
/** Sessions whose details are kept. */
const KEPT = 300
/** Sessions that rest wait until somebody really looks: whoever scrolls past asks nothing. */
const SETTLE_MS = 400

interface Held {
  detail: SessionDetail | null
  /** What was known of it when it was asked. */
  of: string
  asked: number
}

export class Details {
  /** By id; replaced as a whole. */
  shown: ReadonlyMap<string, SessionDetail> = $state.raw(new Map())

  #held = new Map<string, Held>()
  #wanted: readonly SessionRow[] = []
  #since = 0
  #flying = 0
  #timer: ReturnType<typeof setTimeout> | null = null

  constructor(
    private readonly fetch: (id: string) => Promise<SessionDetail> = (id) => get<SessionDetail>(`/sessions/${encodeURIComponent(id)}`),
    private readonly now: () => number = Date.now,
  ) {}

  /** These rows are in sight now. */
  want(rows: readonly SessionRow[]): void {
    if (rows.length !== this.#wanted.length || rows.some((row, at) => row.id !== this.#wanted[at]?.id)) this.#since = this.now()
    this.#wanted = rows
    this.#pump()
  }

  stop(): void {
    this.#wanted = []
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  #pump(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    const now = this.now()
    let next = Infinity
    // Running ones first: theirs change.
    for (const running of [true, false]) {
      for (const row of this.#wanted) {
        if ((row.lifecycle === 'running') !== running || !worth(row)) continue
        const held = this.#held.get(row.id)
        if (held?.of === stamp(row)) continue
        const due = Math.max(held === undefined ? 0 : held.asked + BETWEEN_MS, running ? 0 : this.#since + SETTLE_MS)
        if (due > now) next = Math.min(next, due)
        else if (this.#flying < AT_ONCE) this.#ask(row, now)
        // The end of one that is on its way looks again.
        else return
      }
    }
    if (next < Infinity) this.#timer = setTimeout(() => this.#pump(), next - now)
  }

  #ask(row: SessionRow, now: number): void {
    const before = this.#held.get(row.id)
    this.#held.delete(row.id)
    this.#held.set(row.id, { detail: before?.detail ?? null, of: stamp(row), asked: now })
    // The first is the one not asked for longest.
    if (this.#held.size > KEPT) this.#held.delete(this.#held.keys().next().value ?? '')
    this.#flying += 1
    void this.fetch(row.id)
      .then((detail) => {
        const held = this.#held.get(row.id)
        if (held === undefined) return
        held.detail = detail
        this.shown = new Map([...this.#held].flatMap(([id, one]) => (one.detail === null ? [] : [[id, one.detail] as const])))
      })
      // It may be gone by now; it is asked again when something happens in it.
      .catch(() => undefined)
      .finally(() => {
        this.#flying -= 1
        this.#pump()
      })
  }
}

/** Where nothing happened yet and nobody is, there is nothing to ask for. */
function worth(row: SessionRow): boolean {
  return row.last_seq > 1 || row.active_connections > 0
}

function stamp(row: SessionRow): string {
  return `${row.last_seq}:${row.active_connections}`
}
