// Keys of a page. A page adds its own while it is shown; the newest of a key wins. Nothing happens while somebody types.
import { untrack } from 'svelte'

export interface Key {
  /** As `KeyboardEvent.key`, and `Shift+X` where it matters. */
  key: string
  /** What it does, for the help. */
  does: string
  run: (event: KeyboardEvent) => void
}

class Keys {
  bound: readonly Key[] = $state.raw([])

  /** Binds keys until the answer is called; made to be returned from an `$effect`. */
  bind(keys: Key[]): () => void {
    // What else is bound is no reason to bind anew.
    this.bound = [...untrack(() => this.bound), ...keys]
    return () => {
      this.bound = untrack(() => this.bound).filter((key) => !keys.includes(key))
    }
  }

  start(): () => void {
    const handle = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || typing(event.target)) return
      if (document.querySelector('dialog[open]') !== null) return
      // A button or link that has the focus is pressed by these.
      if ((event.key === 'Enter' || event.key === ' ') && event.target instanceof Element && event.target.closest('a, button, summary, label') !== null) return
      const found = this.bound.findLast((key) => key.key === event.key)
      if (found === undefined) return
      event.preventDefault()
      found.run(event)
    }
    addEventListener('keydown', handle)
    return () => removeEventListener('keydown', handle)
  }
}

function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  if (target.isContentEditable || ['TEXTAREA', 'SELECT'].includes(target.tagName)) return true
  return target instanceof HTMLInputElement && !['checkbox', 'radio', 'button'].includes(target.type)
}

export const keys = new Keys()
