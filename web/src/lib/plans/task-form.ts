// What is filled in for a task, and what of it is sent.
import type { Priority, TaskView } from '../api/types'

export interface Filled {
  title: string
  key: string
  prompt: string
  agent: string
  priority: Priority
  depends_on: readonly string[]
  /** One a line. */
  files: string
}

export function fresh(task: TaskView | null): Filled {
  return {
    title: task?.title ?? '',
    key: '',
    prompt: task?.prompt ?? '',
    agent: task?.agent ?? '',
    priority: task?.priority ?? 'normal',
    depends_on: task?.depends_on ?? [],
    files: (task?.files ?? []).join('\n'),
  }
}

interface Sent {
  title?: string
  key?: string
  prompt?: string
  agent?: string
  priority?: Priority
  depends_on?: string[]
  files?: string[]
}

const lines = (text: string): string[] => text.split('\n').map((one) => one.trim()).filter((one) => one !== '')

/** Only what is another than before; the daemon leaves the rest as it is. An agent that was named cannot be unnamed. */
export function changes(task: TaskView | null, filled: Filled): Sent {
  const before = fresh(task)
  const sent: Sent = {}
  const title = filled.title.trim()
  if (title !== before.title) sent.title = title
  if (task === null && filled.key.trim() !== '') sent.key = filled.key.trim()
  if (filled.prompt !== before.prompt) sent.prompt = filled.prompt
  if (filled.agent !== before.agent && filled.agent !== '') sent.agent = filled.agent
  if (filled.priority !== before.priority) sent.priority = filled.priority
  if ([...filled.depends_on].sort().join() !== [...before.depends_on].sort().join()) sent.depends_on = [...filled.depends_on]
  if (lines(filled.files).join('\n') !== before.files) sent.files = lines(filled.files)
  return sent
}

/** Tasks that it can wait for: none that waits for it, directly or through others. */
export function after(task: TaskView | null, all: readonly TaskView[]): TaskView[] {
  if (task === null) return [...all]
  const behind = new Set([task.id])
  for (let grown = true; grown; ) {
    grown = false
    for (const one of all) {
      if (behind.has(one.id) || !(one.depends_on ?? []).some((id) => behind.has(id))) continue
      behind.add(one.id)
      grown = true
    }
  }
  return all.filter((one) => !behind.has(one.id))
}
