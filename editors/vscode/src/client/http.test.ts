import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterEach, beforeEach, expect, test } from 'vitest'

import { DaemonError } from './errors'
import { follow } from './follow'
import { DaemonHttp } from './http'
import { targetOf } from './target'

let folder = ''
let server: Server
const asked: { url: string; token: string; body: string }[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lye'))
  writeFileSync(join(folder, 'token'), 'lyd_secret\n')
  asked.length = 0
  server = createServer((request, response) => {
    let body = ''
    request.on('data', (piece) => (body += String(piece)))
    request.on('end', () => {
      asked.push({ url: request.url ?? '', token: request.headers.authorization ?? '', body })
      if (request.url?.startsWith('/api/v1/stream') === true) {
        const after = Number(new URL(request.url, 'http://x').searchParams.get('after') ?? 0)
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        // One event, then the connection is lost.
        response.end(`event: connected\ndata: {}\n\nid: ${after + 1}\ndata: ${after + 1}\n\n`)
      } else if (request.url === '/api/v1/busy') {
        response.writeHead(409, { 'content-type': 'application/json' })
        response.end('{"code":"turn_rejected_busy","title":"a turn runs","advice":"wait","status":409}')
      } else {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end('{"ok":true}')
      }
    })
  })
  await new Promise<void>((done) => server.listen(join(folder, 'lanyard.sock'), done))
})

afterEach(async () => {
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
  rmSync(folder, { recursive: true })
})

function client(): DaemonHttp {
  const target = targetOf({ address: '', dataFolder: folder }, {})
  if (target === null) throw new Error('no target')
  return new DaemonHttp(target, () => Promise.resolve(undefined))
}

test('requests go over the socket with the token of the folder, and refusals keep their code', async () => {
  expect(await client().post('/x', { a: 1 }, { query: { b: 2, c: null } })).toEqual({ ok: true })
  expect(asked).toEqual([{ url: '/api/v1/x?b=2', token: 'Bearer lyd_secret', body: '{"a":1}' }])
  const error = await client().get('/busy').catch((told: unknown) => told)
  expect(error).toBeInstanceOf(DaemonError)
  expect((error as DaemonError).refusal).toEqual({ status: 409, code: 'turn_rejected_busy', what: 'A turn runs.', advice: 'Wait.' })
})

test('a folder without a daemon is one that does not answer', async () => {
  rmSync(join(folder, 'token'))
  await expect(client().get('/me')).rejects.toMatchObject({ refusal: { code: 'unreachable' } })
})

test('a stream that is lost goes on after the last event', async () => {
  const seen: string[] = []
  await new Promise<void>((done) => {
    const stop = follow(client(), {
      where: () => `/api/v1/stream?after=${seen.length}`,
      event: (event) => {
        if (event.id === null) return
        seen.push(event.data)
        if (seen.length === 3) {
          stop()
          done()
        }
      },
      state: () => undefined,
    })
  })
  expect(seen).toEqual(['1', '2', '3'])
})
