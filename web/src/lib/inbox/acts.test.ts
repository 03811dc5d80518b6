import { describe, expect, it } from 'vitest'

import type { Notification } from '../api/types'
import { session } from '../overview/testing'
import { actsOf, pathOf, snooze, withoutCommands, type Listed } from './acts'

const of = (...attention: string[]): Listed => {
  const row = session('a', { attention: attention as never })
  return { kind: 'session', key: 'a', row, reasons: row.attention, notice: undefined }
}
const alert = (more: Partial<Notification>): Listed => {
  const notice = { id: 'n1', kind: 'budget_warning', ...more } as Notification
  return { kind: 'alert', key: 'alert:n1', alert: notice, row: undefined, notice }
}

describe('FND-D13 buttons for what waits', () => {
  it.each<[string[], string[]]>([
    [['turn_finished'], ['done']],
    [['turn_failed', 'inbox_paused'], ['go', 'done']],
    [['agent_crashed'], ['resume', 'done']],
    [['failed'], ['archive']],
    [['suspected_orphan'], []],
  ])('%j', (reasons, names) => expect(actsOf(of(...reasons)).map((act) => act.name)).toEqual(names))

  it('lead to what they are about', () => {
    expect(pathOf(of('failed'))).toBe('/sessions/a')
    expect(pathOf(alert({ session: 'gone' }))).toBe('/sessions/gone')
    expect(pathOf(alert({ subject: 'flow_1' }))).toBe('/flows/flow_1')
    expect(pathOf(alert({ kind: 'continuity_alert' }))).toBe('/health')
    expect(pathOf(alert({}))).toBe('/notifications')
    expect(snooze(undefined)).toBeNull()
  })

  it.each([
    ['Session "Deploy" waits. Answer with `lanyard answer gate_1 allow`, or `deny`.', 'Session "Deploy" waits.'],
    ['Its work is left as it was. Look with `lanyard show s`; resume it with `lanyard resume s`.', 'Its work is left as it was.'],
    ['Look with `lanyard metrics`.', ''],
    ['The command `npm test` failed. Look.', 'The command `npm test` failed. Look.'],
  ])('%s', (text, shown) => expect(withoutCommands(text)).toBe(shown))
})
