// What an entry of the audit reads like: words before and after the session it is about, and what was said.
import type { Actor, AuditEntry } from '../api/types'
import { plural, words } from '../format'
import { STOP_LEVELS, type Tone } from '../states'

interface Sentence {
  before: string
  after: string
  quote?: string
  tone: Tone
}

const CHANNELS: Record<string, string> = {
  mcp: 'in the answer to a tool call',
  hook: "through the agent's hook",
  steer: 'into the running turn',
  prompt: 'with the next prompt',
}

const COMPLIED: Record<string, string> = {
  hand_off: 'by handing off',
  complete: 'by finishing what it did',
  acknowledge: 'by saying so',
}

export function who(actor: Actor): string {
  if (actor.kind === 'system') return 'Lanyard'
  return actor.kind === 'operator' ? actor.name : `${actor.name} (${actor.kind})`
}

export function channel(entry: AuditEntry): string {
  const by = entry.channel
  return by ? (CHANNELS[by] ?? `by ${words(by)}`) : ''
}

export function sentence(entry: AuditEntry): Sentence {
  const by = who(entry.actor)
  const level = entry.escalation_level
  const named = level ? `level ${level}, ${STOP_LEVELS[level]?.label ?? 'unknown'}` : ''
  const reason = entry.reason ?? undefined
  const said = entry.text_preview ?? undefined
  const told = (before: string, after: string, tone: Tone, quote?: string): Sentence => ({ before, after, tone, quote })
  if (entry.kind === 'change') return told(`${by}: ${words(entry.event)}`, entry.about?.[0] ?? '', 'plain', reason)
  switch (entry.event) {
    case 'stop.requested':
      return told(`${by} asked`, join('to stop', named), 'warn', reason)
    case 'stop.raised':
      return told(`${by} raised the stop of`, `from level ${entry.from_level ?? '?'} to ${entry.to_level ?? '?'}`, 'bad', reason)
    case 'stop.applied':
      return told('The stop reached', join(channel(entry), named), 'warn', reason)
    case 'stop.complied':
      return told('', join(`complied with the stop ${COMPLIED[entry.outcome ?? ''] ?? ''}`.trim()), 'ok', reason)
    case 'stop.settled':
      return told('The stop of', 'is settled', 'plain', reason)
    case 'stop.withdrawn':
      return told(`${by} took back the stop of`, '', 'plain', reason)
    case 'session.ended':
      return told('', 'was stopped', 'bad', reason)
    case 'guidance.queued':
      return told(`${by} told`, '', 'info', said)
    case 'guidance.delivered':
      return told(`${notes(entry)} reached`, channel(entry), 'ok', said)
    case 'guidance.returned':
      return told(`${notes(entry)} for`, 'came back unheard and waits again', 'warn', said)
    case 'guidance.settled':
      return settled(entry, by, said)
    case 'gate.answered':
      return told(`${by} answered “${words(entry.outcome ?? 'something')}” to an approval of`, '', 'violet', reason ?? said)
    default:
      return told(`${by}: ${words(entry.event)} in`, join(entry.outcome ? words(entry.outcome) : '', named), 'plain', said ?? reason)
  }
}

function settled(entry: AuditEntry, by: string, quote?: string): Sentence {
  const what = notes(entry)
  switch (entry.outcome) {
    case 'withdrawn':
      return { before: `${by} took back ${what.toLowerCase()} for`, after: '', tone: 'plain', quote }
    case 'acknowledged':
      return { before: '', after: `went on after it heard ${what.toLowerCase()}`, tone: 'ok', quote }
    case 'expired':
      return { before: `${what} for`, after: 'expired before anybody could be told', tone: 'bad', quote }
    default:
      return { before: `${what} for`, after: `is settled: ${words(entry.outcome ?? 'unknown')}`, tone: 'plain', quote }
  }
}

function notes(entry: AuditEntry): string {
  const many = entry.about?.length ?? 0
  return many > 1 ? `${plural(many, 'word')} of guidance` : 'Guidance'
}

function join(...parts: string[]): string {
  return parts.filter((part) => part !== '').join(' · ')
}

export const SPANS = [
  { value: '', label: 'Any time', ms: 0 },
  { value: '1h', label: 'Last hour', ms: 3_600_000 },
  { value: '24h', label: 'Last day', ms: 86_400_000 },
  { value: '7d', label: 'Last week', ms: 604_800_000 },
  { value: 'between', label: 'Between…', ms: 0 },
] as const

interface AuditFilter {
  session: string
  kind: string
  span: string
  /** Local times as an input of the kind `datetime-local` has them. */
  from: string
  to: string
}

export function auditQuery(filter: AuditFilter, now: number): Record<string, string> {
  const query: Record<string, string> = {}
  if (filter.session !== '') query.session = filter.session
  if (['stop', 'guidance', 'gate'].includes(filter.kind)) query.kind = filter.kind
  if (filter.span === 'between') {
    const from = Date.parse(filter.from)
    const to = Date.parse(filter.to)
    if (!Number.isNaN(from)) query.since = new Date(from).toISOString()
    // The minute that was chosen belongs to it.
    if (!Number.isNaN(to)) query.until = new Date(to + 59_999).toISOString()
    return query
  }
  const span = SPANS.find((one) => one.value === filter.span)
  if (span !== undefined && span.ms > 0) query.since = new Date(now - span.ms).toISOString()
  return query
}
