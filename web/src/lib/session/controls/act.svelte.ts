// What is asked of the daemon from this page, one thing at a time. Nothing is shown as done before it answered.
import { toasts } from '../../toasts.svelte'

export class Acts {
  /** What is under way. */
  busy: string | null = $state(null)

  constructor(private readonly after: () => unknown) {}

  /** Answers null when it was refused, which is shown. */
  async run<T>(name: string, ask: () => Promise<T>, said?: string | ((answer: T) => string | null)): Promise<T | null> {
    if (this.busy !== null) return null
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
      this.after()
    }
  }
}

function warnings(answer: unknown): readonly string[] {
  return (answer as { warnings?: string[] } | undefined)?.warnings ?? []
}
