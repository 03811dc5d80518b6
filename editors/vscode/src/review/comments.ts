// Comments on changes. They are drafts of the daemon: every screen shows them, and a window that is loaded again still has
// them. Sending makes one message of those that are shown here.
import { randomUUID } from 'node:crypto'

import * as vscode from 'vscode'

import type { ReviewView, TurnReceipt } from '../api/schema.gen'
import { DaemonError } from '../client/errors'
import type { Connection } from '../client/connection'
import { diffUri, placeOf, type Changes } from './changes'
import { draftsOf, placeIn, type DraftView } from './drafts'

/** Between two looks at drafts whose session changed. */
const GATHER_MS = 1_000

class DraftComment implements vscode.Comment {
  mode = vscode.CommentMode.Preview
  author: { name: string }
  label: string
  contextValue = 'draft'
  body: string
  constructor(
    readonly draft: DraftView,
    readonly thread: vscode.CommentThread,
  ) {
    this.body = draft.text
    this.author = { name: draft.author.name }
    this.label = draft.anchor === 'stale' ? 'not sent, changed since' : 'not sent'
  }
}

export class Review implements vscode.Disposable {
  readonly #controller = vscode.comments.createCommentController('lanyard.review', 'Lanyard review')
  /** Threads by the session or task whose changes are shown, and in it by comment. */
  readonly #shown = new Map<string, Map<string, vscode.CommentThread>>()
  /** The same review sent again after no answer is the same request. */
  readonly #sending = new Map<string, { what: string; key: string }>()
  readonly #asked = new Map<string, Promise<void>>()
  /** The session of each that is shown, and the position of its log at the last look. */
  readonly #sessions = new Map<string, { id: string; seq: number }>()
  #timer: ReturnType<typeof setTimeout> | null = null

  constructor(
    private readonly connection: Connection,
    private readonly changes: Changes,
    private readonly taskSession: (task: string) => Promise<string>,
  ) {
    this.#controller.commentingRangeProvider = {
      provideCommentingRanges: (document) => (placeOf(document.uri) !== null && connection.operator ? { enableFileComments: false, ranges: [new vscode.Range(0, 0, Math.max(0, document.lineCount - 1), 0)] } : undefined),
    }
    this.#controller.options = { prompt: 'Comment for the agent', placeHolder: 'What should change here?' }
    this.#count()
  }

  dispose(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#controller.dispose()
  }

  /** Shows the drafts of a session or task as the daemon has them. One look at a time. */
  refresh(owner: string): Promise<void> {
    const before = this.#asked.get(owner) ?? Promise.resolve()
    const next = before.then(() => this.#look(owner)).catch((error: unknown) => {
      // Without the daemon, or of an older one, what is shown stays.
      if (!(error instanceof DaemonError)) throw error
    })
    this.#asked.set(owner, next)
    return next
  }

  /** Looks again at what is shown, soon and once for many calls: a stream says that sessions changed. */
  refreshShown(rows: ReadonlyMap<string, { last_seq: number }>): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      for (const [owner, held] of this.#sessions) {
        const seq = rows.get(held.id)?.last_seq
        if (seq === undefined || seq === held.seq) continue
        held.seq = seq
        void this.refresh(owner)
      }
    }, GATHER_MS)
  }

  /** A reply in the comment box becomes a draft, or changes the one that is there. */
  async add({ thread, text }: vscode.CommentReply): Promise<void> {
    const place = placeOf(thread.uri)
    if (place === null || text.trim() === '') return
    const held = [...(this.#shown.get(place.owner) ?? [])].find(([, one]) => one === thread)
    const session = await this.#session(place.owner)
    const { http } = this.connection
    if (held !== undefined) {
      const [comment] = thread.comments as DraftComment[]
      await http.patch(`/sessions/${session}/review/comments/${held[0]}`, { text: `${comment?.body ?? ''}\n${text}` })
    } else {
      const document = await vscode.workspace.openTextDocument(thread.uri)
      const range = thread.range ?? new vscode.Range(0, 0, 0, 0)
      const lines = placeIn(place, range.start.line, Math.min(range.end.line, document.lineCount - 1), (at) => document.lineAt(at).text, (at) => this.changes.lineOf(place, at))
      await http.post(`/sessions/${session}/review/comments`, { ...lines, text, base: place.owner.startsWith('task_') ? 'branch' : undefined }, { key: randomUUID() })
      // It comes back with what the daemon has.
      thread.dispose()
    }
    await this.refresh(place.owner)
  }

  async remove(comment: DraftComment): Promise<void> {
    const place = placeOf(comment.thread.uri)
    if (place === null) return
    await this.#drop(place.owner, comment.draft.comment)
    await this.refresh(place.owner)
  }

  /** Removes the drafts that are shown. */
  async discard(): Promise<void> {
    for (const [owner, threads] of this.#shown) {
      for (const comment of threads.keys()) await this.#drop(owner, comment)
      await this.refresh(owner)
    }
  }

  /** Sends the drafts of each session or task as one message; those that were refused stay. */
  async send(): Promise<void> {
    for (const [owner, threads] of this.#shown) {
      if (threads.size === 0) continue
      const body = { comments: [...threads.keys()], delivery: 'queue' }
      const what = JSON.stringify(body)
      const held = this.#sending.get(owner)
      const sending = held?.what === what ? held : { what, key: randomUUID() }
      this.#sending.set(owner, sending)
      await this.connection.http.post<TurnReceipt>(`/sessions/${await this.#session(owner)}/review/send`, body, { key: sending.key })
      this.#sending.delete(owner)
      await this.refresh(owner)
    }
    void vscode.window.showInformationMessage('The review was sent.')
  }

  async #drop(owner: string, comment: string): Promise<void> {
    await this.connection.http.ask('DELETE', `/sessions/${await this.#session(owner)}/review/comments/${comment}`, { body: {}, key: randomUUID() })
  }

  async #look(owner: string): Promise<void> {
    const session = await this.#session(owner)
    const review = await this.connection.http.get<ReviewView>(`/sessions/${session}/review`)
    this.#sessions.set(owner, { id: session, seq: this.#sessions.get(owner)?.seq ?? 0 })
    const wanted = new Map(draftsOf(review).map((draft) => [draft.comment, draft]))
    const threads = this.#shown.get(owner) ?? new Map<string, vscode.CommentThread>()
    this.#shown.set(owner, threads)
    for (const [comment, thread] of threads) {
      if (wanted.has(comment)) continue
      thread.dispose()
      threads.delete(comment)
    }
    for (const draft of wanted.values()) {
      const side = draft.side === 'old' ? 'before' : 'after'
      const { first, last } = draft.anchor === 'moved' && draft.now !== undefined ? draft.now : draft.lines
      const at = (line: number): number => this.changes.shownLine({ owner, path: draft.path, side }, line - 1)
      const range = new vscode.Range(at(first), 0, at(last), 0)
      const thread = threads.get(draft.comment) ?? this.#controller.createCommentThread(diffUri(owner, draft.path, side), range, [])
      thread.range = range
      thread.comments = [new DraftComment(draft, thread)]
      thread.label = 'Review comment'
      thread.canReply = this.connection.operator
      thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded
      threads.set(draft.comment, thread)
    }
    this.#count()
  }

  #session(owner: string): Promise<string> {
    return owner.startsWith('task_') ? this.taskSession(owner) : Promise.resolve(owner)
  }

  #count(): void {
    const count = [...this.#shown.values()].reduce((sum, threads) => sum + threads.size, 0)
    void vscode.commands.executeCommand('setContext', 'lanyard.reviewComments', count)
  }
}

export const removable = (comment: unknown): comment is DraftComment => comment instanceof DraftComment
