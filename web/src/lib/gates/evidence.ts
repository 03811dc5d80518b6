// What an agent wants to do, read from the words of its own protocol. Each puts it differently; what is not known is
// shown as it came, so that nobody answers without having seen all of it.
import type { GateEntry } from '../api/types'
import { compare, parse, type Diff } from '../diff/diff'

export type Piece =
  | { kind: 'field'; label: string; text: string }
  | { kind: 'text'; label: string; text: string }
  | { kind: 'code'; label: string; text: string }
  | { kind: 'diff'; diff: Diff }

type Bag = Record<string, unknown>

/** Handles and repeats of a question itself, which help nobody to decide. Arguments of a tool are never left out. */
const NOISE = new Set([
  'toolCallId', 'title', 'status', 'sessionId', 'threadId', 'turnId', 'itemId', 'callId', 'conversationId', 'method',
  'availableDecisions', 'approvalId', 'startedAtMs', 'question', 'options', 'header', '_meta', 'parsedCmd',
])

export function evidence(entry: Pick<GateEntry, 'detail' | 'title'>): Piece[] {
  if (!isBag(entry.detail)) return isNothing(entry.detail) ? [] : [{ kind: 'code', label: 'Details', text: print(entry.detail) }]
  const pieces: Piece[] = []
  read(Object.fromEntries(Object.entries(entry.detail).filter(([name]) => !NOISE.has(name))), pieces)
  return pieces.filter((piece) => piece.kind === 'diff' || piece.text.trim() !== '')
}

/** Characters of a question that fit on the line of a list, title included. */
const LINE_CHARS = 160

/** A question on one line, and whether that is all of it. What is not whole is read before it is answered. */
export function inLine(title: string, pieces: readonly Piece[]): { more: string; whole: boolean } {
  // The kind of a call decides nothing, and a title often repeats the command.
  const coded = pieces.some((piece) => piece.kind === 'code')
  const further = pieces.filter((piece) => {
    if (piece.kind === 'diff') return true
    // Beside a command, the agent's own words about it.
    if (piece.kind === 'text' && coded && piece.label !== 'Reason') return false
    return piece.label !== FIELDS.kind && !title.includes(piece.text.trim())
  })
  const first = further[0]
  if (first === undefined) return { more: '', whole: title.length <= LINE_CHARS && !title.includes('\n') }
  if (first.kind === 'diff') return { more: first.diff.path, whole: false }
  const more = first.text.trim()
  const whole = further.length === 1 && !/\n/.test(title + more) && title.length + more.length <= LINE_CHARS
  return { more: more.split('\n')[0] ?? '', whole }
}

function read(bag: Bag, pieces: Piece[]): void {
  const rest: Bag = {}
  for (const [name, value] of Object.entries(bag)) {
    if (isNothing(value)) continue
    if (!piece(name, value, pieces)) rest[name] = value
  }
  if (Object.keys(rest).length > 0) pieces.push({ kind: 'code', label: 'Arguments', text: print(rest) })
}

/** Whether this name is known; then its pieces are added. */
function piece(name: string, value: unknown, pieces: Piece[]): boolean {
  switch (name) {
    case 'command':
    case 'cmd':
      pieces.push({ kind: 'code', label: 'Command', text: Array.isArray(value) ? value.map(word).join(' ') : print(value) })
      return true
    case 'cwd':
    case 'grantRoot':
      pieces.push({ kind: 'field', label: name === 'cwd' ? 'Folder' : 'May write below', text: print(value) })
      return true
    case 'path':
    case 'filepath':
    case 'filePath':
    case 'file_path':
    case 'url':
      pieces.push({ kind: 'field', label: name === 'url' ? 'Address' : 'File', text: print(value) })
      return true
    case 'reason':
    case 'description':
    case 'message':
      pieces.push({ kind: 'text', label: name === 'reason' ? 'Reason' : 'In its words', text: print(value) })
      return true
    case 'kind':
    case 'permission':
    case 'condition':
    case 'task':
    case 'tool_name':
    case 'serverName':
      pieces.push({ kind: 'field', label: FIELDS[name] ?? name, text: print(value) })
      return true
    case 'patterns':
    case 'always':
      pieces.push({ kind: 'field', label: name === 'always' ? 'Always would be' : 'For', text: list(value).map(print).join(', ') })
      return true
    case 'locations':
      for (const place of list(value)) if (isBag(place)) pieces.push({ kind: 'field', label: 'File', text: print(place.path) })
      return true
    case 'diff':
    case 'patch':
    case 'unified_diff':
      if (typeof value !== 'string') return false
      pieces.push(...unified('', value))
      return true
    case 'rawInput':
    case 'tool_input':
    case 'metadata':
      if (isBag(value)) read(value, pieces)
      else pieces.push({ kind: 'code', label: 'Arguments', text: print(value) })
      return true
    case 'content':
      if (!Array.isArray(value)) return false
      for (const part of value) content(part, pieces)
      return true
    case 'changes':
    case 'fileChanges':
      changes(value, pieces)
      return true
    default:
      return false
  }
}

const FIELDS: Record<string, string> = {
  kind: 'Kind',
  permission: 'Permission',
  condition: 'Condition',
  task: 'Task',
  tool_name: 'Tool',
  serverName: 'Server',
}

function content(part: unknown, pieces: Piece[]): void {
  if (!isBag(part)) return
  if (part.type === 'diff') {
    pieces.push({ kind: 'diff', diff: compare(print(part.path), print(part.oldText ?? ''), print(part.newText ?? '')) })
  } else if (isBag(part.content) && typeof part.content.text === 'string') {
    pieces.push({ kind: 'text', label: 'In its words', text: part.content.text })
  } else {
    pieces.push({ kind: 'code', label: 'Details', text: print(part) })
  }
}

/** Codex tells changes as a list, and did as a map by path. */
function changes(value: unknown, pieces: Piece[]): void {
  const all = Array.isArray(value) ? value : isBag(value) ? Object.entries(value).map(([path, change]) => ({ path, ...(isBag(change) ? change : { change }) })) : []
  for (const change of all) {
    if (!isBag(change)) continue
    const diff = change.diff ?? change.unified_diff
    if (typeof diff === 'string') pieces.push(...unified(print(change.path), diff))
    else if (typeof change.content === 'string') pieces.push({ kind: 'diff', diff: compare(print(change.path), '', change.content) })
    else pieces.push({ kind: 'code', label: print(change.path ?? 'Change'), text: print(change) })
  }
}

/** A text without marks is all new. */
function unified(path: string, text: string): Piece[] {
  const found = parse(text, path)
  return (found.length > 0 ? found : [compare(path, '', text)]).map((diff) => ({ kind: 'diff', diff }))
}

/** A word of a command line, as one would type it. */
function word(value: unknown): string {
  const text = print(value)
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

function print(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value])
const isBag = (value: unknown): value is Bag => typeof value === 'object' && value !== null && !Array.isArray(value)

function isNothing(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0) || (isBag(value) && Object.keys(value).length === 0)
}
