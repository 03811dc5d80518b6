// Rates and rules of continuity as people say them.
import type { ContinuityCounts, ContinuityReport, ContinuityRules } from '../api/types'
import { count, plural } from '../format'
import type { Tone } from '../states'

/** `96.4 %`, and a dash where nothing was tried. */
export function percent(rate: number | null | undefined): string {
  if (rate == null) return '–'
  return `${Math.round(rate * 1_000) / 10} %`
}

export interface Rate {
  code: 'attach_success_rate' | 'resume_success_rate' | 'accidental_new_session_rate'
  label: string
  value: number | null
  limit: number
  /** Whether less is better. */
  least: boolean
  attempts: number
  failed: number
  tone: Tone
  /** What came of it, in words. */
  says: string
}

export function rates(report: ContinuityReport): Rate[] {
  const { window, rules } = report
  const made = (
    code: Rate['code'],
    label: string,
    value: number | null | undefined,
    limit: number,
    least: boolean,
    attempts: number,
    failed: number,
    what: readonly [string, string, string],
  ): Rate => {
    const alerts = report.alerts.some((alert) => alert.code === code)
    const enough = attempts >= rules.min_attempts
    const tone: Tone = alerts ? 'bad' : value == null || !enough ? 'plain' : 'ok'
    const [one, many, went] = what
    const counted = attempts === 0 ? `no ${many} yet` : `${count(failed)} of ${plural(attempts, one, many)} ${went}`
    const says = attempts > 0 && !enough ? `${counted}; below ${rules.min_attempts} it says nothing` : counted
    return { code, label, value: value ?? null, limit, least, attempts, failed, tone, says }
  }
  return [
    made('attach_success_rate', 'Attach success', report.attach_success_rate, rules.attach_success_min, false,
      window.attach_attempts, window.attach_failed, ['attach', 'attaches', 'failed']),
    made('resume_success_rate', 'Resume success', report.resume_success_rate, rules.resume_success_min, false,
      window.resume_attempts, window.resume_failed, ['resume', 'resumes', 'failed']),
    made('accidental_new_session_rate', 'Accidental new sessions', report.accidental_new_session_rate, rules.accidental_new_max, true,
      window.sessions_created, window.accidental_new_sessions, ['new session', 'new sessions', 'by accident']),
  ]
}

/** `60 minutes`, `24 hours`. */
export function windowOf(ms: number): string {
  const minutes = Math.round(ms / 60_000)
  if (minutes < 120) return plural(minutes, 'minute')
  const hours = minutes / 60
  return Number.isInteger(hours) ? plural(hours, 'hour') : `${hours.toFixed(1)} hours`
}

/** When an alert begins and ends, so that nobody wonders why it stays or why it does not come. */
export function rule(rules: ContinuityRules): string {
  return (
    `Rates are of the last ${windowOf(rules.window_ms)}. An alert begins when a rate of at least ` +
    `${plural(rules.min_attempts, 'attempt')} is beyond its limit, and ends when it is better than the limit by ` +
    `${percent(rules.recovery_margin)} or nothing that failed is left: in between it holds, so that it does not flap.`
  )
}

interface CountRow {
  label: string
  of: (counts: ContinuityCounts) => number
  /** A part of the row above. */
  part?: boolean
  /** Bad as soon as there is one. */
  bad?: boolean
}

export const COUNTS: readonly CountRow[] = [
  { label: 'Sessions made', of: (held) => held.sessions_created },
  { label: 'by accident', of: (held) => held.accidental_new_sessions, part: true, bad: true },
  { label: 'Attaches', of: (held) => held.attach_attempts },
  { label: 'failed', of: (held) => held.attach_failed, part: true, bad: true },
  { label: 'Resumes', of: (held) => held.resume_attempts },
  { label: 'failed', of: (held) => held.resume_failed, part: true, bad: true },
  { label: 'the same process', of: (held) => held.continuity.exact, part: true },
  { label: "the agent's own resume", of: (held) => held.continuity.native, part: true },
  { label: 'transcript replayed', of: (held) => held.continuity.replayed, part: true },
  { label: 'summary given', of: (held) => held.continuity.preamble, part: true },
  { label: 'conversation lost', of: (held) => held.continuity.lost, part: true, bad: true },
  { label: 'Refused as busy', of: (held) => held.busy_rejections },
  { label: 'Repeats not carried out', of: (held) => held.duplicate_suppressions },
  { label: 'of these turns', of: (held) => held.duplicate_turns, part: true },
]

/** The numbers that matter beside the rates, for the small one. */
export function failures(report: ContinuityReport): { label: string; value: number; bad: boolean }[] {
  const { window } = report
  return [
    { label: 'Duplicate turns prevented', value: report.duplicate_turn_prevention_count, bad: false },
    { label: 'Attaches that failed', value: window.attach_failed, bad: window.attach_failed > 0 },
    { label: 'Resumes that failed', value: window.resume_failed, bad: window.resume_failed > 0 },
    { label: 'Refused as busy', value: window.busy_rejections, bad: false },
  ]
}
