import { describe, expect, it } from 'vitest'

import { Grouped, kindOf, names, summary } from './grouped'
import type { Item, ToolItem } from './items'

function call(seq: number, tool: string, more: Partial<ToolItem> = {}): ToolItem {
  return {
    kind: 'tool', key: `tool${seq}`, seq, last: seq + 1, at: '2026-11-16T10:00:00Z', sum: seq, call: `${seq}`, tool, arguments: {}, content: '',
    state: 'ok', ms: 100, relayed: null, files: [], ...more,
  }
}
const said = (seq: number): Item => ({ kind: 'agent', key: `agent${seq}`, seq, last: seq, at: '', sum: seq, text: 'so', rest: false })
const shape = (items: readonly Item[]): string[] => items.map((item) => (item.kind === 'tools' ? `${item.calls.length} from ${item.seq} to ${item.last}` : item.key))

describe('FND-D9 calls of one kind', () => {
  it('share a line from the third on, and what is said parts them', () => {
    const items = [call(1, 'read'), call(2, 'grep'), call(3, 'Read'), said(4), call(5, 'read'), call(6, 'read'), call(7, 'bash'), call(8, 'run'), call(9, 'exec_command')]
    expect(shape(new Grouped().of(items))).toEqual(['3 from 1 to 4', 'agent4', 'tool5', 'tool6', '3 from 7 to 10'])
  })

  it('leaves out changes of files, and tools that have nothing in common', () => {
    const file = { path: 'a', added: 1, removed: 0 }
    expect(kindOf(call(1, 'read', { files: [file] }))).toBeNull()
    expect(kindOf(call(1, 'Edit'))).toBeNull()
    expect(shape(new Grouped().of([call(1, 'a'), call(2, 'b'), call(3, 'c')]))).toEqual(['tool1', 'tool2', 'tool3'])
  })

  it('is one item for a thousand, the same one until something in it changes', () => {
    const many = Array.from({ length: 1_000 }, (_, at) => call(at + 1, 'probe'))
    const grouped = new Grouped()
    const [first] = grouped.of(many)
    expect(grouped.of([...many])[0]).toBe(first)
    const [next] = grouped.of([...many.slice(0, -1), call(1_000, 'probe', { sum: 2_000 })])
    expect(next).not.toBe(first)
    expect(next?.key).toBe(first?.key)
  })

  it('says how many, what failed and how long it took', () => {
    const calls = [...Array.from({ length: 23 }, (_, at) => call(at, 'read')), call(30, 'grep', { state: 'error', ms: 800 }), call(31, 'grep', { ms: null })]
    expect(summary(calls)).toBe('Ran 25 tools, 1 failed, 3.1 s')
    expect(names(calls)).toBe('read 23 · grep 2')
    expect(summary([call(1, 'a'), call(2, 'a', { state: 'running', ms: null }), call(3, 'a', { state: 'open', ms: null })])).toBe('Ran 2 tools, 1 never came back, 1 running, 100 ms')
  })
})
