// Addresses of sessions and tasks: `lanyard:/sess_…` and `orchestrator:/task_…`. They are the same after any restart.
import * as vscode from 'vscode'

import { idOf } from './ids'

export const sessionUri = (id: string): vscode.Uri => vscode.Uri.from({ scheme: 'lanyard', path: `/${id}` })
export const taskUri = (id: string): vscode.Uri => vscode.Uri.from({ scheme: 'orchestrator', path: `/${id}` })

/** The resource of an id, also from a longer address such as one of `vscode://`. */
export function resourceOf(text: string): vscode.Uri | null {
  const id = idOf(text)
  return id === null ? null : id.kind === 'session' ? sessionUri(id.id) : taskUri(id.id)
}
