// What becomes of a message: where in the queue it stands, and how it is to arrive.
import type { Delivery, PauseReason, Run } from '../../api/types'

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

/** Why words cannot go into the running turn of an agent; null where they can. */
export function steerless(run: Pick<Run, 'capabilities'> | null | undefined): string | null {
  return run?.capabilities?.steer ? null : 'This agent takes no words into a running turn. Queue the message, or use Guide.'
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
  asked: 'somebody paused it',
  halted: 'all work is halted',
}
