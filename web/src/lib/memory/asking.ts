// Filters of memory as requests, files of it as entries, and policies as what is to be changed.
import type { Forget, MemoryAsk, MemoryMode, MemoryPolicy, MemoryStatus, SessionRow } from '../api/types'
import { plural } from '../format'

export interface MemoryFilter {
  query: string
  store: string
  scope: string
  workspace: string
  owner: string
  tags: string
  session: string
  /** What the session sees rather than what was written in it. */
  sees: boolean
}

export function filterOf(query: URLSearchParams): MemoryFilter {
  const of = (name: string): string => query.get(name) ?? ''
  return {
    query: of('q'),
    store: ['session', 'long_term'].includes(of('store')) ? of('store') : '',
    scope: ['session', 'workspace', 'plan'].includes(of('scope')) ? of('scope') : '',
    workspace: of('workspace'),
    owner: of('owner'),
    tags: of('tags'),
    session: of('session'),
    sees: of('sees') === '1' && of('session') !== '',
  }
}

interface Wanted {
  route: string
  query: Record<string, string>
}

/** Which list is asked for. What a session sees has neither workspace nor owner to choose: it has its own. */
export function wanted(filter: MemoryFilter): Wanted {
  const { query, store, scope, workspace, owner, session } = filter
  const tags = tagsOf(filter.tags).join(',')
  const shared = { query: query.trim(), store, scope, tags }
  if (filter.sees) return { route: `/sessions/${encodeURIComponent(session)}/memory`, query: shared }
  return { route: '/memory', query: { ...shared, workspace: workspace.trim(), owner: owner.trim(), session } }
}

/** For a download: an export knows neither words nor scopes. */
export function exported(filter: MemoryFilter): Record<string, string> {
  const { store, workspace, owner, session, tags } = filter
  return { store, workspace: workspace.trim(), owner: owner.trim(), session, tags: tagsOf(tags).join(',') }
}

/** Words between commas or spaces, each once. */
export function tagsOf(text: string): string[] {
  return [...new Set(text.split(/[,\s]+/).filter((tag) => tag !== ''))]
}

/**
 * What is forgotten when all that is shown is to be: by the filter where the daemon knows all of it, else by the ids in
 * sight; null when nothing narrows it down, because all there is is never meant.
 */
export function forgetting(filter: MemoryFilter, ids: readonly string[]): Forget | null {
  if (filter.query.trim() !== '' || filter.scope !== '' || filter.sees) return ids.length === 0 ? null : { ids: ids.slice(0, 1_000) }
  const made: Forget = {}
  if (filter.store !== '') made.store = filter.store as 'session' | 'long_term'
  if (filter.workspace.trim() !== '') made.workspace = filter.workspace.trim()
  if (filter.owner.trim() !== '') made.owner = filter.owner.trim()
  if (filter.session !== '') made.session = filter.session
  const tags = tagsOf(filter.tags)
  if (tags.length > 0) made.tags = tags
  return Object.keys(made).length === 0 ? null : made
}

type Lines = { entries: unknown[] } | { line: number; why: string }

/** Entries of a file as an export has them: a JSON object on each line. */
export function linesOf(text: string): Lines {
  const entries: unknown[] = []
  let line = 0
  for (const one of text.split('\n')) {
    line += 1
    if (one.trim() === '') continue
    try {
      entries.push(JSON.parse(one))
    } catch (error) {
      return { line, why: error instanceof Error ? error.message : String(error) }
    }
  }
  return { entries }
}

/** No more than the daemon takes in one request: 500 entries, and well below the bytes of a body. */
export function batches(entries: readonly unknown[], most = 200, bytes = 400_000): unknown[][] {
  const made: unknown[][] = []
  let now: unknown[] = []
  let size = 0
  for (const entry of entries) {
    const more = JSON.stringify(entry).length
    if (now.length > 0 && (now.length >= most || size + more > bytes)) {
      made.push(now)
      now = []
      size = 0
    }
    now.push(entry)
    size += more
  }
  if (now.length > 0) made.push(now)
  return made
}

export const MODES: readonly { value: MemoryMode; label: string; means: string }[] = [
  { value: 'off', label: 'Off', means: 'Nothing is written or read.' },
  { value: 'session_only', label: 'Session only', means: 'Its own memory; long-term memory is only read.' },
  { value: 'selective', label: 'Selective', means: 'Long-term memory too, for tags on the allow-list.' },
  { value: 'full', label: 'Full', means: 'Everything, without a list.' },
]

const rank = (mode: MemoryMode): number => MODES.findIndex((one) => one.value === mode)

/** Whether the first allows less than the second. */
export const tighter = (one: MemoryMode, than: MemoryMode): boolean => rank(one) < rank(than)

export interface Draft {
  mode: MemoryMode
  session_memory: boolean
  tags: string
  allow: string
}

export function draftOf(policy: MemoryPolicy): Draft {
  return {
    mode: policy.mode,
    // Left out where it is as usual.
    session_memory: policy.session_memory ?? true,
    tags: (policy.tags ?? []).join(', '),
    allow: (policy.allow ?? []).join(', '),
  }
}

/** What is different; null when nothing is. */
export function changed(policy: MemoryPolicy, draft: Draft): MemoryAsk | null {
  const ask: MemoryAsk = {}
  const before = draftOf(policy)
  const same = (one: string, other: string): boolean => tagsOf(one).sort().join() === tagsOf(other).sort().join()
  // One that could not be read is set anew, whatever it is read as.
  if (draft.mode !== before.mode || policy.unreadable != null) ask.mode = draft.mode
  if (draft.session_memory !== before.session_memory) ask.session_memory = draft.session_memory
  if (!same(draft.tags, before.tags)) ask.tags = tagsOf(draft.tags)
  if (!same(draft.allow, before.allow)) ask.allow = tagsOf(draft.allow)
  return Object.keys(ask).length === 0 ? null : ask
}

const RULES: Record<string, string> = {
  unreadable: 'the stored policy could not be read',
  off: 'memory was off',
  no_session_memory: 'it had no memory of its own',
  session_only: 'nothing might go into long-term memory',
  not_allow_listed: 'no tag was on the allow-list',
}

export function refusals(refused: Record<string, number> | undefined): { rule: string; count: number; says: string }[] {
  return Object.entries(refused ?? {})
    .filter(([, many]) => many > 0)
    .map(([rule, many]) => ({ rule, count: many, says: RULES[rule] ?? rule.replaceAll('_', ' ') }))
}

/** All sessions under one, in the order they are held. */
export function below(rows: ReadonlyMap<string, SessionRow>, root: string): SessionRow[] {
  const children = new Map<string, SessionRow[]>()
  for (const row of rows.values()) {
    if (!row.parent) continue
    const beside = children.get(row.parent)
    if (beside === undefined) children.set(row.parent, [row])
    else beside.push(row)
  }
  const found: SessionRow[] = []
  const seen = new Set([root])
  for (let at = -1; at < found.length; at += 1) {
    for (const child of children.get(found[at]?.id ?? root) ?? []) {
      if (seen.has(child.id)) continue
      seen.add(child.id)
      found.push(child)
    }
  }
  return found
}

export function statusLine(status: MemoryStatus): string[] {
  const refused = Object.values(status.refused).reduce((sum, many) => sum + many, 0)
  const search = status.embeddings ? `found by words and meaning (${status.embeddings})` : 'found by words'
  return [
    `${plural(status.session_entries, 'entry', 'entries')} in session memory`,
    `${plural(status.long_term_entries, 'entry', 'entries')} in long-term memory`,
    search,
    ...(refused > 0 ? [`${plural(refused, 'write')} refused since the start`] : []),
  ]
}
