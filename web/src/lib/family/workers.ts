// What a worker is, and what was done for one that did not get on.
import type { Remedies, WorkerRow } from '../api/types'
import { plural, words } from '../format'

export function remedies(done: Remedies): string {
  const said: string[] = []
  if (done.nudges > 0) said.push(`nudged ${plural(done.nudges, 'time')}`)
  if (done.restarts > 0) said.push(`begun again ${plural(done.restarts, 'time')}`)
  if (done.escalations > 0) said.push('a person was asked')
  return said.join(', ')
}

export function about(worker: Pick<WorkerRow, 'kind' | 'agent' | 'run' | 'source'>): string {
  const parts = [words(worker.kind), worker.agent, `run ${worker.run}`, worker.source === 'generated' ? null : `id ${words(worker.source)}`]
  return parts.filter((part) => part != null).join(' · ')
}
