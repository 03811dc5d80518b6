// What is asked of the daemon from a page, one thing at a time. Nothing is shown as done before it answered.
import { freshKey, post } from '../api/client'
import { toasts } from '../toasts.svelte'

type Said<T> = string | ((answer: T) => string | null)

export class Acts {
  /** What is under way. */
  busy: string | null = $state(null)
  readonly #asked = new Set<string>()
  #turn: Promise<unknown> = Promise.resolve()

  /** `after` runs whether it was refused or not: what is shown may be what was out of date. */
  constructor(private readonly after: () => unknown) {}

  /** Answers null when it was refused, which is shown, and when the same was asked already. What was asked before comes first. */
  async run<T>(name: string, ask: () => Promise<T>, said?: Said<T>): Promise<T | null> {
    if (this.#asked.has(name)) return null
    this.#asked.add(name)
    const turn = this.#turn.then(() => this.#do(name, ask, said))
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  async #do<T>(name: string, ask: () => Promise<T>, said?: Said<T>): Promise<T | null> {
    this.busy = name
    try {
      const answer = await ask()
      const words = typeof said === 'function' ? said(answer) : said
      if (words) toasts.say(words)
      for (const warning of warnings(answer)) toasts.say(warning, 'info')
      return answer
    } catch (error) {
      toasts.fail(error)
      return null
    } finally {
      this.busy = null
      this.#asked.delete(name)
      await this.after()
    }
  }

  /** Posts with a key of its own; what is under way is named by its route. */
  post<T>(route: string, body: unknown, said?: Said<T>): Promise<T | null> {
    const key = freshKey()
    return this.run(route, () => post<T>(route, body, { key }), said)
  }
}

function warnings(answer: unknown): readonly string[] {
  return (answer as { warnings?: string[] } | undefined)?.warnings ?? []
}
