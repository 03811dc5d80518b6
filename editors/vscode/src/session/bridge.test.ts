import { expect, test } from 'vitest'

import { allowedHeaders, allowedPath, fromPage } from './bridge'
import { idOf } from './ids'

const OWN = 'sess_01m7r9fckefbhvxsfwrk55cy22'

test('a tab asks about its own session and nothing else', () => {
  const may = (method: string, path: string): string | null => allowedPath(method, `/api/v1${path}`, OWN)
  expect(may('GET', `/sessions/${OWN}`)).toBe(`/api/v1/sessions/${OWN}`)
  expect(may('POST', `/sessions/${OWN}/stop`)).toBe(`/api/v1/sessions/${OWN}/stop`)
  expect(may('GET', `/sessions/${OWN}/attach?after=3&client=web`)).toBe(`/api/v1/sessions/${OWN}/attach?after=3&client=vscode`)
  expect(may('GET', '/me')).toBe('/api/v1/me')
  expect(may('POST', '/attachments?name=shot.png')).toBe('/api/v1/attachments?name=shot.png')
  for (const [method, path] of [
    ['GET', '/sessions'],
    ['GET', '/tokens'],
    ['POST', '/tokens'],
    ['POST', '/me'],
    ['GET', '/attachments'],
    ['POST', '/attachments/x'],
    ['POST', '/halt'],
    ['POST', '/shutdown'],
    ['DELETE', `/sessions/${OWN}`],
    ['GET', `/sessions/${OWN}2`],
    ['GET', `/sessions/${OWN}x/events`],
    ['GET', `/sessions/${OWN}/../other`],
    ['GET', `/sessions/${OWN}/..%2fother`],
    ['GET', `/sessions/${OWN}/%2e%2e/other`],
    ['GET', `/sessions/${OWN}/\\..\\other`],
    ['TRACE', `/sessions/${OWN}`],
  ] as const) {
    expect(may(method, path), `${method} ${path}`).toBeNull()
  }
  expect(allowedPath('GET', `http://elsewhere/api/v1/sessions/${OWN}`, OWN)).toBeNull()
  expect(allowedPath('GET', `//elsewhere/api/v1/sessions/${OWN}`, OWN)).toBeNull()
})

test('a tab sets no header that says who it is', () => {
  expect(allowedHeaders({ 'Idempotency-Key': 'k', authorization: 'Bearer x', host: 'y', 'lanyard-writer': '2', cookie: 'z' })).toEqual({ 'Idempotency-Key': 'k', 'lanyard-writer': '2' })
})

test('the content of a file goes where files are kept and nowhere else', () => {
  const given = (path: string, bytes: number): unknown => fromPage({ type: 'request', ref: 1, method: 'POST', path, body: new Uint8Array(bytes) })
  expect(given('/api/v1/attachments?name=a.png', 3)).toMatchObject({ body: new Uint8Array(3) })
  expect(given(`/api/v1/sessions/${OWN}/turns`, 3)).toBeNull()
  expect(given('/api/v1/attachments', 25 * 1024 * 1024)).toBeNull()
})

test('a message of a tab is checked before it is used', () => {
  expect(fromPage({ type: 'request', ref: 1, method: 'GET', path: '/x' })).toEqual({ type: 'request', ref: 1, method: 'GET', path: '/x', headers: {}, body: null })
  for (const message of [null, 'ready', {}, { type: 'open', ref: 'a', path: '/' }, { type: 'request', ref: 1.5, method: 'GET', path: '/' }, { type: 'request', ref: 1, method: 'GET', path: '/', body: {} }, { type: 'do', what: 'shell', arg: 'rm' }]) {
    expect(fromPage(message)).toBeNull()
  }
})

// S4-06: an address names its task, whatever else is in the link.
test('a link names one session or task', () => {
  expect(idOf(`/${OWN}`)).toEqual({ kind: 'session', id: OWN })
  expect(idOf('/open id=task_01m7gaxwadehjrqszrz6wfjcts&from=mail')).toEqual({ kind: 'task', id: 'task_01m7gaxwadehjrqszrz6wfjcts' })
  for (const text of ['', '/', '/open', `/${OWN}/task_1`, 'xsess_1', 'sess_', 'sess_A', `sess_${'a'.repeat(41)}`]) expect(idOf(text), text).toBeNull()
})
