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
}

const QUEUE: Way = { value: 'queue', label: 'Queue', means: 'It waits behind what waits already and runs when the turn has ended.' }
const RUNNING: readonly Way[] = [
  QUEUE,
  { value: 'steer', label: 'Steer', means: 'Its words go into the running turn, by the best channel the agent offers.' },
  { value: 'interrupt', label: 'Interrupt', means: 'The turn is cancelled; this runs as soon as that has really ended.' },
  { value: 'reject', label: 'If free', means: 'It is refused while a turn runs.' },
]
const PAUSED: readonly Way[] = [
  { value: 'reject', label: 'Run now', means: 'It runs at once, before what waits in the paused queue.' },
  { ...QUEUE, means: 'It joins the paused queue and waits for it to go on.' },
]

/** How a message may arrive now; none to choose from when it just starts a turn. */
export function ways(running: boolean, paused: PauseReason | null | undefined): readonly Way[] {
  return running ? RUNNING : paused ? PAUSED : []
}

/** What is sent: what was chosen where that is possible. Idle sessions queue, should a turn begin just now. */
export function delivery(possible: readonly Way[], chosen: Delivery): Delivery {
  return possible.some((way) => way.value === chosen) ? chosen : (possible[0]?.value ?? 'queue')
}

export const PAUSES: Record<PauseReason, string> = {
  interrupted: 'the last turn was cut short',
  failed: 'the last turn failed',
  asked: 'somebody paused it',
  halted: 'all work is halted',
}
