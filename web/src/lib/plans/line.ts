import { harmless } from '../ui/harmless'

/** Text of others in one line. */
export function line(text: string): string {
  return harmless(text).replace(/\s+/g, ' ').trim()
}
