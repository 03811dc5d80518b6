// The review of a session: its comments as the daemon has them, and what is done to them. Every change is a request with a
// key; what is shown comes back from the daemon, here and on other screens.
import { del, freshKey, get, patch, post, problem, type ApiError } from '../api/client'
import type { Delivery, ReviewView, TurnReceipt } from '../api/types'
import { Ask } from '../ask.svelte'
import type { SessionLive } from '../session/live.svelte'
import { isOpen, type Comment } from './comment'
import type { Selected } from './lines'

export class Book {
  readonly asked: Ask<ReviewView>
  refusal: ApiError | null = $state.raw(null)
  busy = $state(false)
  /** The same review sent again after no answer is the same request. */
  #sending: { what: string; key: string } | null = null

  constructor(private readonly live: SessionLive) {
    this.asked = new Ask(() => get<ReviewView>(`${live.route}/review`))
  }

  comments: readonly Comment[] = $derived.by(() => (this.asked?.value?.comments ?? []) as unknown as Comment[])
  drafts: readonly Comment[] = $derived(this.comments.filter((one) => one.state === 'draft'))

  of(path: string): readonly Comment[] {
    return this.comments.filter((one) => one.path === path)
  }

  /** Whether it was kept. What was refused is shown, and the words stay where they were typed. */
  add(path: string, { side, lines, quote }: Selected, text: string, base: string | undefined): Promise<boolean> {
    return this.#do(() => post(`${this.live.route}/review/comments`, { path, side, ...lines, quote, text, base }, { key: freshKey() }))
  }

  edit(comment: string, text: string): Promise<boolean> {
    return this.#do(() => patch(this.#at(comment), { text }, { key: freshKey() }))
  }

  remove(comment: string): Promise<boolean> {
    return this.#do(() => del(this.#at(comment), {}, { key: freshKey() }))
  }

  view(path: string, hash: string | null): Promise<boolean> {
    return this.#do(() => post(`${this.live.route}/review/viewed`, { path, hash }, { key: freshKey() }))
  }

  /** Sends exactly these comments: what came from another screen meanwhile is not part of it. */
  async send(comments: readonly Comment[], message: string, delivery: Delivery): Promise<TurnReceipt | null> {
    const body = { comments: comments.filter(isOpen).map((one) => one.comment), message, delivery }
    const what = JSON.stringify(body)
    if (this.#sending?.what !== what) this.#sending = { what, key: freshKey() }
    const { key } = this.#sending
    let receipt: TurnReceipt | null = null
    await this.#do(async () => {
      receipt = await post<TurnReceipt>(`${this.live.route}/review/send`, body, { key, writer: this.live.writing ? this.live.writer?.epoch : null })
      this.#sending = null
    })
    return receipt
  }

  #at(comment: string): string {
    return `${this.live.route}/review/comments/${encodeURIComponent(comment)}`
  }

  async #do(act: () => Promise<unknown>): Promise<boolean> {
    this.busy = true
    this.refusal = null
    try {
      await act()
      return true
    } catch (error) {
      this.refusal = problem(error)
      return false
    } finally {
      this.busy = false
      await this.asked.now()
    }
  }
}
