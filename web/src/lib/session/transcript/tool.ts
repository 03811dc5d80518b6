// What a tool call says to a person: its point in a line, what it changed, and the rest.
import { compare, parse, type Diff } from '../../diff/diff'
import { brief } from '../../text/clean'

type Fields = Record<string, unknown>

const fields = (value: unknown): Fields => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {})
const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)
const first = (of: Fields, names: readonly string[]): string | null => names.map((name) => text(of[name])).find((found) => found !== null) ?? null

const PATHS = ['file_path', 'path', 'filePath', 'filename', 'notebook_path', 'abs_path']
const OLD = ['old_string', 'oldString', 'oldText', 'old_str']
const NEW = ['new_string', 'newString', 'newText', 'new_str']
const WHOLE = ['content', 'newText', 'file_text', 'contents']
const PATCH = ['patch', 'diff', 'patchText', 'input']
/** The argument that says most, by how telling it is. */
const POINT = ['command', 'cmd', 'title', ...PATHS, 'pattern', 'query', 'q', 'url', 'description', 'prompt', 'name', 'text']

/** The call in one line. */
export function point(given: unknown): string {
  const of = fields(given)
  const found = first(of, POINT) ?? Object.values(of).find((value) => typeof value === 'string' || typeof value === 'number')
  if (found !== undefined && found !== null) return brief(String(found))
  if (Array.isArray(of.command)) return brief(of.command.join(' '))
  return typeof given === 'string' ? brief(given) : ''
}

/** What a call changed, as far as its arguments or its answer show it. */
export function diffs(tool: string, given: unknown, content: unknown): Diff[] {
  const told = (Array.isArray(content) ? content : []).map(fields).filter((block) => block.type === 'diff')
  if (told.length > 0) {
    return told.map((block) =>
      compare(text(block.path) ?? '', text(block.oldText) ?? '', text(block.newText) ?? '', Number(block.line ?? 1) || 1, Number(block.left_out ?? 0) || 0),
    )
  }
  const of = fields(given)
  const path = first(of, PATHS) ?? ''
  const one = (edit: Fields): Diff[] => {
    const [before, after] = [first(edit, OLD), first(edit, NEW)]
    return before === null || after === null ? [] : [compare(first(edit, PATHS) ?? path, before, after)]
  }
  const found = [...one(of), ...(Array.isArray(of.edits) ? of.edits.flatMap((edit) => one(fields(edit))) : [])]
  if (found.length > 0) return found
  if (Array.isArray(of.changes)) {
    const changes = of.changes.map(fields).flatMap((change) => {
      const kind = text(fields(change.kind).type)
      const [diff, where] = [text(change.diff) ?? '', text(change.path) ?? '']
      if (kind === 'add') return [compare(where, '', diff)]
      return kind === 'delete' ? [compare(where, diff, '')] : parse(diff, where)
    })
    if (changes.length > 0) return changes
  }
  const patch = PATCH.map((name) => text(of[name])).find((value) => value !== null && /^(?:@@|\*\*\* Begin Patch|diff --git|--- )/m.test(value))
  if (patch) return parse(patch, path)
  const whole = path !== '' && /write|create|save|edit/i.test(tool) ? first(of, WHOLE) : null
  return whole === null ? [] : [compare(path, '', whole)]
}

/** Arguments that a diff shows already. */
const SHOWN = new Set([...PATHS, ...OLD, ...NEW, ...WHOLE, ...PATCH, 'edits', 'changes'])

export interface Given {
  name: string
  text: string
}

export function given(args: unknown, changed: boolean): Given[] {
  if (args === undefined || args === null) return []
  if (typeof args !== 'object' || Array.isArray(args)) return [{ name: '', text: printed(args) }]
  return Object.entries(args)
    .filter(([name, value]) => value !== null && !(changed && SHOWN.has(name)))
    .map(([name, value]) => ({ name, text: printed(value) }))
}

/** The answer as text; what is no text is named or printed. */
export function answer(content: unknown): string {
  if (content === undefined || content === null) return ''
  if (typeof content === 'string') return content
  if (Array.isArray(content)) return content.map(block).filter((part) => part !== '').join('\n')
  return block(content)
}

function block(value: unknown): string {
  const of = fields(value)
  if (of.type === 'diff' || of.type === 'attachment') return ''
  if (of.type === 'content') return answer(of.content)
  if (typeof of.text === 'string') return of.text
  if (of.type === 'image' || of.type === 'audio') return `[${of.type}]`
  return printed(value)
}

function printed(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}
