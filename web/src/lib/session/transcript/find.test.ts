import { describe, expect, it } from 'vitest'

import { failures, hits, next } from './find'
import type { Item, ToolItem } from './items'

const base = (seq: number): { seq: number; last: number; at: string; sum: number } => ({ seq, last: seq, at: '2026-01-01T00:00:00Z', sum: seq })
const agent = (seq: number, text: string): Item => ({ kind: 'agent', key: `agent${seq}`, text, rest: false, ...base(seq) })
const tool = (seq: number, tool: string, state: ToolItem['state'] = 'ok'): ToolItem => ({ kind: 'tool', key: `tool${seq}`, call: `c${seq}`, tool, arguments: {}, content: '', state, ms: 1, relayed: null, files: [], ...base(seq) })
const group = (...calls: ToolItem[]): Item => ({ kind: 'tools', key: `tools${calls[0]?.seq}`, calls, ...base(calls[0]?.seq ?? 0) })
const end = (seq: number, tone: 'ok' | 'bad'): Item => ({ kind: 'end', key: `end${seq}`, title: 'Over', tone, reason: null, ms: null, tokens: null, cost: null, uncertain: false, ...base(seq) })

const log = [agent(1, 'Look for the needle'), group(tool(2, 'read'), tool(3, 'needle', 'error'), tool(4, 'read')), tool(5, 'write', 'error'), end(6, 'bad'), agent(7, 'A NEEDLE'), end(8, 'ok')]

describe('what is looked for', () => {
  it('words are found in items and in single calls of a group', () => expect(hits(log, 'needle').map((hit) => hit.key)).toEqual(['agent1', 'tool3', 'agent7']))
  it('nothing is looked for without words', () => expect(hits(log, '')).toEqual([]))
  it('failed calls and turns', () => expect(failures(log).map((hit) => hit.key)).toEqual(['tool3', 'tool5', 'end6']))

  const found = hits(log, 'needle')
  it.each([
    ['back from the end', null, 99, -1, 2],
    ['back from between', null, 5, -1, 1],
    ['back from the current one', 'agent7', 0, -1, 1],
    ['back from the first one', 'agent1', 0, -1, -1],
    ['on from the current one', 'tool3', 0, 1, 2],
    ['on from the last one', 'agent7', 0, 1, -1],
    ['on from between', null, 2, 1, 1],
    ['on from a hit that is gone', 'agent99', 3, 1, 1],
  ] as const)('%s', (_, current, seq, by, at) => expect(next(found, current, seq, by)).toBe(at))
})
