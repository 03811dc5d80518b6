// What is asked for, as the address has it: so that a view can be linked to and survives a reload.
import type { Lifecycle, MemoryMode, StateName } from '../api/types'
import { OPERATOR_STATES, type OperatorState } from '../operator'
import { STATES } from '../states'
import { EVERYTHING, type Density, type Grouping, type SortBy, type View, type Wanted } from './lines'

const VIEWS: readonly View[] = ['live', 'all', 'archived']
export const GROUPINGS: readonly Grouping[] = ['none', 'state', 'workspace', 'plan', 'source', 'owner', 'agent']
const SORTS: readonly SortBy[] = ['need', 'activity', 'created', 'title', 'plan', 'changes', 'cost', 'context']
const DENSITIES: readonly Density[] = ['compact', 'roomy']
export const LIFECYCLES: readonly Lifecycle[] = ['running', 'idle', 'terminal']
export const MEMORY_MODES: readonly MemoryMode[] = ['off', 'session_only', 'selective', 'full']

/** Names in the query; what is not there has its first value. */
const NAMES: Record<keyof Wanted, string> = {
  view: 'view', text: 'q', operator: 'is', state: 'state', lifecycle: 'lifecycle', agent: 'agent', source: 'source', owner: 'owner',
  workspace: 'workspace', plan: 'plan', memory: 'memory', attention: 'attention', group: 'group',
  sort: 'sort', density: 'rows',
}

export function read(query: URLSearchParams): Wanted {
  const text = (name: keyof Wanted): string => query.get(NAMES[name]) ?? ''
  const one = <T extends string>(name: keyof Wanted, all: readonly T[]): T | '' => all.find((value) => value === text(name)) ?? ''
  return {
    view: one('view', VIEWS) || EVERYTHING.view,
    text: text('text'),
    operator: one('operator', Object.keys(OPERATOR_STATES) as OperatorState[]),
    state: one('state', Object.keys(STATES) as StateName[]),
    lifecycle: one('lifecycle', LIFECYCLES),
    agent: text('agent'),
    source: text('source'),
    owner: text('owner'),
    workspace: text('workspace'),
    plan: text('plan'),
    memory: one('memory', MEMORY_MODES),
    attention: text('attention') === '1',
    group: one('group', GROUPINGS) || EVERYTHING.group,
    sort: one('sort', SORTS) || EVERYTHING.sort,
    density: one('density', DENSITIES) || EVERYTHING.density,
  }
}

/** Changes of the query that say these values. */
export function write(changes: Partial<Wanted>): Record<string, string | null> {
  return Object.fromEntries(
    (Object.keys(changes) as (keyof Wanted)[]).map((name) => {
      const value = changes[name]
      return [NAMES[name], value === EVERYTHING[name] || value === undefined ? null : value === true ? '1' : String(value)]
    }),
  )
}

/** The look of the list; the others say which sessions are in it. */
const LOOK: readonly (keyof Wanted)[] = ['view', 'group', 'sort', 'density']

/** Filters in force besides the view and the search. */
export function filters(wanted: Wanted): (keyof Wanted)[] {
  return (Object.keys(NAMES) as (keyof Wanted)[]).filter(
    (name) => name !== 'text' && !LOOK.includes(name) && wanted[name] !== EVERYTHING[name],
  )
}

/** Nothing but the look of the list stays. */
export function cleared(): Record<string, string | null> {
  const look = LOOK.map((name) => NAMES[name])
  return Object.fromEntries(Object.entries(write(EVERYTHING)).filter(([name]) => !look.includes(name)))
}
