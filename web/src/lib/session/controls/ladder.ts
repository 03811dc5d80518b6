// A stop as it rises: which rung is reached, when it goes on by itself, and what came of it.
import type { Stop, StopReceipt, TreeNode } from '../../api/types'
import { STOP_LEVELS } from '../../states'

interface Rung {
  level: number
  label: string
  means: string
  at: 'passed' | 'here' | 'ahead'
}

type Outcome = 'pending' | 'confirmed' | 'withdrawn'

interface Ladder {
  rungs: readonly Rung[]
  outcome: Outcome
  /** When it rises by itself. */
  risesAt: number | null
  /** The level a further press leads to. */
  next: number | null
  takeBack: boolean
}

interface Deadlines {
  stop_graceful_ms?: number
  stop_immediate_ms?: number
}

export function ladder(receipt: StopReceipt, stop: Stop | null | undefined, limits: Deadlines): Ladder {
  const outcome: Outcome = receipt.withdrawn ? 'withdrawn' : receipt.confirmed ? 'confirmed' : 'pending'
  // Two answers may tell of two moments; a stop never goes down, so the higher level is the later one.
  const level = outcome === 'pending' ? Math.max(receipt.level, stop?.level ?? 0) : receipt.level
  const rungs = [1, 2, 3].map((number): Rung => {
    const { label, means } = STOP_LEVELS[number] ?? { label: String(number), means: '' }
    return { level: number, label, means, at: number < level ? 'passed' : number === level ? 'here' : 'ahead' }
  })
  const pending = outcome === 'pending'
  const wait = level === 1 ? limits.stop_graceful_ms : level === 2 ? limits.stop_immediate_ms : undefined
  const since = stop?.level === level ? stop.level_at : undefined
  return {
    rungs,
    outcome,
    risesAt: pending && wait !== undefined && since !== undefined ? Date.parse(since) + wait : null,
    next: pending && level < 3 ? level + 1 : null,
    takeBack: pending && level < 3,
  }
}

interface Below {
  all: number
  ended: number
  /** Not all of them are in the answer. */
  more: boolean
}

/** How much of the family below has ended. */
export function below(tree: TreeNode): Below {
  const found: Below = { all: 0, ended: 0, more: tree.truncated === true }
  const left = [...tree.children]
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    found.all += 1
    if (node.lifecycle === 'terminal') found.ended += 1
    if (node.truncated === true) found.more = true
    left.push(...node.children)
  }
  return found
}
