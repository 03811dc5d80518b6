// How times, sizes and names read.

/** `12s`, `4m 10s`, `3h 5m`, `2d 4h`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  if (seconds < 60) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return minutes < 10 ? `${minutes}m ${seconds % 60}s` : `${minutes}m`
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return `${hours}h ${minutes % 60}m`
  return `${Math.floor(hours / 24)}d ${hours % 24}h`
}

/** `340 ms`, `2.4 s`, then as `span`. */
export function took(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : span(ms)
}

export function count(number: number): string {
  if (number < 10_000) return number.toLocaleString('en-US')
  if (number < 1_000_000) return `${(number / 1_000).toFixed(number < 100_000 ? 1 : 0)}k`
  return `${(number / 1_000_000).toFixed(1)}M`
}

/** An amount in millionths of a dollar; below a cent with four places, so that it is not nothing. */
export function dollars(micros: number): string {
  return micros < 10_000 ? `$${(Math.ceil(micros / 100) / 10_000).toFixed(4)}` : `$${(micros / 1_000_000).toFixed(2)}`
}

export function bytes(number: number): string {
  if (number < 1_024) return `${number} B`
  if (number < 1_048_576) return `${(number / 1_024).toFixed(1)} KiB`
  return `${(number / 1_048_576).toFixed(1)} MiB`
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`
}

/** The end of an id, which tells it from its neighbours: ids that were made together begin alike. */
export function short(id: string): string {
  const at = id.indexOf('_')
  return at < 0 ? id.slice(-8) : `${id.slice(0, at)}…${id.slice(-6)}`
}

/** A commit as git shortens it. */
export const hash = (commit: string): string => commit.slice(0, 10)

/** What a snake_case word of the API reads like. */
export function words(name: string): string {
  return name.replaceAll('_', ' ').replaceAll('.', ' ')
}

/** The last part of a path. */
export function base(path: string): string {
  return path.split('/').filter((part) => part !== '').at(-1) ?? path
}
