// What to expect of going on with a conversation, before one does.
import type { Continuity, ResumeWay, Run } from '../../api/types'

export const CONTINUITY: Record<Continuity, string> = {
  exact: 'The same process: nothing is lost.',
  native: "The agent's own resume: it takes its conversation up again.",
  replayed: 'The transcript is given back to the agent.',
  preamble: 'A new conversation that begins with a summary from the log.',
  lost: 'The agent does not know the conversation any more.',
}

interface Expected {
  continuity: Continuity | null
  says: string
}

/** What the agent's process lets one expect, and the reason where the agent cannot resume; it is confirmed by `run.ready` in the log. */
export function expected(run: Run | null | undefined, native: string | null | undefined, lacks: string | null): Expected {
  if (run == null) return { continuity: null, says: 'No agent ran yet. It is started, and the conversation begins.' }
  if (run.phase === 'ready') return { continuity: 'exact', says: 'Its process lives. The next message goes right on; there is nothing to bring back.' }
  if (run.phase === 'starting') return { continuity: null, says: 'Its process is just being started.' }
  if (native == null) return { continuity: null, says: 'Its process is gone before it had a conversation of its own. It is started anew.' }
  if (lacks === null) return { continuity: 'native', says: 'Its process is gone. The agent can take its own conversation up again.' }
  return { continuity: 'lost', says: `Its process is gone. ${lacks}` }
}

export const RESUME_WAYS: readonly { value: ResumeWay; label: string; means: string }[] = [
  { value: 'native', label: 'Native', means: "the agent's own load or resume" },
  { value: 'replay', label: 'Replay', means: 'the transcript is given back' },
  { value: 'preamble', label: 'Preamble', means: 'a new conversation with a summary from the log' },
]
