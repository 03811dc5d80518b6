import { describe, expect, test } from 'vitest'

import { SseParser } from './sse'

const STREAM = 'event: connected\ndata: {"a":1}\n\n: heartbeat\n\nid: 7\ndata: first\ndata: second\n\nid: 8\r\ndata: {"ü":"€"}\r\n\r\n'

describe('server-sent events', () => {
  test('are the same in pieces of any size', () => {
    const wanted = [
      { id: null, name: 'connected', data: '{"a":1}' },
      { id: '7', name: null, data: 'first\nsecond' },
      { id: '8', name: null, data: '{"ü":"€"}' },
    ]
    for (let size = 1; size <= STREAM.length; size += 1) {
      const parser = new SseParser()
      const found = []
      for (let at = 0; at < STREAM.length; at += size) found.push(...parser.push(STREAM.slice(at, at + size)))
      expect(found, `pieces of ${size}`).toEqual(wanted)
    }
  })

  test('that are not complete are not there', () => {
    expect(new SseParser().push('id: 7\ndata: first\n')).toEqual([])
  })

  test('have a longest line', () => {
    const parser = new SseParser()
    expect(() => {
      for (let pieces = 0; pieces < 40; pieces += 1) parser.push('x'.repeat(1024 * 1024))
    }).toThrow('too long')
  })
})
