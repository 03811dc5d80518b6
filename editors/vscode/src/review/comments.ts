// Comments on changes, collected until they are sent as one message. They are kept with the workspace, so a window that is
// loaded again still has them.
import { randomUUID } from 'node:crypto'

import * as vscode from 'vscode'

import type { TurnReceipt } from '../api/schema.gen'
import type { Connection } from '../client/connection'
import { diffUri, placeOf, type Changes } from './changes'
import { reviewTurn, type ReviewComment } from './turn'

interface Saved extends ReviewComment {
  owner: string
  /** Line in the shown text, from 0. */
  at: number
}

const STATE = 'lanyard.review'
const COMMENTS_MAX = 200

class DraftComment implements vscode.Comment {
  mode = vscode.CommentMode.Preview
  author = { name: 'You' }
  label = 'not sent'
  contextValue = 'draft'
  constructor(
    public body: string,
    readonly thread: vscode.CommentThread,
  ) {}
}

export class Review implements vscode.Disposable {
  readonly #controller = vscode.comments.createCommentController('lanyard.review', 'Lanyard review')
  readonly #threads = new Map<vscode.CommentThread, Saved>()
  /** The same review sent again after no answer is the same turn. */
  readonly #turns = new Map<string, { text: string; key: string }>()

  constructor(
    private readonly memento: vscode.Memento,
    private readonly connection: Connection,
    private readonly changes: Changes,
    private readonly taskSession: (task: string) => Promise<string>,
  ) {
    this.#controller.commentingRangeProvider = {
      provideCommentingRanges: (document) => (placeOf(document.uri)?.side === 'after' && connection.operator ? { enableFileComments: false, ranges: [new vscode.Range(0, 0, Math.max(0, document.lineCount - 1), 0)] } : undefined),
    }
    this.#controller.options = { prompt: 'Comment for the agent', placeHolder: 'What should change here?' }
    for (const saved of memento.get<Saved[]>(STATE, [])) this.#restore(saved)
    this.#count()
  }

  dispose(): void {
    this.#controller.dispose()
  }

  /** A reply in the comment box becomes part of the review. */
  async add({ thread, text }: vscode.CommentReply): Promise<void> {
    const place = placeOf(thread.uri)
    if (place === null || text.trim() === '') return
    if (this.#threads.size >= COMMENTS_MAX) {
      void vscode.window.showWarningMessage(`A review has at most ${COMMENTS_MAX} comments. Send this one first.`)
      return
    }
    const at = thread.range?.end.line ?? 0
    const document = await vscode.workspace.openTextDocument(thread.uri)
    const before = this.#threads.get(thread)
    const whole = before === undefined ? text : `${before.text}\n${text}`
    const quoted = at < document.lineCount ? document.lineAt(at).text : ''
    this.#threads.set(thread, { owner: place.owner, path: place.path, line: this.changes.lineOf(place, at) + 1, at, quoted, text: whole })
    thread.comments = [new DraftComment(whole, thread)]
    this.#look(thread)
    await this.#keep()
  }

  async remove(comment: DraftComment): Promise<void> {
    this.#threads.delete(comment.thread)
    comment.thread.dispose()
    await this.#keep()
  }

  async discard(): Promise<void> {
    for (const thread of this.#threads.keys()) thread.dispose()
    this.#threads.clear()
    await this.#keep()
  }

  /** Sends the comments of each session or task as one message; those that were refused stay. */
  async send(): Promise<void> {
    for (const owner of new Set([...this.#threads.values()].map((one) => one.owner))) {
      const mine = [...this.#threads].filter(([, saved]) => saved.owner === owner)
      const text = reviewTurn(mine.map(([, saved]) => saved))
      const held = this.#turns.get(owner)
      const turn = held?.text === text ? held : { text, key: randomUUID() }
      this.#turns.set(owner, turn)
      const session = owner.startsWith('task_') ? await this.taskSession(owner) : owner
      await this.connection.http.post<TurnReceipt>(`/sessions/${session}/turns`, { prompt: text, client_turn_id: turn.key, delivery: 'queue' })
      this.#turns.delete(owner)
      for (const [thread] of mine) {
        this.#threads.delete(thread)
        thread.dispose()
      }
      await this.#keep()
    }
    void vscode.window.showInformationMessage('The review was sent.')
  }

  #restore(saved: Saved): void {
    const thread = this.#controller.createCommentThread(diffUri(saved.owner, saved.path, 'after'), new vscode.Range(saved.at, 0, saved.at, 0), [])
    thread.comments = [new DraftComment(saved.text, thread)]
    this.#look(thread)
    this.#threads.set(thread, saved)
  }

  #look(thread: vscode.CommentThread): void {
    thread.label = 'Review comment'
    thread.canReply = true
    thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded
  }

  async #keep(): Promise<void> {
    this.#count()
    await this.memento.update(STATE, [...this.#threads.values()])
  }

  #count(): void {
    void vscode.commands.executeCommand('setContext', 'lanyard.reviewComments', this.#threads.size)
  }
}

export const removable = (comment: unknown): comment is DraftComment => comment instanceof DraftComment

