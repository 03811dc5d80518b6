// Requests to the daemon. A refusal is an `ApiError` with its code, what happened and what to do.
import type { Problem } from './types'

const BASE = '/api/v1'
/** No answer within this is none: the slowest requests start an agent and greet it. */
const ANSWER_MS = 120_000

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly what: string,
    readonly advice: string,
  ) {
    super(what)
  }
}

type Query = Record<string, string | number | boolean | null | undefined>

interface Options {
  query?: Query
  body?: unknown
  /** The same key again is the same request. */
  key?: string
  /** Epoch of the writer's lease this is written under. */
  writer?: number | null
  signal?: AbortSignal
}

let signedOut: () => void = () => undefined

/** Called whenever the daemon does not know us (any more). */
export function onSignedOut(handler: () => void): void {
  signedOut = handler
}

export function path(route: string, query: Query = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '')
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString()
  return BASE + route + (text === '' ? '' : `?${text}`)
}

export async function request<T>(method: string, route: string, options: Options = {}): Promise<T> {
  const headers: Record<string, string> = {}
  if (options.body !== undefined) headers['content-type'] = options.body instanceof Blob ? options.body.type || 'application/octet-stream' : 'application/json'
  if (options.key !== undefined) headers['idempotency-key'] = options.key
  if (options.writer != null) headers['lanyard-writer'] = String(options.writer)
  let response: Response
  try {
    response = await fetch(path(route, options.query), {
      method,
      headers,
      body: options.body === undefined ? undefined : options.body instanceof Blob ? options.body : JSON.stringify(options.body),
      signal: AbortSignal.any([AbortSignal.timeout(ANSWER_MS), ...(options.signal ? [options.signal] : [])]),
      credentials: 'same-origin',
    })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError(0, 'unreachable', 'The daemon does not answer.', 'Start it with `lanyard up`; this page goes on by itself.')
  }
  if (response.ok) {
    if (response.status === 204) return undefined as T
    const kind = response.headers.get('content-type') ?? ''
    return (kind.includes('json') ? await response.json() : await response.text()) as T
  }
  const problem = (await response.json().catch(() => null)) as Partial<Problem> | null
  if (response.status === 401) signedOut()
  throw told(response.status, problem)
}

function told(status: number, problem: Partial<Problem> | null): ApiError {
  return new ApiError(
    status,
    problem?.code ?? `http_${status}`,
    sentence(problem?.title ?? `The daemon answered with status ${status}.`),
    sentence(problem?.advice ?? ''),
  )
}

export const get = <T>(route: string, query?: Query, signal?: AbortSignal): Promise<T> =>
  request<T>('GET', route, { query, signal })
export const post = <T>(route: string, body: unknown = {}, options: Options = {}): Promise<T> =>
  request<T>('POST', route, { ...options, body })
/** Whether addresses of the daemon can be used in the page itself. In an editor each request goes through a bridge. */
export const network = { direct: true }

/** Sends content as it is. */
export const send = <T>(route: string, content: Blob, query?: Query): Promise<T> => request<T>('POST', route, { query, body: content })

/** Content as an address of this page, which is given back when it is shown no more. */
export async function contentAddress(address: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(address, { signal, credentials: 'same-origin' })
  if (!response.ok) throw told(response.status, null)
  return URL.createObjectURL(await response.blob())
}

export const patch = <T>(route: string, body: unknown, options: Options = {}): Promise<T> =>
  request<T>('PATCH', route, { ...options, body })
export const del = <T>(route: string, body: unknown = {}, options: Options = {}): Promise<T> =>
  request<T>('DELETE', route, { ...options, body })

/** Why a stream is refused; null where it is not. Nothing of it is read. */
export async function refusal(route: string, query?: Query): Promise<ApiError | null> {
  const stop = new AbortController()
  try {
    const response = await fetch(path(route, query), { signal: stop.signal, credentials: 'same-origin' })
    if (response.ok) return null
    if (response.status === 401) signedOut()
    return told(response.status, (await response.json().catch(() => null)) as Partial<Problem> | null)
  } catch {
    return null
  } finally {
    stop.abort()
  }
}

/** An error of any kind as one of ours, to show it. */
export function problem(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return new ApiError(0, 'page_error', error instanceof Error ? error.message : String(error), 'Reload the page.')
}

/** A key for a request that must not happen twice. */
export function freshKey(): string {
  return crypto.randomUUID()
}

function sentence(text: string): string {
  return text === '' ? '' : text[0]?.toUpperCase() + text.slice(1) + (/[.!?`]$/.test(text) ? '' : '.')
}
