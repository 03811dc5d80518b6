// `lanyard:/sess_…` and `orchestrator:/task_…` as editor tabs. A tab is bound to its address: a window that is loaded
// again opens it again, and a task's tab follows the task to its next session.
import * as vscode from 'vscode'

import type { IdChain, SessionDetail, TaskView } from '../api/schema.gen'
import type { Connection } from '../client/connection'
import { DaemonError, told } from '../client/errors'
import type { Store } from '../state/store'
import { nameOf, oneLine, shortId } from '../state/words'
import { idOf } from './ids'
import { SessionPage } from './page'

interface Opened extends vscode.CustomDocument {
  named: string
}

type Act = ConstructorParameters<typeof SessionPage>[3]

export class SessionEditors implements vscode.CustomReadonlyEditorProvider<Opened> {
  /** The session of the tab that is in front. */
  current: string | null = null

  constructor(
    private readonly extension: vscode.Uri,
    private readonly connection: Connection,
    private readonly store: Store,
    private readonly act: Act,
  ) {}

  register(): vscode.Disposable {
    const options = { webviewOptions: { retainContextWhenHidden: true }, supportsMultipleEditorsPerDocument: false }
    return vscode.Disposable.from(
      vscode.window.registerCustomEditorProvider('lanyard.session', this, options),
      vscode.window.registerCustomEditorProvider('lanyard.task', this, options),
    )
  }

  openCustomDocument(uri: vscode.Uri): Opened {
    return { uri, named: idOf(uri.path)?.id ?? '', dispose: () => undefined }
  }

  resolveCustomEditor(document: Opened, panel: vscode.WebviewPanel): void {
    const page = new SessionPage(panel, this.extension, this.connection, this.act)
    const task = document.uri.scheme === 'orchestrator'
    panel.iconPath = vscode.Uri.joinPath(this.extension, 'media', 'lanyard.png')
    let session: string | null = task ? null : document.named
    let round = 0
    const show = async (): Promise<void> => {
      const mine = ++round
      const shown = task ? await this.#ofTask(document.named) : await this.#ofSession(document.named)
      if (mine !== round) return
      session = shown.session
      if (panel.active) this.current = session
      panel.title = shown.title
      page.show({ session: shown.session, task: shown.task, problem: shown.problem, me: this.connection.me })
    }
    const held = vscode.Disposable.from(
      page,
      // What was not known may be known now.
      this.connection.onChange(() => void show()),
      this.store.onChange((part) => {
        if (task && part === 'plans') void show()
        const row = session === null || task ? undefined : this.store.rows.get(session)
        if (row !== undefined) panel.title = nameOf(row)
      }),
      panel.onDidChangeViewState(() => panel.active && (this.current = session)),
    )
    panel.onDidDispose(() => held.dispose())
    void show()
  }

  async #ofSession(id: string): Promise<{ session: string | null; task: null; title: string; problem: string | null }> {
    const row = this.store.rows.get(id)
    if (row !== undefined) return { session: id, task: null, title: nameOf(row), problem: null }
    try {
      const detail = await this.connection.http.get<SessionDetail>(`/sessions/${id}`)
      return { session: id, task: null, title: nameOf(detail), problem: null }
    } catch (error) {
      const away = error instanceof DaemonError && error.status === 0
      return { session: away ? id : null, task: null, title: `session ${shortId(id)}`, problem: away ? null : told(error) }
    }
  }

  /** An unknown task and a task without a session are told apart. */
  async #ofTask(id: string): Promise<{ session: string | null; task: SessionTask | null; title: string; problem: string | null }> {
    try {
      const chain = await this.connection.http.get<IdChain>(`/ids/${id}`)
      const task = chain.task ?? (await this.connection.http.get<TaskView>(`/tasks/${id}`))
      const session = task.session ?? chain.session?.id ?? null
      const title = oneLine(task.title ?? '', 60) || `task ${shortId(id)}`
      const facts = { id: task.id, title, state: task.state, worker: task.worker ?? null, run: task.run ?? 0, held: task.held ?? task.reason ?? '' }
      return { session, task: facts, title, problem: session === null ? `Task ${id} has no active worker yet: it is ${task.state}.` : null }
    } catch (error) {
      return { session: null, task: null, title: `task ${shortId(id)}`, problem: error instanceof DaemonError && error.status === 404 ? `There is no task ${id}.` : told(error) }
    }
  }
}

type SessionTask = NonNullable<Parameters<SessionPage['show']>[0]['task']>
