// What the small pictures beside a session are drawn from.
import type { StateChange, StateName } from '../../api/types'
import type { Event } from '../events'

interface Segment {
  state: StateName
  from: number
  to: number
  /** Part of the whole, from 0 to 100. */
  left: number
  width: number
}

/** The states one after the other, as parts of the time from the first to now (or to the end). */
export function segments(history: readonly StateChange[], now: number, ended: boolean): readonly Segment[] {
  const first = history[0]
  const last = history.at(-1)
  if (first === undefined || last === undefined) return []
  const begin = Date.parse(first.at)
  const lastAt = Date.parse(last.at)
  // What has ended does not grow any more; its last state gets a visible end.
  const end = ended ? lastAt + Math.max(1, (lastAt - begin) * 0.03) : Math.max(now, lastAt + 1)
  const whole = Math.max(1, end - begin)
  return history.map((change, at) => {
    const from = Date.parse(change.at)
    const next = history[at + 1]
    const to = Math.max(from, next === undefined ? end : Date.parse(next.at))
    return { state: change.state, from, to, left: ((from - begin) / whole) * 100, width: ((to - from) / whole) * 100 }
  })
}

/** Time spent in each state, the most first. */
export function totals(parts: readonly Segment[]): readonly { state: StateName; ms: number }[] {
  const sums = new Map<StateName, number>()
  for (const part of parts) sums.set(part.state, (sums.get(part.state) ?? 0) + part.to - part.from)
  return [...sums].map(([state, ms]) => ({ state, ms })).sort((a, b) => b.ms - a.ms)
}

interface Usage {
  at: number
  input: number
  output: number
  context: number | null
}

/**
 * Tokens over time as sums, and the size of the context as it was told. Events may begin in the middle of a log; `total`,
 * what all of it comes to, tells what was before.
 */
export function usages(events: readonly Event[], total?: { input_tokens: number; output_tokens: number }): readonly Usage[] {
  const told = events.filter((event) => event.type === 'usage.reported')
  const before = (of: 'input_tokens' | 'output_tokens'): number =>
    total === undefined ? 0 : Math.max(0, total[of] - told.reduce((sum, event) => sum + (event.data[of] ?? 0), 0))
  const found: Usage[] = []
  let input = before('input_tokens')
  let output = before('output_tokens')
  for (const event of told) {
    input += event.data.input_tokens ?? 0
    output += event.data.output_tokens ?? 0
    found.push({ at: Date.parse(event.at), input, output, context: event.data.context_tokens ?? null })
  }
  return found
}

interface Bar {
  name: string
  count: number
  failed: number
  /** Part of the longest, from 0 to 100. */
  width: number
}

/** Calls per tool, the most first; what is beyond `most` tools is one bar. */
export function tools(events: readonly Event[], most = 8): readonly Bar[] {
  const sums = new Map<string, { count: number; failed: number }>()
  const names = new Map<string, string>()
  for (const event of events) {
    if (event.type === 'tool.called') {
      const sum = sums.get(event.data.tool) ?? { count: 0, failed: 0 }
      sum.count += 1
      sums.set(event.data.tool, sum)
      names.set(event.data.call, event.data.tool)
    } else if (event.type === 'tool.returned' && event.data.is_error) {
      const sum = sums.get(names.get(event.data.call) ?? '')
      if (sum !== undefined) sum.failed += 1
    }
  }
  const all = [...sums].map(([name, sum]) => ({ name, ...sum })).sort((a, b) => b.count - a.count || a.name.localeCompare(b.name))
  const shown = all.length > most ? all.slice(0, most - 1) : all
  const rest = all.slice(shown.length)
  if (rest.length > 0) {
    const sum = (of: 'count' | 'failed'): number => rest.reduce((so, one) => so + one[of], 0)
    shown.push({ name: `${rest.length} others`, count: sum('count'), failed: sum('failed') })
  }
  const longest = Math.max(1, ...shown.map((bar) => bar.count))
  return shown.map((bar) => ({ ...bar, width: (bar.count / longest) * 100 }))
}

interface Box {
  width: number
  height: number
}

/** Points of a line, oldest left. A single one is a line across, so that it is seen. At most one point per two pixels. */
export function line(values: readonly { at: number; value: number }[], top: number, box: Box): string {
  const first = values[0]
  const last = values.at(-1)
  if (first === undefined || last === undefined) return ''
  const y = (value: number): string => (box.height - (Math.min(value, top) / top) * box.height).toFixed(1)
  if (values.length === 1) return `0,${y(first.value)} ${box.width},${y(first.value)}`
  const whole = Math.max(1, last.at - first.at)
  const step = Math.max(1, Math.ceil(values.length / (box.width / 2)))
  return values
    .filter((_, at) => at % step === 0 || at === values.length - 1)
    .map(({ at, value }) => `${(((at - first.at) / whole) * box.width).toFixed(1)},${y(value)}`)
    .join(' ')
}
