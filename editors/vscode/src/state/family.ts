// Sessions as a tree by family.
import type { OperatorState, SessionRow } from '../api/schema.gen'

export interface Member {
  row: SessionRow
  children: Member[]
  /** Sessions anywhere below. */
  below: number
  /** The most urgent state of this session and all below it. */
  worst: OperatorState
}

const URGENCY: readonly OperatorState[] = ['needs_answer', 'failed', 'ready_for_review', 'working', 'waiting_for_limit', 'idle', 'done']

const urgency = (state: OperatorState): number => {
  const at = URGENCY.indexOf(state)
  return at < 0 ? URGENCY.length : at
}

/**
 * Ended sessions are left out unless `ended` is set; one stays where something below it has not ended, so that no child
 * loses its place. A child whose parent is unknown is a root, and so is one member of a circle of parents.
 */
export function families(rows: Iterable<SessionRow>, ended: boolean): Member[] {
  const members = new Map<string, Member>()
  for (const row of rows) if (!row.archived) members.set(row.id, { row, children: [], below: 0, worst: row.operator_state })
  const roots: Member[] = []
  for (const member of members.values()) {
    const parent = member.row.parent == null ? undefined : members.get(member.row.parent)
    if (parent === undefined || circular(member, members)) roots.push(member)
    else parent.children.push(member)
  }
  return sorted(roots.map((root) => gathered(root, ended)).filter((root) => root !== null))
}

function circular(member: Member, members: ReadonlyMap<string, Member>): boolean {
  for (let at = member.row.parent, steps = 0; at != null; at = members.get(at)?.row.parent, steps += 1) {
    if (at === member.row.id || steps > 64) return true
  }
  return false
}

function gathered(member: Member, ended: boolean): Member | null {
  member.children = sorted(member.children.map((child) => gathered(child, ended)).filter((child) => child !== null))
  for (const child of member.children) {
    member.below += 1 + child.below
    if (urgency(child.worst) < urgency(member.worst)) member.worst = child.worst
  }
  return !ended && member.row.lifecycle === 'terminal' && member.children.length === 0 ? null : member
}

/** Newest first, whatever their states: a row must not move away under the pointer. */
const sorted = (members: Member[]): Member[] => members.sort((a, b) => b.row.created_at.localeCompare(a.row.created_at) || a.row.id.localeCompare(b.row.id))
