// What became of a gate: the answer and who gave it, or why it is not asked any more.
import type { FlowGate, GateEntry, GateStatus } from '../api/types'
import { choiceLabel } from './choices'

export interface Outcome {
  answer: string | null
  by: string | null
  at: string | null
  /** Words that went with the answer, or why there was none. */
  words: string | null
}

export const SETTLED: Outcome = { answer: null, by: null, at: null, words: null }

/** Null while it is open. */
export function outcomeOf(entry: Pick<GateEntry, 'options'>, status: GateStatus): Outcome | null {
  switch (status.name) {
    case 'open':
      return null
    case 'answered':
      return { answer: entry.options.find((option) => option.id === status.option)?.name ?? status.option, by: status.by.name, at: status.at, words: status.message ?? null }
    case 'withdrawn':
      return { answer: null, by: null, at: status.at, words: status.why }
  }
}

/** Null while it is open. */
export function outcomeOfFlow(gate: Pick<FlowGate, 'kind' | 'answered'>): Outcome | null {
  const { answered } = gate
  if (answered == null) return null
  return { answer: choiceLabel(answered.choice, gate.kind), by: answered.by.name, at: answered.at, words: answered.guidance ?? null }
}
