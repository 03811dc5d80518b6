// Bringing a file of entries in, part by part, and adding up what came of it.
import { post } from '../api/client'
import type { Imported, NotImported } from '../api/types'
import { batches, linesOf } from './asking'

export interface Brought {
  imported: number
  known: number
  refused: NotImported[]
}

export async function bring(file: File, progress: (done: number, of: number) => void): Promise<Brought> {
  const lines = linesOf(await file.text())
  if ('why' in lines) throw new Error(`Line ${lines.line} of the file is no JSON: ${lines.why}`)
  const all: Brought = { imported: 0, known: 0, refused: [] }
  let done = 0
  for (const entries of batches(lines.entries)) {
    const answer = await post<Imported>('/memory/import', { entries })
    all.imported += answer.imported
    all.known += answer.known
    // Places are counted from where this part began.
    all.refused.push(...(answer.refused ?? []).map((one) => ({ ...one, index: one.index + done })))
    done += entries.length
    progress(done, lines.entries.length)
  }
  return all
}
