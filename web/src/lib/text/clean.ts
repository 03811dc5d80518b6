// Text of agents, tools and other people as it can be shown: what steers a terminal is gone, what steers the reader's
// eye is seen, and no more of it is laid out than was asked for.

const ESCAPES = /\u001b(?:\[[0-9;:?<=>!]{0,64}[ -/]?[@-~]|\][^\u0007\u001b]{0,2048}(?:\u0007|\u001b\\)|[PX^_][^\u001b]{0,2048}\u001b\\|[ -/]?[0-~])/g
// Controls, marks of direction, and letters that have no shape: a run of the latter counts as one.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]+/gu

const NAMES: Record<number, string> = {
  0x061c: 'ALM', 0x200b: 'ZWSP', 0x200e: 'LRM', 0x200f: 'RLM', 0x202a: 'LRE', 0x202b: 'RLE', 0x202c: 'PDF', 0x202d: 'LRO', 0x202e: 'RLO',
  0x2066: 'LRI', 0x2067: 'RLI', 0x2068: 'FSI', 0x2069: 'PDI', 0xfeff: 'BOM',
}

export function clean(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(ESCAPES, '').replace(UNSEEN, seen)
}

function seen(found: string): string {
  const code = found.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  if (code === 0x7f) return '\u2421'
  if (code >= 0xe0000) return `⟦${[...found].length} hidden⟧`
  return `⟦${NAMES[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`}⟧`
}

/** On one line. */
export function line(text: string): string {
  return clean(text).replace(/\s+/g, ' ').trim()
}

/** On one line and short, for heads and labels. */
export function brief(text: string, most = 240): string {
  const short = line(text.slice(0, most * 2))
  return short.length > most || text.length > most * 2 ? `${beginning(short, 1, most - 1)}…` : short
}

/** The beginning of a text: at most so many lines and characters. */
export function beginning(text: string, lines: number, chars: number): string {
  let end = Math.min(chars, text.length)
  for (let at = -1, row = 0; row < lines; row++) {
    at = text.indexOf('\n', at + 1)
    if (at < 0 || at >= end) break
    if (row === lines - 1) end = at
  }
  // Not between the halves of one character.
  if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1] ?? '')) end -= 1
  return text.slice(0, end)
}

/** A text in pieces of bounded length, each laid out by itself; parted between lines where there are any. */
export function pieces(text: string, size = 8_000): string[] {
  const found: string[] = []
  for (let from = 0; from < text.length; ) {
    let to = Math.min(text.length, from + size)
    const line = text.lastIndexOf('\n', to)
    if (to < text.length && line > from) to = line + 1
    found.push(text.slice(from, to))
    from = to
  }
  return found
}
