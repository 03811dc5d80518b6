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

it('tells each trouble once, questions first', () => {
  const rows = new Map(
    [
      session('asks', { attention: ['gate', 'guidance'] }),
      session('lost', { attention: ['suspected_orphan'] }),
      session('broke', { attention: ['failed'] }),
      session('ending', { attention: ['stopping'] }),
      session('away', { attention: ['failed'], archived: true }),
      session('fine'),
    ].map((row) => [row.id, row]),
  )
  const gates = {
    gates: [{ id: 'g1', session: 'asks', opened_at: AT, title: 'May I?' }],
    flows: [{ flow: 'f1', title: 'F', gate: { id: 'g2', opened_at: AT } }],
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
  expect(needsOf(rows, gates, alerts).map((need) => need.key)).toEqual(['flow:g2', 'gate:g1', 'lost', 'broke', 'asks', 'alert:n5', 'alert:n4'])
})

it('shows that a session asks before its question is known', () => {
  const rows = new Map([['a', session('a', { attention: ['gate'] })]])
  expect(needsOf(rows, null, null)).toMatchObject([{ kind: 'session', reasons: ['gate'] }])
})
