// Network for the dashboard's modules in a page that has none: `fetch` and `WebSocket` that go through the extension.
import { network } from '$web/lib/api/client'
import type { FromPage, ToPage } from '../src/session/bridge'

interface Host {
  postMessage: (message: FromPage) => void
}
declare function acquireVsCodeApi(): Host

const host = acquireVsCodeApi()
const answers = new Map<number, { done: (answer: Response) => void; fail: (error: unknown) => void }>()
const sockets = new Map<number, BridgedSocket>()
let next = 0

export const tell = (message: FromPage): void => host.postMessage(message)

function pathOf(input: RequestInfo | URL): string {
  const text = input instanceof Request ? input.url : String(input)
  if (text.startsWith('/')) return text
  const url = new URL(text)
  return url.pathname + url.search
}

async function bridgedFetch(input: RequestInfo | URL, options: RequestInit = {}): Promise<Response> {
  const ref = next++
  const { signal } = options
  if (signal?.aborted) throw new DOMException('aborted', 'AbortError')
  const answer = new Promise<Response>((done, fail) => {
    answers.set(ref, { done, fail })
    signal?.addEventListener('abort', () => {
      if (!answers.delete(ref)) return
      tell({ type: 'close', ref })
      fail(new DOMException('aborted', 'AbortError'))
    })
  })
  const body = options.body instanceof Blob ? new Uint8Array(await options.body.arrayBuffer()) : typeof options.body === 'string' ? options.body : null
  if (answers.has(ref)) tell({ type: 'request', ref, method: options.method ?? 'GET', path: pathOf(input), headers: Object.fromEntries(new Headers(options.headers)), body })
  return answer
}

/** As much of a WebSocket as the dashboard's streams use. It is a stream of server-sent events behind the extension. */
class BridgedSocket {
  static readonly OPEN = 1
  readyState = 0
  onopen: (() => void) | null = null
  onmessage: ((message: { data: string }) => void) | null = null
  onclose: (() => void) | null = null
  onerror: (() => void) | null = null
  readonly #ref = next++

  constructor(address: string | URL) {
    sockets.set(this.#ref, this)
    tell({ type: 'open', ref: this.#ref, path: pathOf(address) })
  }

  frame(data: string): void {
    if (this.readyState === 0) {
      this.readyState = 1
      this.onopen?.()
    }
    this.onmessage?.({ data })
  }

  ended(): void {
    this.readyState = 3
    this.onclose?.()
  }

  send(): void {
    throw new Error('the stream of a tab takes no frames')
  }

  close(): void {
    this.readyState = 3
    sockets.delete(this.#ref)
    tell({ type: 'close', ref: this.#ref })
  }
}

/** Puts the bridge in place; `shown` gets what the tab is to show. */
export function install(shown: (message: Extract<ToPage, { type: 'show' }>) => void): void {
  globalThis.fetch = bridgedFetch
  network.direct = false
  globalThis.WebSocket = BridgedSocket as unknown as typeof WebSocket
  addEventListener('message', ({ data }: MessageEvent<ToPage>) => {
    switch (data.type) {
      case 'show':
        shown(data)
        break
      case 'answer':
        answers.get(data.ref)?.done(new Response(data.status === 204 ? null : typeof data.body === 'string' ? data.body : new Uint8Array(data.body), { status: data.status, headers: { 'content-type': data.kind } }))
        answers.delete(data.ref)
        break
      case 'failed':
        answers.get(data.ref)?.fail(new TypeError('the daemon does not answer'))
        answers.delete(data.ref)
        break
      case 'frame':
        sockets.get(data.ref)?.frame(data.data)
        break
      case 'closed':
        sockets.get(data.ref)?.ended()
        sockets.delete(data.ref)
        break
    }
  })
  tell({ type: 'ready' })
}
