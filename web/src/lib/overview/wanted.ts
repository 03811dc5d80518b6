// What is asked for, as the address has it: so that a view can be linked to and survives a reload.
import type { Lifecycle, MemoryMode, StateName } from '../api/types'
import { STATES } from '../states'
import { EVERYTHING, type Grouping, type View, type Wanted } from './lines'

const VIEWS: readonly View[] = ['live', 'all', 'archived']
export const GROUPINGS: readonly Grouping[] = ['none', 'workspace', 'plan', 'source', 'owner', 'agent']
export const LIFECYCLES: readonly Lifecycle[] = ['running', 'idle', 'terminal']
export const MEMORY_MODES: readonly MemoryMode[] = ['off', 'session_only', 'selective', 'full']

/** Names in the query; what is not there has its first value. */
const NAMES: Record<keyof Wanted, string> = {
  view: 'view', text: 'q', state: 'state', lifecycle: 'lifecycle', agent: 'agent', source: 'source', owner: 'owner',
  workspace: 'workspace', plan: 'plan', memory: 'memory', attention: 'attention', group: 'group',
}

export function read(query: URLSearchParams): Wanted {
  const text = (name: keyof Wanted): string => query.get(NAMES[name]) ?? ''
  const one = <T extends string>(name: keyof Wanted, all: readonly T[]): T | '' => all.find((value) => value === text(name)) ?? ''
  return {
    view: one('view', VIEWS) || EVERYTHING.view,
    text: text('text'),
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

/** Filters in force besides the view, the search and the grouping. */
export function filters(wanted: Wanted): (keyof Wanted)[] {
  return (Object.keys(NAMES) as (keyof Wanted)[]).filter(
    (name) => !['view', 'text', 'group'].includes(name) && wanted[name] !== EVERYTHING[name],
  )
}

/** Nothing but the view and the grouping stays. */
export function cleared(): Record<string, string | null> {
  return Object.fromEntries(Object.entries(write(EVERYTHING)).filter(([name]) => name !== NAMES.view && name !== NAMES.group))
}
