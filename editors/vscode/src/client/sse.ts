// Server-sent events as they come in, in pieces of any size.

export interface SseEvent {
  id: string | null
  name: string | null
  data: string
}

/** A line longer than this is no event of the daemon, whose largest frames have a few megabytes. */
const LINE_CHARS_MAX = 32 * 1024 * 1024

export class SseParser {
  #rest = ''
  #data: string[] = []
  #id: string | null = null
  #name: string | null = null

  /** The events that are complete with this piece. A comment, such as a heartbeat, is none. */
  push(piece: string): SseEvent[] {
    const found: SseEvent[] = []
    const lines = (this.#rest + piece).split('\n')
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length > LINE_CHARS_MAX) throw new Error('a line of the stream is too long')
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
      if (line === '') {
        if (this.#data.length > 0) found.push({ id: this.#id, name: this.#name, data: this.#data.join('\n') })
        this.#data = []
        this.#id = this.#name = null
      } else this.#field(line)
    }
    return found
  }

  #field(line: string): void {
    const colon = line.indexOf(':')
    if (colon === 0) return
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'data') this.#data.push(value)
    else if (field === 'id') this.#id = value
    else if (field === 'event') this.#name = value
  }
}
