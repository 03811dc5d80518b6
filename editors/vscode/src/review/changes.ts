// Changes of a session or a task in the editor's own diff editor. Both sides are read-only texts under `lanyard-diff:`,
// kept until the changes of the same session are shown again.
import { readFile } from 'node:fs/promises'
import { isAbsolute, join, normalize } from 'node:path'

import * as vscode from 'vscode'

import type { SessionDetail, TaskDiff, TaskView, WorkspaceDiff } from '../api/schema.gen'
import type { Connection } from '../client/connection'
import { lineInFile, parsePatch, sidesOf, type FilePatch, type Sides } from './patch'

export const DIFF = 'lanyard-diff'
/** Sessions and tasks whose changes are kept. */
const KEPT_MAX = 20
/** Larger files are shown by their hunks. */
const FILE_BYTES_MAX = 4 * 1024 * 1024

interface Kept {
  patch: FilePatch
  sides: Sides
}

export interface Place {
  owner: string
  path: string
  side: 'before' | 'after'
}

/** `lanyard-diff:/sess_…/path?after`. */
export const diffUri = (owner: string, path: string, side: Place['side']): vscode.Uri => vscode.Uri.from({ scheme: DIFF, path: `/${owner}/${path}`, query: side })

export function placeOf(uri: vscode.Uri): Place | null {
  const [, owner, ...path] = uri.path.split('/')
  if (uri.scheme !== DIFF || owner === undefined || (uri.query !== 'before' && uri.query !== 'after')) return null
  return { owner, path: path.join('/'), side: uri.query }
}

export class Changes implements vscode.TextDocumentContentProvider {
  readonly #kept = new Map<string, Map<string, Kept>>()
  readonly #changed = new vscode.EventEmitter<vscode.Uri>()
  readonly onDidChange = this.#changed.event

  constructor(private readonly connection: Connection) {}

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const place = placeOf(uri)
    if (place === null) return ''
    // A tab that was open before this window was loaded again.
    if (!this.#kept.has(place.owner)) await this.#load(place.owner)
    return this.#kept.get(place.owner)?.get(place.path)?.sides[place.side] ?? ''
  }

  /** Line in the file of a line in a shown text; both from 0. */
  lineOf({ owner, path, side }: Place, line: number): number {
    const kept = this.#kept.get(owner)?.get(path)
    return kept?.sides.partial === true ? lineInFile(kept.patch, line, side) : line
  }

  /** Line in a shown text of a line in the file; both from 0. The first one where it is not shown. */
  shownLine(place: Place, line: number): number {
    const kept = this.#kept.get(place.owner)?.get(place.path)
    if (kept?.sides.partial !== true) return line
    const shown = kept.sides[place.side].split('\n').findIndex((_, at) => this.lineOf(place, at) === line)
    return Math.max(0, shown)
  }

  /** Shows one changed file, or all of them, or says that there are none. */
  async show(owner: string, title: string): Promise<void> {
    const { truncated } = await this.#load(owner)
    const files = [...(this.#kept.get(owner)?.entries() ?? [])]
    if (files.length === 0) {
      void vscode.window.showInformationMessage('Nothing changed.')
      return
    }
    if (truncated) void vscode.window.showWarningMessage('The changes are too large to show whole; the rest is left out.')
    for (const [path] of files) for (const side of ['before', 'after'] as const) this.#changed.fire(diffUri(owner, path, side))
    const one = await picked(files)
    if (one === null) return
    if (one !== 'all') {
      await vscode.commands.executeCommand('vscode.diff', diffUri(owner, one.path, 'before'), diffUri(owner, one.path, 'after'), `${one.path} (${title})`, { preview: false })
      return
    }
    const all = files.map(([path]) => [diffUri(owner, path, 'after'), diffUri(owner, path, 'before'), diffUri(owner, path, 'after')])
    await vscode.commands.executeCommand('vscode.changes', `Changes: ${title}`, all)
  }

  async #load(owner: string): Promise<{ truncated: boolean }> {
    const { text, folder, truncated } = owner.startsWith('task_') ? await this.#ofTask(owner) : await this.#ofSession(owner)
    const found = new Map<string, Kept>()
    for (const patch of parsePatch(text)) found.set(patch.path, { patch, sides: sidesOf(patch, await fileIn(folder, patch)) })
    this.#kept.delete(owner)
    this.#kept.set(owner, found)
    for (const old of [...this.#kept.keys()].slice(0, -KEPT_MAX)) this.#kept.delete(old)
    return { truncated }
  }

  async #ofSession(id: string): Promise<{ text: string; folder: string | null; truncated: boolean }> {
    const { http } = this.connection
    const detail = await http.get<SessionDetail>(`/sessions/${id}`)
    const diff = await http.get<WorkspaceDiff>(`/sessions/${id}/diff`)
    return { text: diff.text, folder: this.#local(detail.tree?.path ?? detail.workspace ?? null), truncated: diff.truncated }
  }

  async #ofTask(id: string): Promise<{ text: string; folder: string | null; truncated: boolean }> {
    const { http } = this.connection
    const task = await http.get<TaskView>(`/tasks/${id}`)
    const diff = await http.get<TaskDiff>(`/tasks/${id}/diff`)
    const tree = task.tree != null && task.tree.removed !== true ? task.tree.path : null
    return { text: diff.patch, folder: this.#local(tree), truncated: diff.truncated === true }
  }

  /** Only the daemon of a data folder shares this machine's files. */
  #local(folder: string | null): string | null {
    return this.connection.target.kind === 'socket' ? folder : null
  }
}

/** The editor for all files takes no comments, so one file can be chosen. Null for neither. */
async function picked(files: readonly [string, Kept][]): Promise<{ path: string } | 'all' | null> {
  const [one] = files
  if (files.length === 1 && one !== undefined) return { path: one[0] }
  const items = files.map(([path, { patch }]) => ({ label: path, description: patch.change, open: { path } }))
  const choice = await vscode.window.showQuickPick([{ label: `All ${files.length} files`, description: 'to read', open: 'all' as const }, ...items], { title: 'Changes', placeHolder: 'Comments are made in the editor of one file' })
  return choice?.open ?? null
}

async function fileIn(folder: string | null, patch: FilePatch): Promise<string | null> {
  const path = normalize(patch.path)
  if (folder === null || patch.change === 'deleted' || patch.binary || isAbsolute(path) || path.startsWith('..')) return null
  try {
    const bytes = await readFile(join(folder, path))
    return bytes.length > FILE_BYTES_MAX ? null : bytes.toString('utf8')
  } catch {
    return null
  }
}
