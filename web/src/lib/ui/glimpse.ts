import { beginning, harmless } from './harmless'

/** Text of others on one line, no more than so many characters of it. */
export function glimpse(text: string, most = 240): string {
  const line = harmless(beginning(text, Infinity, most * 2)).replace(/\s+/g, ' ').trim()
  return line.length > most || text.length > most * 2 ? `${beginning(line, 1, most)}…` : line
}
