// Labels that several views share.
import type { OperatorState, SessionRow } from '../api/schema.gen'

export const OPERATOR_STATES: Record<OperatorState, { label: string; icon: string; colour: string }> = {
  needs_answer: { label: 'needs answer', icon: 'question', colour: 'list.warningForeground' },
  failed: { label: 'failed', icon: 'error', colour: 'list.errorForeground' },
  ready_for_review: { label: 'ready for review', icon: 'eye', colour: 'charts.purple' },
  working: { label: 'working', icon: 'sync', colour: 'charts.green' },
  waiting_for_limit: { label: 'waiting for limit', icon: 'watch', colour: 'list.warningForeground' },
  idle: { label: 'idle', icon: 'circle-outline', colour: 'descriptionForeground' },
  done: { label: 'done', icon: 'pass', colour: 'descriptionForeground' },
}

/** The end of an id, which differs most. */
export const shortId = (id: string): string => id.slice(-6)

/** Text of agents on one line and without characters that move others about. */
export function oneLine(text: string, most = 120): string {
  const flat = text.replace(/[\u0000-\u001f\u007f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+/g, ' ').replace(/\s+/g, ' ').trim()
  const letters = [...flat]
  return letters.length > most ? `${letters.slice(0, most - 1).join('')}…` : flat
}

export const nameOf = (row: Pick<SessionRow, 'id' | 'title'>): string => oneLine(row.title ?? '') || `session ${shortId(row.id)}`

/** How long something took, in its largest unit. */
export function elapsed(from: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(from)) / 1_000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`
}

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`

/** Markdown of a tooltip that shows text of agents as text. */
export const escaped = (text: string): string => text.replace(/[\\`*_{}[\]()#+\-.!|<>~&$]/g, '\\$&')
