// What the page of a session may ask of the daemon. The page has no network and no token: it asks the extension, which
// asks the daemon for it, and only about its own session.

export interface PageRequest {
  type: 'request'
  ref: number
  method: string
  path: string
  headers: Record<string, string>
  /** Text, or the content of a file. */
  body: string | Uint8Array | null
}

export type FromPage =
  | { type: 'ready' }
  | PageRequest
  | { type: 'open'; ref: number; path: string }
  | { type: 'close'; ref: number }
  | { type: 'do'; what: 'changes' | 'worktree' | 'session' | 'dashboard'; arg: string }

export interface TaskFacts {
  id: string
  title: string
  state: string
  worker: string | null
  run: number
  held: string
}

export interface Shown {
  type: 'show'
  /** Null while a task has no session. */
  session: string | null
  task: TaskFacts | null
  problem: string | null
  me: unknown
}

export type ToPage =
  | Shown
  | { type: 'answer'; ref: number; status: number; kind: string; body: string | Uint8Array }
  | { type: 'failed'; ref: number }
  | { type: 'frame'; ref: number; data: string }
  | { type: 'closed'; ref: number }

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PATCH', 'DELETE'])
/** Headers of the page that reach the daemon. */
const HEADERS: ReadonlySet<string> = new Set(['idempotency-key', 'lanyard-writer'])
const BODY_CHARS_MAX = 2 * 1024 * 1024
/** Bytes of a file: the most that a message takes. */
const FILE_BYTES_MAX = 24 * 1024 * 1024
/** Where content is kept before a message names it. */
const UPLOADS = '/attachments'
/** Requests and streams of one page that are under way. */
export const UNDER_WAY_MAX = 32

/** The path as it is asked of the daemon; null where the page may not ask for it. */
export function allowedPath(method: string, path: string, session: string): string | null {
  if (!METHODS.has(method) || !path.startsWith('/api/v1/')) return null
  const url = new URL(path, 'http://daemon')
  // As the daemon will read it: no `..`, no other host, nothing hidden in an escape.
  if (url.origin !== 'http://daemon' || `${url.pathname}${url.search}` !== path || /%2e|%2f|%5c/i.test(url.pathname)) return null
  const route = url.pathname.slice('/api/v1'.length)
  const own = `/sessions/${session}`
  const read = method === 'GET' && (route === '/me' || route === '/agents')
  const upload = method === 'POST' && route === UPLOADS
  if (!read && !upload && route !== own && !route.startsWith(`${own}/`)) return null
  if (route === own && method === 'DELETE') return null
  if (url.searchParams.has('client')) url.searchParams.set('client', 'vscode')
  return `${url.pathname}${url.search}`
}

export function allowedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name, value]) => HEADERS.has(name.toLowerCase()) && typeof value === 'string' && value.length < 200))
}

/** A message of the page as one of ours; null for anything else. */
export function fromPage(message: unknown): FromPage | null {
  if (typeof message !== 'object' || message === null) return null
  const one = message as Record<string, unknown>
  const ref = typeof one.ref === 'number' && Number.isSafeInteger(one.ref) ? one.ref : null
  switch (one.type) {
    case 'ready':
      return { type: 'ready' }
    case 'close':
      return ref === null ? null : { type: 'close', ref }
    case 'open':
      return ref === null || typeof one.path !== 'string' ? null : { type: 'open', ref, path: one.path }
    case 'do':
      return typeof one.arg === 'string' && (one.what === 'changes' || one.what === 'worktree' || one.what === 'session' || one.what === 'dashboard') ? { type: 'do', what: one.what, arg: one.arg } : null
    case 'request': {
      const body = one.body ?? null
      const headers = typeof one.headers === 'object' && one.headers !== null ? (one.headers as Record<string, string>) : {}
      if (ref === null || typeof one.method !== 'string' || typeof one.path !== 'string' || !isBody(body, one.path)) return null
      return { type: 'request', ref, method: one.method, path: one.path, headers, body }
    }
    default:
      return null
  }
}

/** Text goes anywhere, the content of a file only where files are kept. */
function isBody(body: unknown, path: string): body is PageRequest['body'] {
  if (body === null) return true
  if (typeof body === 'string') return body.length <= BODY_CHARS_MAX
  return body instanceof Uint8Array && body.byteLength <= FILE_BYTES_MAX && /^\/api\/v1\/attachments(?:\?|$)/.test(path)
}
