// What agents used, as people say it, and as a chart is drawn from it.
import type { BudgetView, InsightBy, InsightCounts, InsightReport, InsightRow } from '../api/types'
import type { Colour, Series } from '../chart/Chart.svelte'
import { base, count, dollars, plural, span } from '../format'
import type { Tone } from '../states'

/** What a chart shows of each day. */
export type Measure = 'cost' | 'tokens' | 'turns' | 'time'
export const MEASURES: readonly { value: Measure; label: string }[] = [
  { value: 'cost', label: 'Cost' },
  { value: 'tokens', label: 'Tokens' },
  { value: 'turns', label: 'Turns' },
  { value: 'time', label: 'Time' },
]
export const RANGES: readonly { value: string; label: string }[] = [
  { value: '1', label: 'Today' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: '365', label: 'A year' },
]
export const GROUPS: readonly { value: InsightBy; label: string }[] = [
  { value: 'agent', label: 'Agent' },
  { value: 'model', label: 'Model' },
  { value: 'folder', label: 'Folder' },
  { value: 'day', label: 'Day' },
]

type Part = InsightRow['daily'][number]

export function measured(measure: Measure, counts: InsightCounts): number {
  switch (measure) {
    case 'cost':
      return counts.cost_micros
    case 'tokens':
      return counts.input_tokens + counts.output_tokens
    case 'turns':
      return counts.turns
    case 'time':
      return counts.turn_ms
  }
}

const partOf = (measure: Measure, part: Part): number =>
  measure === 'cost' ? part.cost_micros : measure === 'tokens' ? part.tokens : measure === 'turns' ? part.turns : part.turn_ms

export function said(measure: Measure, value: number): string {
  switch (measure) {
    case 'cost':
      return value === 0 ? '$0' : dollars(value)
    case 'tokens':
    case 'turns':
      return count(Math.round(value * 10) / 10)
    case 'time':
      return value === 0 ? '0' : span(value)
  }
}

/** A group's name. Logs do not always name a model, and a deleted session leaves no folder. */
export function named(by: InsightBy, name: string): string {
  if (name !== '') return by === 'folder' ? base(name) || name : name
  return by === 'folder' ? 'no folder' : by === 'model' ? 'model not told' : 'no agent'
}

const COLOURS: readonly Colour[] = ['accent', 'info', 'violet', 'warn', 'ok']

/** The groups as series of days: the largest have a colour each, all others share one. */
export function seriesOf(report: InsightReport, measure: Measure): readonly Series[] {
  const days = report.days.length
  if (report.by === 'day') return [{ name: 'All', colour: 'accent', values: report.days.map((day) => measured(measure, day)) }]
  const spread = (parts: readonly Part[]): number[] => {
    const values = Array.from({ length: days }, () => 0)
    for (const part of parts) values[part.index] = (values[part.index] ?? 0) + partOf(measure, part)
    return values
  }
  const rows = [...report.rows].sort((a, b) => measured(measure, b) - measured(measure, a)).filter((row) => measured(measure, row) > 0)
  const own = rows.slice(0, COLOURS.length)
  const series: Series[] = own.map((row, at) => ({ name: named(report.by, row.name), colour: COLOURS[at] ?? 'faint', values: spread(row.daily) }))
  const rest = [...rows.slice(COLOURS.length).flatMap((row) => row.daily), ...(report.others?.daily ?? [])]
  if (rest.length > 0) series.push({ name: 'Others', colour: 'faint', values: spread(rest) })
  return series
}

/** Share of what failed, in words. */
export function failed(all: number, bad: number, one: string): string {
  return bad === 0 ? plural(all, one) : `${plural(all, one)}, ${count(bad)} failed`
}

export const STAGES: Record<BudgetView['stage'], { label: string; tone: Tone }> = {
  within: { label: 'within', tone: 'ok' },
  near: { label: 'nearly spent', tone: 'warn' },
  spent: { label: 'spent', tone: 'bad' },
}

export const SCOPES: Record<BudgetView['scope'], string> = {
  turn: 'A turn',
  session: 'This session',
  family: 'Its family',
  day: 'Today',
}

/** The reader's time zone: by name, or by its offset where the daemon does not know the name. */
export function zoneName(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone
}

export function zoneOffset(now = new Date()): string {
  const minutes = -now.getTimezoneOffset()
  const part = (number: number): string => String(Math.floor(Math.abs(number))).padStart(2, '0')
  return `${minutes < 0 ? '-' : '+'}${part(minutes / 60)}:${part(Math.abs(minutes) % 60)}`
}
