// What is typed goes out one piece after the other, so that it keeps its order, and each piece under one key, so that it
// is typed once over any restart of the daemon.
import { freshKey, post, problem, type ApiError } from '../../api/client'

/** Bytes that go out together. */
const TOGETHER = 32 * 1024
/** Before a request that nobody answered is sent again. */
const AGAIN_MS = 500

export class Typist {
  #waiting: Uint8Array[] = []
  #size: { cols: number; rows: number } | null = null
  #busy = false
  #gone = false

  constructor(
    private readonly route: string,
    private readonly epoch: () => number | null,
    private readonly refused: (error: ApiError) => void,
  ) {}

  input(text: string): void {
    this.#waiting.push(new TextEncoder().encode(text))
    void this.#go()
  }

  /** Keys in a form that is no text, as old mouse reports are. */
  bytes(text: string): void {
    this.#waiting.push(Uint8Array.from(text, (one) => one.charCodeAt(0)))
    void this.#go()
  }

  size(cols: number, rows: number): void {
    this.#size = { cols, rows }
    void this.#go()
  }

  close(): void {
    this.#gone = true
    this.#waiting = []
  }

  async #go(): Promise<void> {
    if (this.#busy) return
    this.#busy = true
    while (!this.#gone && (this.#size !== null || this.#waiting.length > 0)) {
      if (this.#size !== null) {
        const size = this.#size
        this.#size = null
        await this.#say('size', size)
      } else {
        await this.#say('input', { data: base64(this.#piece()) })
      }
    }
    this.#busy = false
  }

  #piece(): Uint8Array {
    let length = 0
    let count = 0
    for (const one of this.#waiting) {
      if (count > 0 && length + one.length > TOGETHER) break
      length += one.length
      count += 1
    }
    const piece = new Uint8Array(Math.min(length, TOGETHER))
    let at = 0
    for (const one of this.#waiting.splice(0, count)) {
      const fits = one.subarray(0, piece.length - at)
      piece.set(fits, at)
      at += fits.length
      // A paste that is longer goes out in parts.
      if (fits.length < one.length) this.#waiting.unshift(one.subarray(fits.length))
    }
    return piece
  }

  async #say(what: 'input' | 'size', body: unknown): Promise<void> {
    const key = freshKey()
    while (!this.#gone) {
      try {
        await post(`${this.route}/terminal/${what}`, body, { key, writer: this.epoch() })
        return
      } catch (error) {
        const told = problem(error)
        if (told.status !== 0 && told.status < 500) {
          this.#waiting = []
          this.refused(told)
          return
        }
        await new Promise((done) => setTimeout(done, AGAIN_MS))
      }
    }
  }
}

function base64(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return btoa(text)
}
