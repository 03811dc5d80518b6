// Scales and ticks of charts. Pure; the sizes of a drawing arrive as data.

/** A number at or above the highest that reads well on a scale. */
export function ceiling(highest: number): number {
  if (!(highest > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(highest))
  return ([1, 2, 5, 10].find((step) => step * power >= highest) ?? 10) * power
}

/** Values from 0 to the top of a scale, at most `parts` steps apart. */
export function levels(top: number, parts = 4): readonly number[] {
  return Array.from({ length: parts + 1 }, (_, at) => (top / parts) * at)
}

export interface Tick {
  /** From 0, left, to 1. */
  at: number
  label: string
}

/** At most as many ticks as have room, the last one always. */
function thinned<T>(all: readonly T[], most: number): readonly { one: T; at: number }[] {
  const step = Math.max(1, Math.ceil(all.length / Math.max(1, most)))
  return all.map((one, at) => ({ one, at })).filter(({ at }) => (all.length - 1 - at) % step === 0)
}

/** `19 Nov`, from `2026-11-19`. */
export function dayLabel(day: string): string {
  const [year, month, date] = day.split('-').map(Number)
  return new Date(Date.UTC(year ?? 1970, (month ?? 1) - 1, date ?? 1)).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })
}

/** Ticks in the middle of the bands of days. */
export function dayTicks(days: readonly string[], most: number): readonly Tick[] {
  return thinned(days, most).map(({ one, at }) => ({ at: (at + 0.5) / days.length, label: dayLabel(one) }))
}

const HOUR = 3_600_000
const STEPS = [HOUR / 12, HOUR / 4, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 48 * HOUR]

/** Ticks at whole hours of the reader's clock, or days where hours would be too many. */
export function timeTicks(from: number, to: number, most: number): readonly Tick[] {
  const span = Math.max(1, to - from)
  const step = STEPS.find((one) => span / one <= most) ?? 7 * 24 * HOUR
  const offset = new Date(from).getTimezoneOffset() * 60_000
  const first = Math.ceil((from - offset) / step) * step + offset
  const ticks: Tick[] = []
  for (let at = first; at <= to; at += step) {
    const when = new Date(at)
    const label = step >= 24 * HOUR ? when.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' }) : when.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
    ticks.push({ at: (at - from) / span, label })
  }
  return ticks
}

/** The pieces of lines: a value that is missing interrupts one. Points are parts of the width and the height, from 0 to 1. */
export function pieces(points: readonly { at: number; value: number | null }[], top: number): readonly (readonly { x: number; y: number }[])[] {
  const found: { x: number; y: number }[][] = [[]]
  for (const { at, value } of points) {
    if (value === null) found.push([])
    else found.at(-1)?.push({ x: at, y: 1 - Math.min(value, top) / top })
  }
  return found.filter((piece) => piece.length > 0)
}

export interface Band {
  /** The number of the series. */
  series: number
  from: number
  to: number
}

/** The bars of one band, on top of each other. */
export function stacked(values: readonly number[]): readonly Band[] {
  let sum = 0
  return values.flatMap((value, series) => {
    const from = sum
    sum += Math.max(0, value)
    return value > 0 ? [{ series, from, to: sum }] : []
  })
}
