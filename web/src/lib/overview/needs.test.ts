import { expect, it } from 'vitest'

import type { GateList, Notification, NotificationPage } from '../api/types'
import { needsOf } from './needs'
import { session } from './testing'

const AT = '2026-11-16T10:00:00Z'

function alert(id: string, more: Partial<Notification>): Notification {
  return {
    id, key: id, kind: 'continuity_alert', severity: 'warning', status: 'new', title: id, change: 1, changed_at: AT, raised_at: AT, repeats: 0, ...more,
  }
}
const page = (notifications: Notification[]): NotificationPage => ({ after: 1, counts: [], notifications })

it('FND-D3 tells each trouble once, the oldest first', () => {
  const rows = new Map(
    [
      session('asks', { attention: ['gate', 'guidance'] }),
      session('lost', { attention: ['suspected_orphan'], since: '2026-11-16T08:00:00Z' }),
      session('broke', { attention: ['failed'], since: '2026-11-16T12:00:00Z' }),
      session('ending', { attention: ['stopping'] }),
      session('away', { attention: ['failed'], archived: true }),
      session('fine'),
    ].map((row) => [row.id, row]),
  )
  const gates = {
    gates: [{ id: 'g1', session: 'asks', opened_at: AT, title: 'May I?' }],
    flows: [{ flow: 'f1', title: 'F', gate: { id: 'g2', opened_at: '2026-11-16T09:00:00Z' } }],
  } as unknown as GateList
  const alerts = page([
    alert('n1', { kind: 'gate_waiting', session: 'asks', subject: 'g1' }),
    alert('n2', { kind: 'suspected_orphan', session: 'lost' }),
    alert('n3', { kind: 'flow_waiting', subject: 'f1' }),
    alert('n4', { kind: 'budget_warning' }),
    alert('n5', { kind: 'budget_spent', severity: 'critical' }),
    alert('n6', { status: 'read' }),
    alert('n7', { over_at: AT }),
  ])
  expect(needsOf(rows, gates, alerts).map((need) => need.key)).toEqual(['lost', 'flow:g2', 'alert:n4', 'alert:n5', 'asks', 'gate:g1', 'broke'])
})

it('FND-D13 takes an answered approval and a seen turn for over before their notifications are', () => {
  const rows = new Map([['a', session('a')]])
  const alerts = page([alert('n1', { kind: 'gate_waiting', session: 'a', subject: 'g1' }), alert('n2', { kind: 'turn_finished', session: 'a' }), alert('n3', { kind: 'turn_finished', session: 'unknown' })])
  expect(needsOf(rows, { gates: [], flows: [] } as unknown as GateList, alerts).map((need) => need.key)).toEqual(['alert:n3'])
  expect(needsOf(rows, { gates: [], flows: [], truncated: true } as unknown as GateList, alerts)).toHaveLength(2)
})

it('FND-D13 leaves out what is snoozed, wherever it is told', () => {
  const rows = new Map([['a', session('a', { attention: ['turn_finished'] as never })], ['b', session('b', { attention: ['gate'] })], ['c', session('c', { attention: ['failed'] })]])
  const gates = { gates: [{ id: 'g1', session: 'b', opened_at: AT, title: 'May I?' }], flows: [] } as unknown as GateList
  const alerts = (status: Notification['status']): NotificationPage =>
    page([alert('n1', { kind: 'gate_waiting', session: 'b', subject: 'g1', status }), alert('n2', { kind: 'turn_finished', session: 'a', status })])
  expect(needsOf(rows, gates, alerts('new')).map((need) => [need.key, need.notice?.id])).toEqual([['a', 'n2'], ['c', undefined], ['gate:g1', 'n1']])
  expect(needsOf(rows, gates, alerts('snoozed')).map((need) => need.key)).toEqual(['c'])
})

it('shows that a session asks before its question is known', () => {
  const rows = new Map([['a', session('a', { attention: ['gate'] })]])
  expect(needsOf(rows, null, null)).toMatchObject([{ kind: 'session', reasons: ['gate'] }])
})
