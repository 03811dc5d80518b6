// Text of agents and tools, so that it shows what is in it and nothing else: colours of terminals go, and what would
// move, hide or turn around other text is seen as what it is.

const COLOURS = /\u001b\[[0-9;:]*m/g
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g
const UNSEEN = /[\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]/g

export function harmless(text: string): string {
  return text
    .replace(/\r\n?/g, '\n')
    .replace(COLOURS, '')
    .replace(CONTROLS, (char) => {
      const code = char.charCodeAt(0)
      return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? '\u2421' : named(char)
    })
    .replace(UNSEEN, named)
}

const named = (char: string): string => `⟨U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`

/** The beginning of a text: at most so many lines and characters. */
export function beginning(text: string, lines: number, chars: number): string {
  let end = Math.min(chars, text.length)
  for (let at = -1, seen = 0; seen < lines; seen++) {
    at = text.indexOf('\n', at + 1)
    if (at < 0 || at >= end) break
    if (seen === lines - 1) end = at
  }
  // Not between the halves of one character.
  if (end < text.length && end > 0 && /[\ud800-\udbff]/.test(text[end - 1] ?? '')) end -= 1
  return text.slice(0, end)
}
