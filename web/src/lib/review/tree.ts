// Changed files as a tree in the order it is drawn. Folders with nothing but one folder in them share a row.
import type { ChangedFile } from '../api/types'

export interface Entry {
  depth: number
  name: string
  /** Path of the folder or the file. */
  path: string
  /** Null for a folder. */
  file: ChangedFile | null
  added: number
  removed: number
}

interface Folder {
  name: string
  path: string
  folders: Map<string, Folder>
  files: ChangedFile[]
}

const folder = (name: string, path: string): Folder => ({ name, path, folders: new Map(), files: [] })

export function tree(files: readonly ChangedFile[]): Entry[] {
  const top = folder('', '')
  for (const file of files) {
    let at = top
    const parts = file.path.split('/').slice(0, -1)
    for (const part of parts) {
      let below = at.folders.get(part)
      if (below === undefined) {
        below = folder(part, at.path === '' ? part : `${at.path}/${part}`)
        at.folders.set(part, below)
      }
      at = below
    }
    at.files.push(file)
  }
  const found: Entry[] = []
  draw(top, 0, found)
  return found
}

function draw(at: Folder, depth: number, found: Entry[]): void {
  const byName = (a: { path: string }, b: { path: string }): number => a.path.localeCompare(b.path)
  for (const first of [...at.folders.values()].sort(byName)) {
    let below = first
    let name = below.name
    while (below.files.length === 0 && below.folders.size === 1) {
      const [only] = below.folders.values()
      if (only === undefined) break
      below = only
      name += `/${only.name}`
    }
    const entry: Entry = { depth, name, path: below.path, file: null, added: 0, removed: 0 }
    const from = found.push(entry)
    draw(below, depth + 1, found)
    for (const one of found.slice(from)) {
      if (one.file === null) continue
      entry.added += one.added
      entry.removed += one.removed
    }
  }
  for (const file of [...at.files].sort(byName)) {
    const name = file.path.split('/').at(-1) ?? file.path
    found.push({ depth, name, path: file.path, file, added: file.added, removed: file.removed })
  }
}
