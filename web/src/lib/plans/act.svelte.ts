// One order at a time: what it is called while the daemon has not answered, and what is said when it has.
import { freshKey, post } from '../api/client'
import { toasts } from '../toasts.svelte'

export class Acts {
  busy: string | null = $state(null)

  /** `after` runs whether it was refused or not: what is shown may be what was out of date. */
  constructor(private readonly after: () => Promise<void> | void) {}

  async post<T>(route: string, body: unknown, said: string | ((answer: T) => string)): Promise<T | null> {
    if (this.busy !== null) return null
    this.busy = route
    try {
      const answer = await post<T>(route, body, { key: freshKey() })
      const text = typeof said === 'string' ? said : said(answer)
      if (text !== '') toasts.say(text)
      return answer
    } catch (error) {
      toasts.fail(error)
      return null
    } finally {
      await this.after()
      this.busy = null
    }
  }
}
