import { describe, expect, it } from 'vitest'

import type { Event } from '../events'
import { chunked, range } from './chunks'
import { Folded, Folder } from './fold'
import { matches, type Item } from './items'

type Said = [type: string, data?: unknown, at?: number]

const T0 = Date.parse('2026-01-01T00:00:00Z')
const event = ([type, data = {}, ms = 0]: Said, seq: number): Event =>
  ({ type, data, seq, session: 'sess_1', at: new Date(T0 + ms).toISOString(), actor: { kind: 'operator', name: 'ada' } }) as unknown as Event
const log = (...said: Said[]): Event[] => said.map((one, at) => event(one, at + 1))
const fold = (events: Event[]): Item[] => {
  const folder = new Folder()
  for (const one of events) folder.push(one)
  return folder.items
}
/** The parts of an item that a case is about. */
const told = (item: Item): string => {
  switch (item.kind) {
    case 'user':
    case 'agent':
    case 'thought':
      return `${item.kind}: ${item.text}`
    case 'tools':
      return `tools ${item.calls.length}`
    case 'tool':
      return `tool ${item.tool} ${item.state} ${item.ms ?? '-'}${item.files.length > 0 ? ` ${item.files.length} files` : ''}${item.relayed ? ` via ${item.relayed.channel}` : ''}`
    case 'note':
      return `note ${item.text} ${item.state}${item.channel ? ` ${item.channel}` : ''}`
    case 'gate':
      return `gate ${item.entry.status.name}`
    case 'plan':
      return `plan ${item.entries.length}${item.old ? ' old' : ''}`
    case 'run':
      return `run ${item.agent} ${item.state} ${item.continuity ?? '-'}`
    case 'end':
      return `end ${item.title} ${item.ms ?? '-'} ${item.tokens?.input ?? '-'}${item.uncertain ? ' uncertain' : ''}`
    case 'compacted':
      return `compacted ${item.before} ${item.after} lost ${item.lost.length}`
    case 'mark':
      return `mark ${item.lines.map((line) => line.text).join(' | ')}`
  }
}
const started: Said = ['turn.started', { turn: 't1', prompt: 'go', opening: { kind: 'new' } }, 0]
const say = (text: string): Said => ['message', { role: 'agent', text }]
const called = (call: string, tool = 'run', at = 0): Said => ['tool.called', { call, tool, arguments: { command: 'ls' } }, at]
const returned = (call: string, at = 0, bad = false): Said => ['tool.returned', { call, is_error: bad, content: 'ok' }, at]

describe('events to items', () => {
  const cases: [name: string, said: Said[], items: string[]][] = [
    ['one message of its pieces', [started, say('hel'), say('lo')], ['user: go', 'agent: hello']],
    ['FND-N8 messages with ids of their own are not glued', [['message', { role: 'agent', text: 'One', message_id: 'm1' }], ['message', { role: 'agent', text: ' more', message_id: 'm1' }], ['message', { role: 'agent', text: 'Two', message_id: 'm2' }], say('!')], ['agent: One more', 'agent: Two!']],
    ['FND-D16 a steered message shows once, when it arrives', [started, ['turn.queued', { turn: 't2', prompt: 'mind', note: 'n1', delivery: 'steer' }], ['guidance.queued', { note: 'n1', text: 'mind', kind: 'steer' }], ['guidance.delivered', { notes: ['n1'], channel: 'steer' }], ['turn.steered', { turn: 't2', channel: 'steer' }]], ['user: go', 'note mind delivered steer']],
    ['FND-D16 one that did not get in shows as its turn', [started, ['turn.queued', { turn: 't2', prompt: 'mind', note: 'n1', delivery: 'steer' }], ['guidance.queued', { note: 'n1', text: 'mind', kind: 'steer' }], ['guidance.settled', { notes: ['n1'], how: 'withdrawn' }], ['turn.started', { turn: 't2', prompt: 'mind', opening: { kind: 'continued' }, queued: true, delivery: 'steer' }]], ['user: go', 'user: mind']],
    ['FND-D16 one that was taken back says so', [['turn.queued', { turn: 't2', prompt: 'mind', note: 'n1', delivery: 'steer' }], ['guidance.queued', { note: 'n1', text: 'mind', kind: 'steer' }], ['guidance.settled', { notes: ['n1'], how: 'withdrawn' }], ['turn.withdrawn', { turn: 't2' }]], ['note mind withdrawn']],
    ['what stands between parts a message', [say('a'), called('c1'), say('b')], ['agent: a', 'tool run running -', 'agent: b']],
    ['an answer does not part a message from the one after its call', [called('c1'), say('a'), returned('c1'), say('b')], ['tool run ok 0', 'agent: ab']],
    ['thoughts are joined', [['thought', { text: 'I ' }], ['thought', { text: 'see' }]], ['thought: I see']],
    ['a call and its answer', [called('c1', 'run', 10), returned('c1', 250)], ['tool run ok 240']],
    ['a call that fails', [called('c1'), returned('c1', 5, true)], ['tool run error 5']],
    ['two calls at once', [called('c1', 'a'), called('c2', 'b'), returned('c2', 1), returned('c1', 2)], ['tool a ok 2', 'tool b ok 1']],
    ['an id that comes again is another call', [called('c1', 'a'), returned('c1'), called('c1', 'b')], ['tool a ok 0', 'tool b running -']],
    ['an answer to a call further up', [returned('c1', 5)], ['tool tool ok -']],
    ['a call that never came back', [started, called('c1'), ['turn.finished', { turn: 't1', outcome: 'completed' }, 900]], ['user: go', 'tool run open -', 'end Completed 900 -']],
    ['a call seen on its way only', [['tool.relayed', { call: 'x', tool: 'find', channel: 'mcp', server: 's', took_ms: 7, bytes: 9, is_error: false }]], ['tool find ok 7 via mcp']],
    ['a call told and seen on its way under another id', [called('a', 'mcp__s__find'), ['tool.relayed', { call: 'x', tool: 'find', channel: 'mcp', server: 's', took_ms: 7, bytes: 9, is_error: false }], returned('a', 99)], ['tool mcp__s__find ok 99 via mcp']],
    ['a call seen on its way beside another', [called('a', 'refind'), ['tool.relayed', { call: 'x', tool: 'find', channel: 'mcp', server: 's', took_ms: 7, bytes: 9, is_error: false }]], ['tool refind running -', 'tool find ok 7 via mcp']],
    ['a call seen on its way and told', [['tool.relayed', { call: 'x', tool: 'find', channel: 'mcp', took_ms: 7, bytes: 9, is_error: false }], called('x', 'find'), returned('x', 99)], ['tool find ok 7 via mcp']],
    ['files belong to the tool at work', [called('c1', 'edit'), ['file.changed', { path: '/a', added: 1, removed: 0 }], returned('c1')], ['tool edit ok 0 1 files']],
    ['files of nobody are a line', [['file.changed', { path: '/a', added: 1, removed: 0 }]], ['mark /a +1 −0']],
    ['usage goes to the end of the turn', [started, ['usage.reported', { input_tokens: 12, output_tokens: 3 }], ['turn.finished', { turn: 't1', outcome: 'failed' }, 5]], ['user: go', 'end Failed 5 12']],
    ['an interruption', [started, ['turn.interrupted', { turn: 't1', cause: 'crash', uncertain: true }, 5]], ['user: go', 'end Interrupted: crash 5 - uncertain']],
    ['a cancel', [started, ['turn.cancel_requested', { turn: 't1', forced: false, reason: 'wrong' }], ['turn.interrupted', { turn: 't1', cause: 'user' }, 5]], ['user: go', 'mark Cancel asked by ada: wrong', 'end Cancelled 5 -']],
    ['guidance stands where it was told', [['guidance.queued', { note: 'n1', text: 'look' }], say('a'), ['guidance.delivered', { notes: ['n1'], channel: 'mcp' }], say('b')], ['agent: a', 'note look delivered mcp', 'agent: b']],
    ['guidance that came back', [['guidance.queued', { note: 'n1', text: 'look' }], ['guidance.delivered', { notes: ['n1'], channel: 'mcp' }], ['guidance.returned', { notes: ['n1'] }]], ['note look returned']],
    ['guidance that was withdrawn', [['guidance.queued', { note: 'n1', text: 'look' }], say('a'), ['guidance.settled', { notes: ['n1'], how: 'withdrawn' }]], ['note look withdrawn', 'agent: a']],
    ['guidance whose words are further up', [['guidance.delivered', { notes: ['n1'], channel: 'hook', preview: 'loo' }]], ['note loo delivered hook']],
    ['only the last plan of a turn in full', [['plan.updated', { entries: [{ text: 'a', status: 'pending' }] }], ['plan.updated', { entries: [{ text: 'a', status: 'completed' }] }]], ['plan 1 old', 'plan 1']],
    ['a gate and its answer', [['gate.opened', { gate: 'g1', kind: 'permission', options: [], request: 'r', run: 'run1', title: 'May I?' }], ['gate.answered', { gate: 'g1', option: 'allow' }]], ['gate answered']],
    ['an answer to a gate further up', [['gate.answered', { gate: 'g1', option: 'allow' }]], []],
    ['a run', [['run.started', { run: 'r1', number: 1, agent: 'demo', driver: 'acp' }], ['run.ready', { run: 'r1', native: 'n', info: { name: 'x', protocol: 'acp 1' }, continuity: 'replayed' }]], ['run demo ready replayed']],
    ['a run that lived on', [['run.adopted', { run: 'r1' }]], ['run agent adopted exact']],
    ['a compaction', [['context.compacted', { size_before: 9, size_after: 2, anchors_lost: ['a'], anchors_survived: [], nth: 1, checkpoint: 1 }]], ['compacted 9 2 lost 1']],
    ['quiet lines share one', [['context.checkpoint', { position: 1, reason: 'turn_end' }], ['session.alias_added', { alias: 'x' }]], ['mark Checkpoint at 1, turn end | Alias x']],
    ['what nobody knows', [['comet.seen', { tail: true }], say('a')], ['mark comet seen', 'agent: a']],
    ['a damaged record', [['record.damaged', { first_seq: 1, last_seq: 3, what: 'torn' }]], ['mark Events 1 to 3 cannot be read: torn']],
    ['the steps of a stop', [['stop.requested', { level: 1, scope: 'subtree', reason: 'late' }], ['stop.raised', { from: 1, to: 3 }], ['stop.settled']], ['mark Stop asked by ada for the whole subtree (level 1, asked to stop): late', 'mark Stop raised to level 3, ending processes, by ada', 'mark Stop carried out']],
  ]
  it.each(cases)('%s', (_, said, items) => expect(fold(log(...said)).map(told)).toEqual(items))
})

describe('a log that grows', () => {
  const many = (n: number): Event[] =>
    Array.from({ length: n }, (_, at) => event(at % 4 === 0 ? say(`words ${at} `) : at % 4 === 1 ? called(`c${at}`) : at % 4 === 2 ? returned(`c${at - 1}`) : ['context.checkpoint', { position: at, reason: 'asked' }], at + 1))

  it('is the same folded piece by piece, at once, and with its past loaded later', () => {
    const events = many(400)
    const [grown, late] = [new Folded(), new Folded()]
    for (let to = 7; to <= 400; to += 7) grown.of(events.slice(0, to))
    late.of(events.slice(203))
    late.of(events.slice(101))
    const all = fold(events)
    expect(grown.of(events)).toEqual(all)
    expect(late.of(events)).toEqual(all)
  })

  it('keeps what did not change', () => {
    const events = many(400)
    const folded = new Folded()
    const before = folded.of(events.slice(200, 396))
    const after = folded.of(events.slice(200))
    expect(after.slice(0, before.length - 1).every((item, at) => item === before[at])).toBe(true)
    const past = folded.of(events)
    expect(before.slice(1).filter((item) => past.includes(item)).length).toBeGreaterThan(before.length - 4)
  })

  it('parts a message that grows and grows, and loses nothing of it', () => {
    const items = fold(log(...Array.from({ length: 600 }, (_, at) => say(`line ${at} ${'x'.repeat(90)}${at % 10 === 9 ? '\n\n' : '\n'}`))))
    expect(items.length).toBeGreaterThan(5)
    expect(items.every((item) => item.kind === 'agent' && item.text.length < 60_000)).toBe(true)
    expect(items.map((item) => (item.kind === 'agent' ? item.text : '')).join('').match(/line \d+ /g)?.length).toBe(600)
  })

  it('is folded also where it is long', () => {
    const items = fold(many(10_000))
    expect(items.at(-1)?.seq).toBeGreaterThan(9_000)
  })

  it('drops what was forgotten at its beginning', () => {
    const events = many(100)
    const folded = new Folded()
    folded.of(events)
    expect(folded.of(events.slice(50))[0]?.seq).toBe(51)
  })
})

it('FND-D8 a turn is summed up at the message that began it, once it is over', () => {
  const begun = [
    started, called('c1', 'read', 1), returned('c1', 2), called('c2', 'edit', 2), ['file.changed', { path: 'a', added: 1, removed: 0 }, 2], returned('c2', 3, true),
    ['usage.reported', { input_tokens: 12, output_tokens: 3, cost_micros: 40_000 }, 4],
  ] as Said[]
  expect(fold(log(...begun))[0]).not.toHaveProperty('turn')
  const [opening] = fold(log(...begun, ['turn.finished', { turn: 't1', outcome: 'completed' }, 5]))
  expect(opening).toMatchObject({ kind: 'user', turn: { ms: 5, tokens: 15, cost: 40_000, calls: 2, failed: 1, files: 1 } })
})

describe('chunks', () => {
  const items = fold(log(...Array.from({ length: 100 }, (_, at): Said => called(`c${at}`))))

  it('stay where they are when older ones come or a new one goes to the end', () => {
    const some = chunked(items.slice(40), [])
    const more = chunked(items, some)
    expect(more.at(-1)).toBe(some.at(-1))
    expect(more.flatMap((chunk) => chunk.items)).toEqual(items)
    expect(chunked(items.slice(0, 99), more)[0]).toBe(more[0])
  })

  it.each([
    [[100, 100, 100], 0, 50, { first: 0, last: 1, above: 0, below: 200 }],
    [[100, 100, 100], 150, 250, { first: 1, last: 3, above: 100, below: 0 }],
    [[100, 100, 100], 900, 1_000, { first: 2, last: 3, above: 200, below: 0 }],
    [[], 0, 500, { first: 0, last: 0, above: 0, below: 0 }],
  ])('of %j between %d and %d', (heights, from, to, found) => expect(range(heights, from, to)).toEqual(found))
})

it.each([
  ['messages', '', 2],
  ['tools', '', 1],
  ['control', '', 1],
  ['all', 'command', 1],
  ['all', 'hel', 1],
] as const)('the filter %s %s', (show, wanted, found) => {
  const items = fold(log(started, say('Hello'), called('c1'), ['context.checkpoint', { position: 1, reason: 'asked' }]))
  expect(items.filter((item) => matches(item, show, wanted)).length).toBe(found)
})
