// Lanyard in VS Code: what is wired to what.
import * as vscode from 'vscode'

import type { DirectoryFrame } from './api/schema.gen'
import { Commands, type Parts } from './commands'
import { Connection } from './client/connection'
import { told } from './client/errors'
import { Changes, DIFF } from './review/changes'
import { Review } from './review/comments'
import type { FromPage } from './session/bridge'
import { SessionEditors } from './session/editors'
import { Store } from './state/store'
import { NeedsView } from './views/needs-view'
import { PlansView } from './views/plans-view'
import { SessionsView } from './views/sessions-view'
import { statusBar } from './views/status'

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel('Lanyard', { log: true })
  const store = new Store(() => connection, log)
  const frames = { directory: (frame: unknown) => store.directory(frame as DirectoryFrame | null), record: (frame: unknown) => store.record(frame as { type?: unknown } | null), reset: () => store.clear() }
  const connection: Connection = new Connection(context.secrets, frames, log)
  const act = (message: Extract<FromPage, { type: 'do' }>): void => void perform(commands, message).catch((error: unknown) => vscode.window.showErrorMessage(told(error)))
  const editors = new SessionEditors(context.extensionUri, connection, store, act)
  const changes = new Changes(connection)
  const review = new Review(connection, changes, (task) => commands.taskSession(task))
  const parts: Parts = { connection, store, changes, review, editors }
  const commands: Commands = new Commands(parts)
  const sessions = new SessionsView(store)
  context.subscriptions.push(
    log,
    store,
    connection,
    review,
    sessions,
    new NeedsView(store),
    new PlansView(store),
    statusBar(connection, store),
    store.onChange((part) => (part === 'sessions' ? review.refreshShown(store.rows) : undefined)),
    editors.register(),
    commands.register(),
    vscode.workspace.registerTextDocumentContentProvider(DIFF, changes),
    vscode.window.registerUriHandler({ handleUri: (uri) => void commands.open(`${uri.path} ${uri.query}`) }),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration('lanyard.ended')) sessions.draw()
      if (['address', 'dataFolder', 'program', 'start'].some((name) => change.affectsConfiguration(`lanyard.${name}`))) connection.open()
    }),
  )
  connection.open()
}

async function perform(commands: Commands, { what, arg }: Extract<FromPage, { type: 'do' }>): Promise<void> {
  switch (what) {
    case 'changes':
      return commands.showChanges(arg)
    case 'worktree':
      return commands.worktree(arg)
    case 'session':
      return commands.open(arg)
    case 'dashboard':
      return commands.dashboard()
  }
}
