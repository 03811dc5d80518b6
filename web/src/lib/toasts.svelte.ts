// Short words about what just happened.
import { problem } from './api/client'

interface Toast {
  id: number
  tone: 'ok' | 'bad' | 'info'
  text: string
  advice?: string
}

/** How long one stays, and how many are shown. */
const STAY_MS = { ok: 4_000, info: 6_000, bad: 10_000 }
const MOST = 4

class Toasts {
  list: readonly Toast[] = $state.raw([])
  #next = 0

  say(text: string, tone: Toast['tone'] = 'ok', advice?: string): void {
    const toast = { id: this.#next++, tone, text, advice }
    this.list = [...this.list, toast].slice(-MOST)
    setTimeout(() => this.drop(toast.id), STAY_MS[tone])
  }

  /** Shows what was refused. */
  fail(error: unknown): void {
    const { what, advice } = problem(error)
    this.say(what, 'bad', advice)
  }

  drop(id: number): void {
    this.list = this.list.filter((toast) => toast.id !== id)
  }
}

export const toasts = new Toasts()
