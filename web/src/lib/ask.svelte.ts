// A value that is asked of the daemon, and asked again: by hand, when something changed, or by a timer.
import { untrack } from 'svelte'

import { problem, type ApiError } from './api/client'

export class Ask<T> {
  value: T | null = $state.raw(null)
  error: ApiError | null = $state.raw(null)
  busy = $state(false)
  #turn = 0
  #asked = false
  #timer: ReturnType<typeof setTimeout> | null = null

  constructor(private readonly fetch: () => Promise<T>) {}

  /** Asks now. Of several answers only that of the latest question counts. */
  async now(): Promise<void> {
    const turn = ++this.#turn
    this.#asked = true
    this.busy = true
    try {
      const value = await this.fetch()
      if (turn !== this.#turn) return
      this.value = value
      this.error = null
    } catch (error) {
      if (turn === this.#turn) this.error = problem(error)
    } finally {
      if (turn === this.#turn) this.busy = false
    }
  }

  /** Asks soon, once for many calls. */
  soon(ms = 250): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      void this.now()
    }, ms)
  }

  /** Asks now the first time and soon after that: for an `$effect` that reads what the answer depends on as `changes`. */
  when(...changes: readonly unknown[]): void {
    void changes
    untrack(() => {
      if (this.#asked) this.soon()
      else void this.now()
    })
  }

  /** Asks now and every so often while somebody looks; ends with the answer, for an `$effect`. */
  every(ms: number): () => void {
    void this.now()
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void this.now()
    }, ms)
    return () => {
      clearInterval(timer)
      if (this.#timer !== null) clearTimeout(this.#timer)
      this.#timer = null
      this.#turn++
    }
  }
}
