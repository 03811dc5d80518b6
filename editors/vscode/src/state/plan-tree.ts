// Plans with their tasks, tasks with the worker and the runs of each.
import type { PlanRow, TaskState, TaskView, WorkerRow } from '../api/schema.gen'
import { oneLine, plural, shortId } from './words'

export interface PlanNode {
  kind: 'plan' | 'task' | 'worker' | 'run'
  /** Unique in the tree and the same after a restart. */
  key: string
  label: string
  about: string
  more: string[]
  icon: string
  task: string | null
  session: string | null
  children: PlanNode[]
}

const ICONS: Partial<Record<TaskState, string>> = { pending: 'circle-outline', deploying: 'rocket', running: 'sync', paused: 'debug-pause', interrupted: 'debug-disconnect', completed: 'pass', failed: 'error', cancelled: 'circle-slash' }

/** Newest plan first; tasks without a plan under a node of their own. Subtasks stand below their task. */
export function planTree(plans: readonly PlanRow[], tasks: readonly TaskView[], workers: readonly WorkerRow[]): PlanNode[] {
  const byTask = new Map(workers.map((worker) => [worker.task, worker]))
  const known = new Set(tasks.map((task) => task.id))
  const roots = tasks.filter((task) => task.parent == null || !known.has(task.parent))
  const nodes = (of: readonly TaskView[]): PlanNode[] => of.map((task) => taskNode(task, tasks, byTask, 0))
  const found = plans
    .filter((plan) => plan.archived !== true)
    .map((plan): PlanNode => ({
      kind: 'plan',
      key: plan.id,
      label: oneLine(plan.title),
      about: [plan.status, `${plan.progress.done} of ${plan.progress.total}`].join(' · '),
      more: [plan.workspace, plan.id],
      icon: 'checklist',
      task: null,
      session: null,
      children: nodes(roots.filter((task) => task.plan === plan.id)),
    }))
  const loose = roots.filter((task) => task.plan == null)
  if (loose.length > 0) found.push({ kind: 'plan', key: 'no-plan', label: 'Tasks without a plan', about: plural(loose.length, 'task'), more: [], icon: 'list-unordered', task: null, session: null, children: nodes(loose) })
  return found
}

/** Subtasks have a bounded depth; more than this is a circle. */
const DEPTH_MAX = 16

function taskNode(task: TaskView, tasks: readonly TaskView[], workers: ReadonlyMap<string, WorkerRow>, depth: number): PlanNode {
  const below = depth < DEPTH_MAX ? tasks.filter((one) => one.parent === task.id) : []
  return {
    kind: 'task',
    key: task.id,
    label: oneLine(task.title ?? '') || oneLine(task.prompt ?? '', 60) || `task ${shortId(task.id)}`,
    about: [task.state, task.held ?? '', task.agent ?? ''].filter((part) => part !== '').join(' · '),
    more: [task.reason ?? '', task.tree?.branch ?? '', task.uri].filter((line) => line !== ''),
    icon: ICONS[task.state] ?? 'circle-outline',
    task: task.id,
    session: task.session ?? null,
    children: [...workerNodes(task, workers.get(task.id)), ...below.map((one) => taskNode(one, tasks, workers, depth + 1))],
  }
}

function workerNodes(task: TaskView, row: WorkerRow | undefined): PlanNode[] {
  if (task.worker == null) return []
  const runs = (task.runs ?? []).map((run): PlanNode => ({
    kind: 'run',
    key: `${task.id} run ${run.number}`,
    label: `Run ${run.number}`,
    about: [run.number === task.run ? 'current' : 'earlier', `session ${shortId(run.session)}`].join(' · '),
    more: [run.run ?? '', run.session].filter((line) => line !== ''),
    icon: 'history',
    task: null,
    session: run.session,
    children: [],
  }))
  const about = [row?.kind ?? task.kind ?? '', row?.live === true ? 'live' : 'not live', row?.condition != null && row.condition !== 'well' ? row.condition.replace('_', ' ') : ''].filter((part) => part !== '')
  return [{ kind: 'worker', key: `${task.id} ${task.worker}`, label: `Worker ${shortId(task.worker)}`, about: about.join(' · '), more: [task.worker], icon: 'server-process', task: null, session: task.session ?? null, children: runs }]
}
