// A list that is asked for a page at a time, newest first, and asked again as far as it is shown.
import { problem, type ApiError } from '../api/client'

interface Page {
  next?: string | null
}

export class Pages<P extends Page, T> {
  items: readonly T[] = $state.raw([])
  /** The newest page, for what it says beside its items. */
  head: P | null = $state.raw(null)
  error: ApiError | null = $state.raw(null)
  busy = $state(false)
  next: string | null = $state(null)
  #turn = 0
  #timer: ReturnType<typeof setTimeout> | null = null

  constructor(
    private readonly ask: (cursor: string | null, limit: number) => Promise<P>,
    private readonly of: (page: P) => readonly T[],
    private readonly size = 50,
    /** The most one request may ask for. */
    private readonly most = 500,
  ) {}

  /** From the beginning: something else is wanted now. */
  async reset(): Promise<void> {
    await this.#run(async (current) => {
      const page = await this.ask(null, this.size)
      if (current()) this.#take(page, this.of(page))
    })
  }

  /** The same again, as much of it as is shown. */
  async again(): Promise<void> {
    await this.#run(async (current) => {
      const page = await this.ask(null, Math.min(this.most, Math.max(this.size, this.items.length)))
      if (current()) this.#take(page, this.of(page))
    })
  }

  async more(): Promise<void> {
    const cursor = this.next
    if (cursor === null || this.busy) return
    await this.#run(async (current) => {
      const page = await this.ask(cursor, this.size)
      if (!current()) return
      this.items = [...this.items, ...this.of(page)]
      this.next = page.next ?? null
    })
  }

  /** Asks again: not while older ones are on the way, and not where that would take some away. */
  stale(): void {
    if (this.head !== null && !this.busy && this.items.length <= this.most) void this.again()
  }

  /** Asks again, once for all changes within some time; `changes` is what the list depends on, read in an `$effect`. */
  follow(ms: number, ...changes: readonly unknown[]): void {
    void changes
    if (this.head === null) return
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.stale()
    }, ms)
  }

  /** Asks again every so often while somebody looks; ends with the answer, for an `$effect`. */
  every(ms: number): () => void {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') this.stale()
    }, ms)
    return () => {
      clearInterval(timer)
      this.#turn++
      this.busy = false
    }
  }

  #take(page: P, items: readonly T[]): void {
    this.head = page
    this.items = items
    this.next = page.next ?? null
  }

  async #run(work: (current: () => boolean) => Promise<void>): Promise<void> {
    const turn = ++this.#turn
    const current = (): boolean => turn === this.#turn
    this.busy = true
    try {
      await work(current)
      if (current()) this.error = null
    } catch (error) {
      if (current()) this.error = problem(error)
    } finally {
      if (current()) this.busy = false
    }
  }
}
