import { describe, expect, it } from 'vitest'

import type { ContinuityCounts, ContinuityReport } from '../api/types'
import { failures, percent, rates, rule, windowOf } from './words'

const counts: ContinuityCounts = {
  sessions_created: 4, accidental_new_sessions: 1,
  attach_attempts: 12, attach_succeeded: 3, attach_failed: 9,
  resume_attempts: 0, resume_succeeded: 0, resume_failed: 0,
  continuity: { exact: 0, native: 0, replayed: 0, preamble: 0, lost: 0 },
  busy_rejections: 0, duplicate_suppressions: 3, duplicate_turns: 2,
}
const report: ContinuityReport = {
  now: '2026-11-16T10:00:00Z',
  continuity_status: 'degraded',
  attach_success_rate: 0.25,
  resume_success_rate: null,
  accidental_new_session_rate: 0.25,
  duplicate_turn_prevention_count: 2,
  alerts: [{ code: 'attach_success_rate', actual: 0.25, threshold: 0.95, clears_at: 0.98, attempts: 12, failed: 9, text: '…' }],
  rules: { window_ms: 3_600_000, accident_ms: 60_000, min_attempts: 10, attach_success_min: 0.95, resume_success_min: 0.9, accidental_new_max: 0.1, recovery_margin: 0.03, attach_failures_max: 0, resume_failures_max: 0, failures_clear_share: 0.5 } as ContinuityReport['rules'],
  totals: counts,
  window: counts,
}

describe('continuity in words', () => {
  it.each([[null, '–'], [1, '100 %'], [0.25, '25 %'], [0.9642, '96.4 %'], [0.1 - 0.03, '7 %'], [0, '0 %']])('%s is %s', (rate, text) => expect(percent(rate)).toBe(text))
  it.each([[3_600_000, '60 minutes'], [60_000, '1 minute'], [86_400_000, '24 hours'], [9_000_000, '2.5 hours']])('%d ms are %s', (ms, text) =>
    expect(windowOf(ms)).toBe(text))

  it('says of each rate what it stands on', () => {
    expect(rates(report).map((rate) => [rate.tone, rate.says])).toEqual([
      ['bad', '9 of 12 attaches failed'],
      ['plain', 'no resumes yet'],
      ['plain', '1 of 4 new sessions by accident; below 10 it says nothing'],
    ])
  })

  it('explains when an alert begins and ends', () => {
    expect(rule(report.rules)).toContain('at least 10 attempts')
    expect(rule(report.rules)).toContain('better than the limit by 3 %')
  })

  it('counts what failed', () => expect(failures(report).map((one) => one.value)).toEqual([2, 9, 0, 0]))
})
