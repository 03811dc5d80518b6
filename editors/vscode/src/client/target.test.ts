import { expect, test } from 'vitest'

import { pause } from './follow'
import { dataFolder, targetOf } from './target'

test('the data folder is found as by the program', () => {
  expect(dataFolder('', {}, '/home/you')).toBe('/home/you/.local/share/lanyard')
  expect(dataFolder('', { XDG_DATA_HOME: '/data' }, '/home/you')).toBe('/data/lanyard')
  expect(dataFolder('', { XDG_DATA_HOME: 'data' }, '/home/you')).toBe('/home/you/.local/share/lanyard')
  expect(dataFolder('', { XDG_DATA_HOME: '/data', LANYARD_DATA_DIR: '/own' }, '/home/you')).toBe('/own')
  expect(dataFolder('~/mine', { LANYARD_DATA_DIR: '/own' }, '/home/you')).toBe('/home/you/mine')
  expect(targetOf({ address: ' ', dataFolder: '/a' }, {})).toEqual({ kind: 'socket', folder: '/a', socket: '/a/lanyard.sock', tokenFile: '/a/token' })
})

test('a token goes in the clear only to this machine', () => {
  const base = (address: string): string | null => {
    const target = targetOf({ address, dataFolder: '' }, {})
    return target?.kind === 'address' ? target.base : null
  }
  expect(base('127.0.0.1:4519')).toBe('http://127.0.0.1:4519')
  expect(base('http://localhost:1/')).toBe('http://localhost:1')
  expect(base('https://build-host:4519/x')).toBe('https://build-host:4519')
  expect(base('http://build-host:4519')).toBeNull()
  expect(base('http://127.0.0.1.example:4519')).toBeNull()
  expect(base('https://you:secret@build-host')).toBeNull()
  expect(base('ftp://127.0.0.1')).toBeNull()
  expect(base('http://')).toBeNull()
})

test('tries are further apart each time, up to a bound', () => {
  expect([0, 1, 2, 3].map((tries) => pause(tries, 0.5))).toEqual([250, 500, 1_000, 2_000])
  expect(pause(1_000, 1)).toBeLessThanOrEqual(6_250)
  expect(pause(0, 0)).toBeLessThan(pause(0, 1))
})
