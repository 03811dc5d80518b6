// What tasks and plans read and look like, and what can be asked of them. The daemon decides; this only keeps buttons away
// that would be refused.
import type { PlanStatus, TaskCount, TaskEnvelope, TaskState, TaskView } from '../api/types'
import { hash, plural, short, words } from '../format'
import type { Tone } from '../states'
import { line } from '../text/clean'

/** In the order in which progress is drawn: what is done first, what is not begun last. */
export const TASK_STATES: Record<TaskState, { label: string; tone: Tone }> = {
  completed: { label: 'completed', tone: 'ok' },
  running: { label: 'running', tone: 'info' },
  deploying: { label: 'deploying', tone: 'info' },
  interrupted: { label: 'interrupted', tone: 'warn' },
  paused: { label: 'paused', tone: 'warn' },
  failed: { label: 'failed', tone: 'bad' },
  cancelled: { label: 'cancelled', tone: 'violet' },
  pending: { label: 'pending', tone: 'plain' },
}

export const PLAN_STATUS: Record<PlanStatus, Tone> = { draft: 'plain', active: 'info', paused: 'warn', completed: 'ok', failed: 'bad', cancelled: 'violet' }

const ENDED: readonly TaskState[] = ['completed', 'failed', 'cancelled']
const AT_WORK: readonly TaskState[] = ['deploying', 'running']

export const ended = (state: TaskState): boolean => ENDED.includes(state)
export const atWork = (state: TaskState): boolean => AT_WORK.includes(state)

export interface Progress {
  parts: { state: TaskState; tasks: number }[]
  all: number
  done: number
}

export function progress(counts: readonly TaskCount[]): Progress {
  const of = new Map(counts.map((count) => [count.state, count.tasks]))
  const states = Object.keys(TASK_STATES) as TaskState[]
  const parts = states.flatMap((state) => (of.get(state) ? [{ state, tasks: of.get(state) ?? 0 }] : []))
  return { parts, all: parts.reduce((sum, part) => sum + part.tasks, 0), done: of.get('completed') ?? 0 }
}

export type Verb = 'deploy' | 'pause' | 'resume' | 'cancel' | 'complete' | 'fail' | 'retry' | 'merge' | 'discard' | 'mail' | 'edit'

/** What would not be refused, by the table of transitions. */
export function can(task: TaskView, verb: Verb): boolean {
  const { state } = task
  const over = ended(state)
  const ending = task.ending != null
  switch (verb) {
    case 'deploy':
      return state === 'pending'
    case 'pause':
      return !over && !ending && state !== 'paused' && state !== 'deploying'
    case 'resume':
      return state === 'paused' || state === 'interrupted'
    case 'cancel':
    case 'complete':
    case 'fail':
      return !over
    case 'retry':
      return over || task.conflict != null
    case 'merge':
      // A branch without commits of its own has nothing to merge.
      return over && task.tree != null && task.merged == null && task.commits !== 0
    case 'discard':
      return over && task.tree != null
    case 'edit':
      return state === 'pending' || (state === 'paused' && task.session == null)
    case 'mail':
      return true
  }
}

/** What holds it, with tasks by what their plan calls them. */
export function held(task: TaskView, names: ReadonlyMap<string, string>): string {
  return line(task.held ?? '').replace(/task_[0-9a-z]{20,}/g, (id) => (names.has(id) ? `“${names.get(id)}”` : id))
}

/** The one thing that matters most about it right now. */
export function note(task: TaskView, names: ReadonlyMap<string, string> = new Map()): string {
  if (task.ending) return `is to ${task.ending.how === 'complete' ? 'be completed' : task.ending.how === 'fail' ? 'fail' : 'be cancelled'}`
  if (task.reason && task.state !== 'completed') return line(task.reason)
  if (task.condition && task.condition !== 'well' && !ended(task.state)) return words(task.condition)
  if (task.held) return held(task, names)
  return task.result ? line(task.result.summary) : ''
}

export function name(task: TaskView): string {
  return line(task.title || task.prompt || task.id)
}

/** An event of a task's log as a sentence. */
export function tell(event: TaskEnvelope): string {
  const because = (reason?: string | null): string => (reason ? `: ${line(reason)}` : '')
  switch (event.type) {
    case 'task.created':
      return 'created'
    case 'task.edited':
      return 'edited'
    case 'task.deployed':
      return `deployed to ${short(event.data.worker)} in ${short(event.data.session)} as run ${event.data.run}`
    case 'task.tree_made':
      return `worktree on branch ${event.data.tree.branch}`
    case 'task.base_conflict':
      return `cannot begin: ${event.data.conflict.branch} conflicts with ${event.data.conflict.with.join(', ')} in ${event.data.conflict.files.join(', ')}`
    case 'task.branch_counted':
      return `the branch has ${plural(event.data.commits, 'commit')}`
    case 'task.started':
      return 'started'
    case 'task.run_seen':
      return `run ${event.data.run} is ${short(event.data.process)}`
    case 'task.interrupted':
      return `interrupted (${words(event.data.cause)})${because(event.data.reason)}`
    case 'task.resumed':
      return 'goes on'
    case 'task.paused':
      return `paused${because(event.data.reason)}`
    case 'task.end_asked':
      return `is to ${event.data.ending.how}${because(event.data.reason)}`
    case 'task.reported':
      return `${event.data.result.by_turn_end ? 'said last' : 'reported'}: ${line(event.data.result.summary)}`
    case 'task.captured':
      return `${plural(event.data.captured.files_changed, 'file')} captured in ${hash(event.data.captured.commit)}`
    case 'task.capture_failed':
      return `not captured${because(event.data.why)}`
    case 'task.ended':
      return `${event.data.state}${because(event.data.reason)}`
    case 'task.retried':
      return 'to be done again'
    case 'task.merged':
      return `merged into ${event.data.into} as ${hash(event.data.commit)}`
    case 'task.tree_removed':
      return 'worktree taken away; the branch stays'
    case 'task.discarded':
      return `branch discarded; git keeps it under ${event.data.reference}`
    case 'task.remedied':
      return `${{ nudge: 'nudged', restart: 'restarted', escalate: 'a person was asked' }[event.data.remedy]}${because(event.data.why)}`
    case 'task.adopted':
      return `reports to ${event.data.reports_to ? short(event.data.reports_to) : 'nobody'} from here on`
    default:
      return words((event as { type: string }).type)
  }
}

/** The line a refused text names, counted from 1. */
export function faultLine(what: string): number | null {
  const found = /^line (\d+):/i.exec(what)
  return found ? Number(found[1]) : null
}
