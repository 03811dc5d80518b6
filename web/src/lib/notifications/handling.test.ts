import { describe, expect, it } from 'vitest'

import { bulk, delivered, edit, listQuery, offered, tomorrow, until } from './handling'

const open = { status: 'open', kind: '', severity: '', session: '' }

describe('what is offered (S3-43)', () => {
  it.each([
    ['continuity_alert', 'new', ['acknowledge', 'snooze', 'dismiss']],
    ['continuity_alert', 'acknowledged', ['snooze', 'dismiss']],
    ['continuity_alert', 'dismissed', []],
    ['gate_waiting', 'new', ['read']],
    ['gate_waiting', 'read', []],
    ['gate_waiting', 'snoozed', ['read']],
  ] as const)('a %s that is %s', (kind, status, wanted) => expect(offered({ kind, status })).toEqual(wanted))
})

describe('changes', () => {
  const now = new Date(2026, 10, 16, 23, 30)
  it('say until when', () => {
    expect(until(new Date(2026, 10, 16, 23, 59).toISOString(), now)).toBe('23:59')
    expect(until(new Date(2026, 10, 17, 8).toISOString(), now)).toMatch(/^\S+ 08:00$/)
  })
  it('last until the next morning', () => expect(tomorrow(now)).toEqual(new Date(2026, 10, 17, 8)))
  it.each([
    [edit('acknowledge'), { status: 'acknowledged' }],
    [edit('snooze'), { status: 'snoozed', snooze_ms: 1_800_000 }],
    [edit('snooze', '1h'), { status: 'snoozed', snooze_ms: 3_600_000 }],
    [edit('snooze', 'tomorrow', now), { status: 'snoozed', until: new Date(2026, 10, 17, 8).toISOString() }],
  ])('%o', (made, wanted) => expect(made).toEqual(wanted))
})

describe('filters', () => {
  it.each([
    [open, { open: true }],
    [{ ...open, status: 'all' }, {}],
    [{ ...open, status: 'snoozed' }, { status: 'snoozed' }],
    [{ status: 'nonsense', kind: 'nonsense', severity: 'nonsense', session: 's' }, { open: true, session: 's' }],
    [{ ...open, kind: 'gate_waiting', severity: 'warning' }, { open: true, kind: 'gate_waiting', severity: 'warning' }],
  ])('%o', (filter, query) => expect(listQuery(filter)).toEqual(query))

  it('say which ones are changed at once', () => {
    expect(bulk({ ...open, kind: 'gate_waiting' }, 'acknowledge')).toEqual([
      { filter: { kind: 'gate_waiting', status: 'new' }, limit: 500, status: 'acknowledged' },
      { filter: { kind: 'gate_waiting', status: 'read' }, limit: 500, status: 'acknowledged' },
    ])
    expect(bulk(open, 'dismiss').map((one) => one.filter.status)).toEqual(['new', 'read', 'acknowledged', 'snoozed'])
    expect(bulk({ ...open, status: 'acknowledged' }, 'read')).toEqual([])
  })
})

it('a delivery that was given up says so', () => {
  expect(delivered({ name: 'dead', at: '2026-11-16T10:00:00Z' })).toEqual({ label: 'given up', tone: 'bad', at: '2026-11-16T10:00:00Z' })
})
