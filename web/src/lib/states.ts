// What states and reasons read and look like. Colour never says it alone.
import type { Attention, StateName } from './api/types'

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'violet' | 'plain'

export const STATES: Record<StateName, { label: string; tone: Tone }> = {
  beginning: { label: 'beginning', tone: 'info' },
  custom: { label: 'custom', tone: 'info' },
  executing: { label: 'executing', tone: 'ok' },
  between_turn: { label: 'between turns', tone: 'info' },
  compacted: { label: 'compacted', tone: 'violet' },
  interrupted: { label: 'interrupted', tone: 'warn' },
  idle: { label: 'idle', tone: 'plain' },
  stale: { label: 'stale', tone: 'warn' },
  completed: { label: 'completed', tone: 'plain' },
  failed: { label: 'failed', tone: 'bad' },
  stopped: { label: 'stopped', tone: 'plain' },
}

/** Ends of turns that nobody has seen yet. */
export type TurnEnd = 'turn_finished' | 'turn_failed' | 'turn_refused' | 'agent_crashed'

export const ATTENTION: Record<Attention | TurnEnd, { label: string; tone: Tone }> = {
  gate: { label: 'waits for approval', tone: 'warn' },
  suspected_orphan: { label: 'suspected orphan', tone: 'bad' },
  limit_reached: { label: 'limit reached', tone: 'warn' },
  uncertain: { label: 'cut off, uncertain', tone: 'bad' },
  agent_crashed: { label: 'agent crashed', tone: 'bad' },
  failed: { label: 'failed', tone: 'bad' },
  turn_failed: { label: 'turn failed', tone: 'bad' },
  turn_refused: { label: 'turn refused', tone: 'bad' },
  turn_finished: { label: 'ready for review', tone: 'violet' },
  inbox_paused: { label: 'inbox paused', tone: 'warn' },
  guidance: { label: 'guidance undelivered', tone: 'warn' },
  stopping: { label: 'being stopped', tone: 'warn' },
}

export const STOP_LEVELS: Record<number, { label: string; means: string }> = {
  1: { label: 'asked to stop', means: 'the agent is asked to stop at its next tool call or turn' },
  2: { label: 'tools blocked', means: 'its tool calls are blocked and the turn is cancelled' },
  3: { label: 'ending processes', means: 'its processes are ended' },
}
