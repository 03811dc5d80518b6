// What becomes of a message: where in the queue it stands, and how it is to arrive.
import type { Delivery, PauseReason } from '../../api/types'

/** The order after one was moved to a place; the same list when nothing moved. */
export function moved<T>(list: readonly T[], from: number, to: number): readonly T[] {
  const place = Math.min(list.length - 1, Math.max(0, to))
  if (from < 0 || from >= list.length || from === place) return list
  const rest = list.filter((_, at) => at !== from)
  return [...rest.slice(0, place), list[from] as T, ...rest.slice(place)]
}

interface Way {
  value: Delivery
  label: string
  means: string
  disabled?: boolean
}

const QUEUE: Way = { value: 'queue', label: 'After this turn', means: 'It becomes a turn of its own when this one has ended, after the messages that wait already.' }
const RUNNING: readonly Way[] = [
  QUEUE,
  { value: 'steer', label: 'Now', means: 'It goes into the running turn, by the best channel that the agent offers.' },
  { value: 'interrupt', label: 'Interrupt', means: 'The running turn is cancelled, and this one starts when it has really ended.' },
]
const PAUSED: readonly Way[] = [
  { value: 'reject', label: 'Now', means: 'It runs at once, before the messages in the paused queue.' },
  { ...QUEUE, label: 'In the queue', means: 'It waits in the paused queue until the queue is resumed.' },
]

/** How a message may arrive now; none to choose from when it just starts a turn. `noSteer`: why it cannot be steered. */
export function ways(running: boolean, paused: PauseReason | null | undefined, noSteer: string | null): readonly Way[] {
  if (!running) return paused ? PAUSED : []
  return noSteer === null ? RUNNING : RUNNING.map((way) => (way.value === 'steer' ? { ...way, means: noSteer, disabled: true } : way))
}

/** What is sent: what was chosen where that is possible. Idle sessions queue, should a turn begin just now. */
export function delivery(possible: readonly Way[], chosen: Delivery): Delivery {
  return possible.some((way) => way.value === chosen && !way.disabled) ? chosen : (possible[0]?.value ?? 'queue')
}

export const PAUSES: Record<PauseReason, string> = {
  interrupted: 'the last turn was cut short',
  failed: 'the last turn failed',
  asked: 'an operator paused it',
  halted: 'all work is halted',
  budget_spent: 'a budget is spent',
}
