// Protects the answers of a gate from clicks that were meant for something else: an answer counts only for what was on
// the screen, at rest, when the pointer or the key went down.

/** Answers take no click for this long after their card appeared or moved. */
export const REST_MS = 700
/** How often a card's place is compared. A move between two looks is found when the pointer goes down. */
const LOOK_MS = 100
/** Fractions of a pixel are not a move. */
const SLACK = 1.5

export interface Place {
  left: number
  top: number
  width: number
  height: number
}

export function same(a: Place | null, b: Place | null): boolean {
  if (a === null || b === null) return false
  return (['left', 'top', 'width', 'height'] as const).every((side) => Math.abs(a[side] - b[side]) <= SLACK)
}

/** Tells how long something has been at rest. `null` stands for "cannot be seen". */
export class Rest {
  #place: Place | null = null
  #since = 0

  /** Whether it has been at this place for long enough. */
  at(place: Place | null, now: number): boolean {
    if (!same(place, this.#place)) {
      this.#place = place
      this.#since = now
    }
    return place !== null && now - this.#since >= REST_MS
  }
}

interface Press {
  by: 'pointer' | 'key'
  choice: string
  place: Place
}

export class AnswerGuard {
  /** Whether an answer would count now. */
  ready = $state(false)
  #element: HTMLElement | null = null
  #rest = new Rest()
  #press: Press | null = null

  /** For `{@attach}` on the element that holds the answers. */
  watch = (element: HTMLElement): (() => void) => {
    this.#element = element
    this.#rest = new Rest()
    this.#press = null
    this.#look()
    watch(this.#look)
    return () => {
      unwatch(this.#look)
      this.#element = null
      this.ready = false
    }
  }

  /** The pointer or a key went down on an answer. */
  press(event: PointerEvent | KeyboardEvent): void {
    const by = event instanceof KeyboardEvent ? 'key' : 'pointer'
    if (event instanceof KeyboardEvent) {
      if (event.key !== 'Enter' && event.key !== ' ') return
      // A key that is held down answers once.
      if (event.repeat) {
        event.preventDefault()
        return
      }
    }
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-choice]') : null
    const place = this.#place()
    this.#press = button !== null && place !== null && this.#look() ? { by, choice: button.dataset.choice ?? '', place } : null
  }

  /** Whether a click gives this answer. */
  allows(event: MouseEvent, choice: string): boolean {
    const ready = this.#look()
    const press = this.#press
    this.#press = null
    // Number keys and assistive technology click without a press.
    if (event.detail === 0 && press?.by !== 'key') return ready
    return ready && press !== null && press.choice === choice && same(press.place, this.#place())
  }

  #look = (): boolean => {
    const ready = this.#rest.at(this.#place(), performance.now())
    this.ready = ready
    return ready
  }

  #place(): Place | null {
    // What lies under a dialog or in a page that is not shown comes into sight when that ends.
    if (this.#element === null || document.visibilityState === 'hidden' || document.querySelector('dialog[open]') !== null) return null
    return this.#element.getBoundingClientRect()
  }
}

const looks = new Set<() => boolean>()
const all = (): void => looks.forEach((look) => look())
let timer: ReturnType<typeof setInterval> | null = null

function watch(look: () => boolean): void {
  looks.add(look)
  if (timer !== null) return
  timer = setInterval(all, LOOK_MS)
  addEventListener('scroll', all, { capture: true, passive: true })
}

function unwatch(look: () => boolean): void {
  looks.delete(look)
  if (looks.size > 0 || timer === null) return
  clearInterval(timer)
  timer = null
  removeEventListener('scroll', all, { capture: true })
}
