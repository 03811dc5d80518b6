// A patch as git writes it, file by file. Nothing in it is trusted to be well formed.

export interface PatchLine {
  kind: 'add' | 'del' | 'same' | 'hunk' | 'note'
  text: string
  old: number | null
  new: number | null
}

export interface FilePatch {
  path: string
  lines: PatchLine[]
}

export function parse(patch: string): FilePatch[] {
  const files: FilePatch[] = []
  let file: FilePatch | null = null
  let [was, is] = [0, 0]
  let inside = false
  const rows = patch.split('\n')
  if (rows.at(-1) === '') rows.pop()
  for (const row of rows) {
    const head = /^diff --git (?:"?a\/.*?"?) "?b\/(.*?)"?$/.exec(row)
    if (head) {
      file = { path: head[1] ?? '', lines: [] }
      files.push(file)
      inside = false
      continue
    }
    if (file === null) continue
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(row)
    if (hunk) {
      ;[was, is] = [Number(hunk[1]), Number(hunk[2])]
      inside = true
      file.lines.push({ kind: 'hunk', text: row, old: null, new: null })
    } else if (!inside) {
      // The index and the names stand above; what tells something about the file itself stays.
      if (/^(new|deleted|old) (file )?mode|^rename |^Binary /.test(row)) file.lines.push({ kind: 'note', text: row, old: null, new: null })
    } else if (row.startsWith('+')) file.lines.push({ kind: 'add', text: row.slice(1), old: null, new: is++ })
    else if (row.startsWith('-')) file.lines.push({ kind: 'del', text: row.slice(1), old: was++, new: null })
    else if (row.startsWith('\\')) file.lines.push({ kind: 'note', text: row.slice(2), old: null, new: null })
    else file.lines.push({ kind: 'same', text: row.slice(1), old: was++, new: is++ })
  }
  return files
}
