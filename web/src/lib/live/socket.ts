// A WebSocket that comes back. What arrives goes to one handler; where to go on is asked anew at each connection.

export type Link = 'connecting' | 'live' | 'reconnecting' | 'ended'

/** Between two tries, doubled each time up to the longest, with some chance so that pages do not come back as one. */
const FIRST_MS = 250
const LONGEST_MS = 5_000
/** A stream is quiet for at most a heartbeat (15 s); after this long without anything it is given up. */
const SILENT_MS = 40_000

interface Handlers {
  /** Where to connect to now: path and query. Asked before each try, so that it can go on after the last event. */
  where: () => string
  frame: (frame: unknown) => void
  /** Frames that are no JSON. */
  binary?: (bytes: Uint8Array) => void
  link: (link: Link) => void
  /** The daemon said goodbye for good, or refuses us. */
  refused?: (why: string) => void
}

export class Socket {
  #socket: WebSocket | null = null
  #tries = 0
  #timer: ReturnType<typeof setTimeout> | null = null
  #watch: ReturnType<typeof setTimeout> | null = null
  #closed = false

  constructor(private readonly handlers: Handlers) {
    handlers.link('connecting')
    this.#connect()
    addEventListener('online', this.#now)
    document.addEventListener('visibilitychange', this.#now)
  }

  send(frame: unknown): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false
    this.#socket.send(JSON.stringify(frame))
    return true
  }

  close(): void {
    this.#closed = true
    removeEventListener('online', this.#now)
    document.removeEventListener('visibilitychange', this.#now)
    this.#drop()
    this.handlers.link('ended')
  }

  #drop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    if (this.#watch !== null) clearTimeout(this.#watch)
    this.#timer = this.#watch = null
    const socket = this.#socket
    this.#socket = null
    if (socket !== null) {
      socket.onopen = socket.onmessage = socket.onclose = socket.onerror = null
      socket.close()
    }
  }

  /** Somebody looks again: no reason to wait any longer. */
  #now = (): void => {
    if (this.#timer !== null && document.visibilityState === 'visible') {
      clearTimeout(this.#timer)
      this.#timer = null
      this.#connect()
    }
  }

  #connect(): void {
    const protocol = location.protocol === 'https:' ? 'wss' : 'ws'
    const socket = new WebSocket(`${protocol}://${location.host}${this.handlers.where()}`, ['lanyard.v1'])
    this.#socket = socket
    socket.binaryType = 'arraybuffer'
    socket.onopen = () => this.#heard()
    socket.onmessage = (message) => {
      this.#heard()
      if (message.data instanceof ArrayBuffer) {
        this.handlers.binary?.(new Uint8Array(message.data))
        return
      }
      const frame: unknown = JSON.parse(String(message.data))
      const type = (frame as { type?: unknown }).type
      if (type === 'connected') {
        this.#tries = 0
        this.handlers.link('live')
      }
      if (type === 'goodbye' && (frame as { why?: unknown }).why === 'token_revoked') {
        this.handlers.refused?.('token_revoked')
      }
      this.handlers.frame(frame)
    }
    socket.onclose = () => this.#later()
  }

  #heard(): void {
    if (this.#watch !== null) clearTimeout(this.#watch)
    this.#watch = setTimeout(() => this.#later(), SILENT_MS)
  }

  #later(): void {
    if (this.#closed) return
    this.#drop()
    this.handlers.link('reconnecting')
    const wait = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.#tries)
    this.#tries += 1
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#connect()
    }, wait * (0.75 + Math.random() / 2))
  }
}
