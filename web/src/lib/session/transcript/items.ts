// What a transcript consists of. An item is never changed: when one of its events arrives it is replaced, so that only
// what really changed is drawn again.
import type { Actor, Continuity, GateEntry, NoteKind, PlanEntry } from '../../api/types'
import type { Tone } from '../../states'
import type { IconName } from '../../ui/Icon.svelte'
import { label, type Part } from '../parts/parts'

interface Base {
  /** Stays the same as long as its first event does. */
  key: string
  /** Its first and its last event. */
  seq: number
  last: number
  at: string
  /** Sum of the events it was made of: two items with the same key and sum are the same. */
  sum: number
}

export interface UserItem extends Base {
  kind: 'user'
  text: string
  parts?: readonly Part[]
  by: Actor | null
  /** Why it stands there, where that is not plain. */
  tags: readonly string[]
  /** The turn that it began. */
  begins?: string | null
  /** What came of the turn that it began, once that is over. */
  turn?: TurnSum | null
}

/** A turn in numbers, as far as the log tells. */
export interface TurnSum {
  ms: number | null
  tokens: number | null
  cost: number | null
  calls: number
  failed: number
  files: number
}

interface AgentItem extends Base {
  kind: 'agent'
  text: string
  /** Images behind the text. */
  parts?: readonly Part[]
  /** Goes on without a head: the rest of a long message, or the next message of the same turn. */
  rest: boolean
  /** The agent's own name of the message, where it gives one. */
  message?: string | null
  writing?: boolean
}

interface ThoughtItem extends Base {
  kind: 'thought'
  text: string
  writing?: boolean
}

interface FileChange {
  path: string
  added: number | null
  removed: number | null
}

export interface ToolItem extends Base {
  kind: 'tool'
  call: string
  tool: string
  arguments: unknown
  content: unknown
  state: 'running' | 'ok' | 'error' | 'open'
  ms: number | null
  /** Seen on its way through Lanyard. */
  relayed: { server: string | null; channel: string; bytes: number } | null
  files: readonly FileChange[]
}

/** Calls of one kind in a row, on one line. */
export interface ToolsItem extends Base {
  kind: 'tools'
  calls: readonly ToolItem[]
}

export interface NoteItem extends Base {
  kind: 'note'
  note: string
  what: NoteKind
  text: string
  parts?: readonly Part[]
  by: Actor | null
  state: 'queued' | 'delivered' | 'returned' | 'withdrawn' | 'acknowledged' | 'expired' | 'undelivered'
  channel: string | null
  call: string | null
}

interface GateItem extends Base {
  kind: 'gate'
  entry: GateEntry
}

interface PlanItem extends Base {
  kind: 'plan'
  entries: readonly PlanEntry[]
  /** A newer one of the same turn follows. */
  old: boolean
}

interface RunItem extends Base {
  kind: 'run'
  run: string
  agent: string
  number: number | null
  mirrored: boolean
  about: string | null
  state: 'starting' | 'ready' | 'adopted'
  continuity: Continuity | null
  history: number | null
}

export interface EndItem extends Base {
  kind: 'end'
  /** The turn that ended. */
  ends?: string
  title: string
  tone: Tone
  reason: string | null
  ms: number | null
  tokens: { input: number; output: number } | null
  cost: number | null
  uncertain: boolean
}

export interface Compaction extends Base {
  kind: 'compacted'
  before: number
  after: number
  nth: number
  lost: readonly string[]
  kept: number
}

/** One thing that happened, in a line. */
export interface Line {
  icon: IconName
  text: string
  tone: Tone
  /** The session it is about. */
  session?: string
  /** Of no weight: several of them share a line. */
  quiet?: boolean
}

interface MarkItem extends Base {
  kind: 'mark'
  lines: readonly Line[]
}

export type Item =
  | UserItem
  | AgentItem
  | ThoughtItem
  | ToolItem
  | ToolsItem
  | NoteItem
  | GateItem
  | PlanItem
  | RunItem
  | EndItem
  | Compaction
  | MarkItem

export type ItemOf<K extends Item['kind']> = Extract<Item, { kind: K }>

/** What a filter shows. */
export type Show = 'all' | 'messages' | 'tools' | 'control'

const SHOWN: Record<Item['kind'], Show> = {
  user: 'messages',
  agent: 'messages',
  thought: 'messages',
  tool: 'tools',
  tools: 'tools',
  plan: 'tools',
  note: 'control',
  gate: 'control',
  run: 'control',
  end: 'control',
  compacted: 'control',
  mark: 'control',
}

/** Characters of an item that are searched. */
const SEARCHED = 50_000
const texts = new WeakMap<Item, string>()

export function matches(item: Item, show: Show, wanted: string): boolean {
  if (show !== 'all' && SHOWN[item.kind] !== show) return false
  if (wanted === '') return true
  let text = texts.get(item)
  if (text === undefined) {
    text = said(item).slice(0, SEARCHED).toLowerCase()
    texts.set(item, text)
  }
  return text.includes(wanted)
}

function said(item: Item): string {
  switch (item.kind) {
    case 'user':
    case 'agent':
    case 'note':
      return [item.text, ...(item.parts ?? []).map(label)].join(' ')
    case 'thought':
      return item.text
    case 'tool':
      return `${item.tool} ${JSON.stringify(item.arguments ?? '')} ${typeof item.content === 'string' ? item.content : JSON.stringify(item.content ?? '')}`
    case 'tools':
      return item.calls.map(said).join(' ')
    case 'gate':
      return item.entry.title
    case 'plan':
      return item.entries.map((entry) => entry.text).join(' ')
    case 'run':
      return `${item.agent} ${item.about ?? ''}`
    case 'end':
      return `${item.title} ${item.reason ?? ''}`
    case 'compacted':
      return `compacted ${item.lost.join(' ')}`
    case 'mark':
      return item.lines.map((line) => line.text).join(' ')
  }
}
