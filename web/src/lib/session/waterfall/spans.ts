// A turn as spans of time: what the model did, which tools ran, and what waited for whom. A pure function of its events.
import type { Event } from '../events'

export type SpanKind = 'model' | 'call' | 'approval' | 'limit'

export interface Span {
  kind: SpanKind
  name: string
  /** Milliseconds since the turn began. */
  from: number
  to: number
  /** It had not ended when the turn did, or has not ended yet. */
  open: boolean
  failed: boolean
  seq: number
  /** Calls that are folded into it. */
  of: number
}

export interface Waterfall {
  began: number
  /** Length of the turn in milliseconds, so far. */
  length: number
  ended: boolean
  spans: readonly Span[]
  /** Time in which the model worked, tools ran, and the turn waited. */
  model: number
  tools: number
  waits: number
  calls: number
}

/** Spans that are shown one by one. Beyond that, neighbouring calls of one tool are folded, and then any neighbours. */
export const SPANS_MAX = 120

/** The events of a turn, from its first to its last. */
export function turnEvents(events: readonly Event[], turn: string): readonly Event[] {
  const first = events.findIndex((event) => event.type === 'turn.started' && event.data.turn === turn)
  if (first < 0) return []
  const after = events.slice(first)
  const end = after.findIndex((event) => (event.type === 'turn.finished' || event.type === 'turn.interrupted') && event.data.turn === turn)
  return end < 0 ? after : after.slice(0, end + 1)
}

/** The spans of a turn's events. `now` is where it stands while it runs. */
export function waterfall(events: readonly Event[], now: number): Waterfall {
  const first = events[0]
  const last = events.at(-1)
  if (first === undefined || last === undefined) return { began: now, length: 0, ended: true, spans: [], model: 0, tools: 0, waits: 0, calls: 0 }
  const began = Date.parse(first.at)
  const ended = last.type === 'turn.finished' || last.type === 'turn.interrupted'
  const length = Math.max(1, (ended ? Date.parse(last.at) : Math.max(now, Date.parse(last.at))) - began)
  const spans: Span[] = []
  const open = new Map<string, Span>()
  const reports = events.some((event) => event.type === 'tool.called')
  const at = (event: Event): number => Math.min(length, Math.max(0, Date.parse(event.at) - began))
  const begin = (key: string, event: Event, kind: SpanKind, name: string): void => {
    if (open.has(key)) return
    const span: Span = { kind, name, from: at(event), to: length, open: true, failed: false, seq: event.seq, of: 1 }
    open.set(key, span)
    spans.push(span)
  }
  const end = (key: string, event: Event, failed = false): boolean => {
    const span = open.get(key)
    if (span === undefined) return false
    Object.assign(span, { to: Math.max(span.from, at(event)), open: false, failed })
    open.delete(key)
    return true
  }
  for (const event of events) {
    switch (event.type) {
      case 'tool.called':
        begin(`call ${event.data.call}`, event, 'call', event.data.tool)
        break
      case 'tool.returned':
        end(`call ${event.data.call}`, event, event.data.is_error)
        break
      case 'tool.relayed': {
        // The agent's own report of a call says more; one that it does not report has its time in the record.
        if (reports) break
        const to = at(event)
        spans.push({ kind: 'call', name: event.data.tool, from: Math.max(0, to - event.data.took_ms), to, open: false, failed: event.data.is_error, seq: event.seq, of: 1 })
        break
      }
      case 'gate.opened':
        begin(`gate ${event.data.gate}`, event, 'approval', event.data.title)
        break
      case 'gate.answered':
      case 'gate.withdrawn':
        end(`gate ${event.data.gate}`, event)
        break
      case 'turn.waiting':
        begin('limit', event, 'limit', `${event.data.limit.kind.replaceAll('_', ' ')} limit`)
        break
      case 'turn.continued':
        end('limit', event)
        break
      default:
        break
    }
  }
  const busy = [...spans].sort((a, b) => a.from - b.from)
  const model = gaps(busy, length)
  const all = [...model, ...spans].sort((a, b) => a.from - b.from || a.seq - b.seq)
  const sum = (...kinds: SpanKind[]): number => covered(spans.filter((span) => kinds.includes(span.kind)))
  return {
    began,
    length,
    ended,
    spans: folded(all),
    model: model.reduce((ms, span) => ms + span.to - span.from, 0),
    tools: sum('call'),
    waits: sum('approval', 'limit'),
    calls: spans.filter((span) => span.kind === 'call').length,
  }
}

/** The times in which nothing else goes on: the model thinks or writes. */
function gaps(busy: readonly Span[], length: number): Span[] {
  const found: Span[] = []
  let free = 0
  const add = (to: number, seq: number): void => {
    if (to > free) found.push({ kind: 'model', name: 'Model', from: free, to, open: false, failed: false, seq, of: 1 })
  }
  for (const span of busy) {
    add(span.from, span.seq)
    free = Math.max(free, span.to)
  }
  add(length, Number.MAX_SAFE_INTEGER)
  return found
}

/** Milliseconds in which at least one of the spans goes on. */
function covered(spans: readonly Span[]): number {
  let sum = 0
  let until = 0
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    sum += Math.max(0, span.to - Math.max(span.from, until))
    until = Math.max(until, span.to)
  }
  return sum
}

/** So many spans as can be read: neighbouring calls of one tool become one, and where that is not enough any neighbours. */
function folded(spans: readonly Span[]): readonly Span[] {
  if (spans.length <= SPANS_MAX) return spans
  const calls = spans.filter((span) => span.kind !== 'model')
  const alike = merge(calls, (a, b) => a.kind === 'call' && b.kind === 'call' && a.name === b.name)
  if (alike.length <= SPANS_MAX) return alike
  const size = Math.ceil(alike.length / SPANS_MAX)
  let taken = 0
  return merge(alike, (a, b) => {
    taken = a.kind === 'call' && b.kind === 'call' && taken < size - 1 ? taken + 1 : 0
    return taken > 0
  })
}

function merge(spans: readonly Span[], joins: (a: Span, b: Span) => boolean): readonly Span[] {
  const found: Span[] = []
  for (const span of spans) {
    const before = found.at(-1)
    if (before !== undefined && joins(before, span)) {
      const name = before.name === span.name ? before.name : 'Several tools'
      found[found.length - 1] = { ...before, name, to: Math.max(before.to, span.to), open: before.open || span.open, failed: before.failed || span.failed, of: before.of + span.of }
    } else found.push(span)
  }
  return found
}
