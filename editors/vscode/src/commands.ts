// What a person can do from the views and the command palette. The daemon decides; a refusal is shown with its advice.
import { randomUUID } from 'node:crypto'

import * as vscode from 'vscode'

import type { AgentAbility, AgentList, CancelReceipt, IdChain, Notification, Outcome, SessionDetail, SignInLink, Stopping, TaskView } from './api/schema.gen'
import type { Connection } from './client/connection'
import { DaemonError, told } from './client/errors'
import { removable, type Review } from './review/comments'
import type { Changes } from './review/changes'
import { selectionTurn } from './review/turn'
import { resourceOf, sessionUri } from './session/uris'
import type { SessionEditors } from './session/editors'
import type { Member } from './state/family'
import { allowOf, denyOf, flowOffers, isSettled, type Need } from './state/needs'
import type { PlanNode } from './state/plan-tree'
import type { Store } from './state/store'
import { nameOf, OPERATOR_STATES, plural } from './state/words'

export interface Parts {
  connection: Connection
  store: Store
  changes: Changes
  review: Review
  editors: SessionEditors
}

type Handler = (...given: never[]) => unknown

export class Commands {
  constructor(private readonly parts: Parts) {}

  register(): vscode.Disposable {
    const { connection, store, review } = this.parts
    const handlers: Record<string, Handler> = {
      open: (id?: string) => this.open(id),
      newSession: () => this.newSession(null),
      runSelection: () => this.newSession(selected()),
      sendSelection: () => this.sendSelection(),
      allow: (need: Need) => this.answerPlainly(need, 'allow'),
      deny: (need: Need) => this.answerPlainly(need, 'deny'),
      answer: (need: Need) => this.answer(need),
      acknowledge: (need: Need) => this.edit(need, 'acknowledged'),
      dismiss: (need: Need) => this.edit(need, 'dismissed'),
      guide: (of?: Member) => this.guide(of),
      stop: (of?: Member) => this.stop(of),
      resume: (of?: Member) => this.resume(of),
      changes: (of?: unknown) => this.showChanges(of),
      worktree: (of?: unknown) => this.worktree(of),
      comment: (reply: vscode.CommentReply) => review.add(reply),
      removeComment: (comment: unknown) => (removable(comment) ? review.remove(comment) : undefined),
      sendReview: () => review.send(),
      discardReview: () => review.discard(),
      refresh: () => store.refresh(),
      reconnect: () => connection.open(),
      start: () => connection.start(),
      setToken: () => connection.setToken(),
      forgetToken: () => connection.forgetToken(),
    }
    return vscode.Disposable.from(...Object.entries(handlers).map(([name, run]) => vscode.commands.registerCommand(`lanyard.${name}`, guarded(run))))
  }

  /** Opens a session or task by its id, or one that is picked. */
  async open(id?: string): Promise<void> {
    const uri = typeof id === 'string' ? resourceOf(id) : await this.#picked()
    if (uri !== null) await vscode.commands.executeCommand('vscode.open', uri)
    else if (typeof id === 'string') void vscode.window.showErrorMessage('This link names no session and no task.')
  }

  async newSession(selection: ReturnType<typeof selected>): Promise<void> {
    if (!vscode.workspace.isTrusted) throw new Error('Agents are not started in a folder that is not trusted.')
    const folder = selection?.folder ?? vscode.workspace.workspaceFolders?.find((one) => one.uri.scheme === 'file')?.uri.fsPath
    if (folder === undefined) throw new Error('Open a folder of this machine first: an agent works in it.')
    const { http } = this.parts.connection
    const agents = await http.get<AgentList>('/agents')
    const names = agents.agents.filter((agent) => agent.configured || agent.found != null).map((agent) => agent.name)
    const agent = await vscode.window.showQuickPick(names.sort((a, b) => Number(b === agents.default) - Number(a === agents.default)), { title: 'Agent', placeHolder: 'Agent that does the work' })
    if (agent === undefined) return
    const request = await vscode.window.showInputBox({ title: `Message to ${agent}`, prompt: selection === null ? `It works in ${folder}` : `With ${selection.path}:${selection.first}-${selection.last}`, ignoreFocusOut: true })
    if (request === undefined || request.trim() === '') return
    const prompt = selection === null ? request : selectionTurn(request, selection)
    const made = await http.post<Outcome>('/sessions', { agent, workspace: folder, title: request.slice(0, 80), source: 'editor' }, { key: randomUUID() })
    await vscode.commands.executeCommand('vscode.open', sessionUri(made.session))
    await http.post(`/sessions/${made.session}/turns`, { prompt, client_turn_id: randomUUID() })
  }

  async sendSelection(): Promise<void> {
    const selection = selected()
    if (selection === null) throw new Error('Select some lines first.')
    const session = await this.#pickSession('Continue a session with the selection')
    if (session === null) return
    await this.#able(session, 'prompt')
    const request = await vscode.window.showInputBox({ title: 'Message to the agent', prompt: `With ${selection.path}:${selection.first}-${selection.last}`, ignoreFocusOut: true })
    if (request === undefined || request.trim() === '') return
    await this.parts.connection.http.post(`/sessions/${session}/turns`, { prompt: selectionTurn(request, selection), client_turn_id: randomUUID(), delivery: 'queue' })
    await vscode.commands.executeCommand('vscode.open', sessionUri(session))
  }

  async answerPlainly(need: Need, yes: 'allow' | 'deny'): Promise<void> {
    if (need.kind !== 'approval') return
    const option = (yes === 'allow' ? allowOf : denyOf)(need.gate.options)
    if (option !== undefined) await this.#give(need, { option: option.id })
  }

  async answer(need: Need): Promise<void> {
    if (need.kind === 'approval') {
      const option = await vscode.window.showQuickPick(need.gate.options.map((one) => ({ label: one.name, id: one.id })), { title: need.label })
      if (option === undefined) return
      const message = await vscode.window.showInputBox({ title: 'Message with the answer', prompt: 'Optional: it reaches the agent with the answer. Press Enter to send none.' })
      if (message !== undefined) await this.#give(need, { option: option.id, message: message.trim() === '' ? null : message })
    } else if (need.kind === 'flow') {
      const offer = await vscode.window.showQuickPick(flowOffers(need.entry), { title: need.label })
      if (offer === undefined) return
      const guidance = offer.words ? await vscode.window.showInputBox({ title: 'Guidance for the agent', prompt: 'Optional. Press Enter to send none.' }) : ''
      if (guidance !== undefined) await this.#give(need, { choice: offer.choice, guidance: guidance.trim() === '' ? null : guidance })
    }
  }

  async edit(need: Need, status: 'acknowledged' | 'dismissed'): Promise<void> {
    if (need.kind !== 'notification') return
    await this.parts.connection.http.patch<Notification>(`/notifications/${need.id}`, { status })
    this.parts.store.refresh()
  }

  async guide(of?: Member): Promise<void> {
    const session = await this.#session(of)
    if (session === null) return
    const most = this.parts.connection.me?.limits.guidance_chars ?? 500
    const text = await vscode.window.showInputBox({
      title: 'Guidance for the running agent',
      prompt: `At most ${most} characters; the agent gets it with its next tool call. The tab shows when it was delivered.`,
      validateInput: (value) => ([...value].length > most ? `${[...value].length} of ${most} characters` : undefined),
      ignoreFocusOut: true,
    })
    if (text === undefined || text.trim() === '') return
    await this.parts.connection.http.post<Outcome>(`/sessions/${session}/guidance`, { text }, { key: randomUUID() })
    await vscode.commands.executeCommand('vscode.open', sessionUri(session))
  }

  /** A second press raises the level of the stop that is pending. */
  async stop(of?: Member): Promise<void> {
    const session = await this.#session(of)
    if (session === null) return
    await this.#able(session, 'stop')
    const { connection, store } = this.parts
    const row = store.rows.get(session)
    const level = row?.pending.stop_level ?? 0
    const below = of?.below ?? [...store.rows.values()].filter((one) => one.parent === session).length
    const running = row?.active_runs ?? 0
    const choices = [
      { label: level > 0 ? `Raise the stop to level ${Math.min(3, level + 1)}` : 'Stop the session', body: { scope: 'session' } },
      ...(below > 0 ? [{ label: 'Stop the whole family', detail: `This session and ${plural(below, 'session')} below it`, body: { scope: 'subtree' } }] : []),
      ...(level === 0 ? [{ label: 'Stop the session now', detail: 'Level 2: the next tool call is not carried out', body: { scope: 'session', now: true } }] : []),
      ...(running > 0 ? [{ label: 'Cancel the turn', detail: 'The session stays', body: null }] : []),
    ]
    const choice = await vscode.window.showQuickPick(choices, { title: row === undefined ? 'Stop' : `Stop ${nameOf(row)}` })
    if (choice === undefined) return
    if (choice.body === null) await connection.http.post<CancelReceipt>(`/sessions/${session}/cancel`)
    else {
      const done = await connection.http.post<Stopping>(`/sessions/${session}/stop`, choice.body, { key: randomUUID() })
      if ((done.untouched ?? 0) > 0) void vscode.window.showInformationMessage(`${plural(done.untouched ?? 0, 'session')} below still run.`)
    }
    // The receipt is in the tab.
    await vscode.commands.executeCommand('vscode.open', sessionUri(session))
  }

  async resume(of?: Member): Promise<void> {
    const session = await this.#session(of)
    if (session === null) return
    await this.parts.connection.http.post(`/sessions/${session}/resume`, {}, { key: randomUUID() })
    await vscode.commands.executeCommand('vscode.open', sessionUri(session))
  }

  async showChanges(of?: unknown): Promise<void> {
    const task = taskOf(of)
    if (task !== null) {
      await this.parts.changes.show(task.id, task.title)
      return this.parts.review.refresh(task.id)
    }
    const session = await this.#session(of)
    if (session === null) return
    const row = this.parts.store.rows.get(session)
    await this.parts.changes.show(session, row === undefined ? session : nameOf(row))
    await this.parts.review.refresh(session)
  }

  async worktree(of?: unknown): Promise<void> {
    const { http, target } = this.parts.connection
    if (target.kind !== 'socket') throw new Error('The folder is on the daemon\'s machine. Open it there, such as with Remote-SSH.')
    const task = taskOf(of)
    let folder: string | null | undefined
    if (task !== null) folder = (await http.get<TaskView>(`/tasks/${task.id}`)).tree?.path
    else {
      const session = await this.#session(of)
      if (session === null) return
      const detail = await http.get<SessionDetail>(`/sessions/${session}`)
      folder = detail.tree?.path ?? detail.workspace
    }
    if (folder == null) throw new Error('There is no worktree and no folder.')
    await vscode.commands.executeCommand('vscode.openFolder', vscode.Uri.file(folder), { forceNewWindow: true })
  }

  /** The dashboard in the browser, signed in by a link that works once. */
  async dashboard(): Promise<void> {
    const role = this.parts.connection.operator ? 'operator' : 'observer'
    const { url } = await this.parts.connection.http.post<SignInLink>('/sign-in/links', { role })
    await vscode.env.openExternal(vscode.Uri.parse(url))
  }

  async taskSession(task: string): Promise<string> {
    const chain = await this.parts.connection.http.get<IdChain>(`/ids/${task}`)
    const session = chain.task?.session ?? chain.session?.id
    if (session == null) throw new Error(`Task ${task} has no active worker yet.`)
    return session
  }

  async #give(need: Exclude<Need, { kind: 'notification' }>, body: unknown): Promise<void> {
    const route = need.kind === 'approval' ? `/sessions/${need.gate.session}/gates/${need.id}` : `/flows/${need.entry.flow}/gates/${need.id}`
    try {
      await this.parts.connection.http.post(route, body, { key: randomUUID() })
    } catch (error) {
      if (!(error instanceof DaemonError) || !isSettled(error.code)) throw error
      void vscode.window.showInformationMessage('It was answered already.')
    } finally {
      this.parts.store.refresh()
    }
  }

  /** Says the daemon's reason where the session's agent cannot be asked for this. */
  async #able(session: string, what: AgentAbility): Promise<void> {
    const { lacks } = await this.parts.connection.http.get<SessionDetail>(`/sessions/${session}`)
    const lack = lacks?.find((one) => one.what === what)
    if (lack !== undefined) throw new Error(`${lack.why}; ${lack.instead}`)
  }

  async #session(of: unknown): Promise<string | null> {
    const row = (of as Partial<Member> | undefined)?.row
    if (row !== undefined) return row.id
    if (of instanceof vscode.Uri) {
      if (of.scheme === 'lanyard') return of.path.slice(1)
      if (of.scheme === 'orchestrator') return this.taskSession(of.path.slice(1))
    }
    if (typeof of === 'string') return of
    return this.parts.editors.current ?? this.#pickSession('Session')
  }

  async #picked(): Promise<vscode.Uri | null> {
    const session = await this.#pickSession('Open a session')
    return session === null ? null : sessionUri(session)
  }

  async #pickSession(title: string): Promise<string | null> {
    const rows = [...this.parts.store.rows.values()].filter((row) => !row.archived).sort((a, b) => b.last_activity_at.localeCompare(a.last_activity_at))
    const items = rows.map((row) => ({ label: nameOf(row), description: OPERATOR_STATES[row.operator_state].label, detail: row.workspace ?? undefined, id: row.id }))
    return (await vscode.window.showQuickPick(items, { title, matchOnDetail: true }))?.id ?? null
  }
}

function taskOf(of: unknown): { id: string; title: string } | null {
  const node = of as Partial<PlanNode> | undefined
  return node?.kind === 'task' && node.task != null ? { id: node.task, title: node.label ?? node.task } : null
}

/** The lines selected in the editor in front; null where there are none. */
function selected(): { path: string; first: number; last: number; text: string; folder: string | undefined } | null {
  const editor = vscode.window.activeTextEditor
  if (editor === undefined || editor.selection.isEmpty) return null
  const { start, end } = editor.selection
  const last = end.character === 0 && end.line > start.line ? end.line : end.line + 1
  return {
    path: vscode.workspace.asRelativePath(editor.document.uri, false),
    first: start.line + 1,
    last,
    text: editor.document.getText(editor.selection),
    folder: vscode.workspace.getWorkspaceFolder(editor.document.uri)?.uri.fsPath,
  }
}

/** A refusal is shown; it is no fault of the extension. */
function guarded(run: Handler): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    try {
      await run(...(given as never[]))
    } catch (error) {
      void vscode.window.showErrorMessage(told(error))
    }
  }
}
