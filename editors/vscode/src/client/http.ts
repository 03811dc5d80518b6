// Requests to the daemon over its socket or to an address, with the token of either.
import { readFile } from 'node:fs/promises'
import { request as plain, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as secure } from 'node:https'

import { DaemonError, refused, unreachable } from './errors'
import type { Target } from './target'

/** The program, for the list of tokens. */
const AGENT = 'lanyard-vscode/1'

export const API = '/api/v1'
/** The slowest requests start an agent and greet it. */
const ANSWER_MS = 120_000
/** A stream is quiet for at most a heartbeat of 15 s. */
const SILENT_MS = 40_000
const BODY_BYTES_MAX = 64 * 1024 * 1024

export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>

export interface Ask {
  query?: Query
  body?: unknown
  /** The same key again is the same request. */
  key?: string
  headers?: Readonly<Record<string, string>>
  signal?: AbortSignal
}

export interface RawAnswer {
  status: number
  type: string
  /** Text where it is one, else bytes. */
  body: string | Uint8Array
}

export function withQuery(route: string, query: Query = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '')
  const text = new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return text === '' ? route : `${route}?${text}`
}

export class DaemonHttp {
  constructor(
    readonly target: Target,
    /** The token of an address; a data folder has its own in a file. */
    private readonly secret: () => Promise<string | undefined>,
  ) {}

  get = <T>(route: string, query?: Query): Promise<T> => this.ask<T>('GET', route, { query })
  post = <T>(route: string, body: unknown = {}, ask: Ask = {}): Promise<T> => this.ask<T>('POST', route, { ...ask, body })
  patch = <T>(route: string, body: unknown): Promise<T> => this.ask<T>('PATCH', route, { body })

  async ask<T>(method: string, route: string, ask: Ask = {}): Promise<T> {
    const headers: Record<string, string> = { ...ask.headers }
    if (ask.key !== undefined) headers['idempotency-key'] = ask.key
    const body = ask.body === undefined ? undefined : JSON.stringify(ask.body)
    const answer = await this.raw(method, withQuery(API + route, ask.query), body, headers, ask.signal)
    const text = typeof answer.body === 'string' ? answer.body : ''
    if (answer.status >= 400) throw refused(answer.status, text)
    return (answer.type.includes('json') && text !== '' ? JSON.parse(text) : text) as T
  }

  /** Any answer as it is; an error only where there is none. */
  async raw(method: string, path: string, body?: string | Uint8Array, headers: Readonly<Record<string, string>> = {}, signal?: AbortSignal): Promise<RawAnswer> {
    const response = await this.#send(method, path, ANSWER_MS, body, { accept: 'application/json', ...headers }, signal)
    const [type, content] = [response.headers['content-type'] ?? '', await whole(response)]
    return { status: response.statusCode ?? 0, type, body: /^(?:text\/|application\/(?:[\w.+-]*json|yaml))/.test(type) || type === '' ? content.toString('utf8') : new Uint8Array(content) }
  }

  /** The body of a stream, piece by piece, until it ends, is silent for too long or the signal comes. */
  async stream(path: string, signal: AbortSignal, piece: (text: string) => void): Promise<void> {
    const response = await this.#send('GET', path, SILENT_MS, undefined, { accept: 'text/event-stream' }, signal)
    if (response.statusCode !== 200) throw refused(response.statusCode ?? 0, (await whole(response)).toString('utf8'))
    response.setEncoding('utf8')
    await new Promise<void>((done, fail) => {
      response.on('data', piece)
      response.once('end', done)
      response.once('error', (error) => fail(unreachable(error.message)))
      response.once('close', done)
    })
  }

  async #token(): Promise<string> {
    if (this.target.kind === 'address') {
      const token = await this.secret()
      if (token === undefined) throw new DaemonError({ status: 401, code: 'token_missing', what: 'No token is set for this address.', advice: 'Set it with "Lanyard: Set Token".' })
      return token
    }
    try {
      return (await readFile(this.target.tokenFile, 'utf8')).trim()
    } catch {
      throw unreachable(`there is no ${this.target.tokenFile}`)
    }
  }

  async #send(method: string, path: string, silence: number, body: string | Uint8Array | undefined, headers: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<IncomingMessage> {
    const token = await this.#token()
    const options: RequestOptions = {
      method,
      path,
      signal,
      timeout: silence,
      agent: false,
      headers: { 'user-agent': AGENT, ...headers, authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': typeof body === 'string' ? 'application/json' : 'application/octet-stream', 'content-length': Buffer.byteLength(body) }) },
    }
    return new Promise((done, fail) => {
      const asked = this.#open(options)
      asked.once('response', done)
      asked.once('timeout', () => asked.destroy(new Error('no answer in time')))
      asked.on('error', (error) => fail(unreachable(error.message)))
      asked.end(body)
    })
  }

  #open(options: RequestOptions): ClientRequest {
    if (this.target.kind === 'socket') return plain({ ...options, socketPath: this.target.socket, host: 'localhost' })
    const url = new URL(options.path ?? '/', this.target.base)
    return (url.protocol === 'https:' ? secure : plain)(url, options)
  }
}

async function whole(response: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes > BODY_BYTES_MAX) throw new Error('the answer is too large')
      pieces.push(piece)
    }
  } catch (error) {
    throw unreachable(error instanceof Error ? error.message : String(error))
  }
  return Buffer.concat(pieces)
}
