import { describe, expect, it } from 'vitest'

import type { AuditEntry } from '../api/types'
import { auditQuery, sentence } from './sentence'

const entry = (event: string, more: Partial<AuditEntry> = {}): AuditEntry => ({
  at: '2026-11-16T10:00:00Z',
  session: 'sess_1',
  seq: 1,
  kind: 'stop',
  event,
  actor: { kind: 'operator', name: 'mara' },
  ...more,
})

/** The sentence as one text. */
function flat(one: AuditEntry, title: string): string {
  const { before, after, quote } = sentence(one)
  const text = [before, title, after].filter((part) => part !== '').join(' ')
  return quote ? `${text}: “${quote}”` : text
}

describe('an entry of the audit', () => {
  it.each<[AuditEntry, string]>([
    [entry('stop.requested', { escalation_level: 1, reason: 'enough' }), 'mara asked pay to stop · level 1, asked to stop: “enough”'],
    [entry('stop.raised', { from_level: 1, to_level: 2, escalation_level: 2 }), 'mara raised the stop of pay from level 1 to 2'],
    [
      entry('stop.applied', { channel: 'mcp', call: 'toolu_1', escalation_level: 2 }),
      'The stop reached pay in the answer to a tool call · level 2, tools blocked',
    ],
    [entry('stop.complied', { outcome: 'hand_off' }), 'pay complied with the stop by handing off'],
    [entry('stop.withdrawn', { reason: 'no' }), 'mara took back the stop of pay: “no”'],
    [entry('session.ended', { actor: { kind: 'system', name: 'agents' } }), 'pay was stopped'],
    [entry('guidance.queued', { text_preview: 'use tabs' }), 'mara told pay: “use tabs”'],
    [entry('guidance.delivered', { channel: 'hook', about: ['a', 'b'] }), "2 words of guidance reached pay through the agent's hook"],
    [entry('guidance.delivered', { channel: 'carrier_pigeon', about: ['a'] }), 'Guidance reached pay by carrier pigeon'],
    [entry('guidance.settled', { outcome: 'expired' }), 'Guidance for pay expired before anybody could be told'],
    [entry('guidance.settled', { outcome: 'withdrawn' }), 'mara took back guidance for pay'],
    [entry('gate.answered', { outcome: 'allow_once', kind: 'gate' }), 'mara answered “allow once” to an approval of pay'],
    [entry('stop.invented', { actor: { kind: 'agent', name: 'bob' }, outcome: 'odd_one' }), 'bob (agent): stop invented in pay odd one'],
  ])('%o', (one, text) => expect(flat(one, 'pay')).toBe(text))
})

describe('its filter', () => {
  const none = { session: '', kind: '', span: '', from: '', to: '' }
  const now = Date.parse('2026-11-16T10:00:00Z')

  it.each([
    [none, {}],
    [{ ...none, session: 's', kind: 'stop', span: '1h' }, { session: 's', kind: 'stop', since: '2026-11-16T09:00:00.000Z' }],
    [{ ...none, kind: 'nonsense', span: 'nonsense' }, {}],
    [{ ...none, span: 'between', from: 'x', to: '' }, {}],
    [
      { ...none, span: 'between', from: '2026-11-16T08:00Z', to: '2026-11-16T09:00Z' },
      { since: '2026-11-16T08:00:00.000Z', until: '2026-11-16T09:00:59.999Z' },
    ],
  ])('%o', (filter, query) => expect(auditQuery(filter, now)).toEqual(query))
})
