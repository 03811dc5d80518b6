// "Sessions": a tree by family with the operator state of each, live.
import * as vscode from 'vscode'

import { settings } from '../client/connection'
import { sessionUri } from '../session/uris'
import { families, type Member } from '../state/family'
import type { Store } from '../state/store'
import { elapsed, escaped, nameOf, OPERATOR_STATES, plural } from '../state/words'

/** Elapsed times are drawn again so often. */
const CLOCK_MS = 30_000

export class SessionsView implements vscode.TreeDataProvider<Member>, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>()
  readonly onDidChangeTreeData = this.#changed.event
  readonly #held: vscode.Disposable[]

  constructor(private readonly store: Store) {
    const view = vscode.window.createTreeView('lanyard.sessions', { treeDataProvider: this, showCollapseAll: true })
    const clock = setInterval(() => view.visible && this.#changed.fire(), CLOCK_MS)
    this.#held = [view, this.#changed, new vscode.Disposable(() => clearInterval(clock)), store.onChange((part) => part === 'sessions' && this.#changed.fire())]
  }

  dispose(): void {
    for (const one of this.#held) one.dispose()
  }

  draw(): void {
    this.#changed.fire()
  }

  getChildren(member?: Member): Member[] {
    return member?.children ?? families(this.store.rows.values(), settings().get('ended', false))
  }

  getTreeItem(member: Member): vscode.TreeItem {
    const { row, children, below } = member
    const state = OPERATOR_STATES[row.operator_state]
    const item = new vscode.TreeItem(nameOf(row), children.length === 0 ? vscode.TreeItemCollapsibleState.None : vscode.TreeItemCollapsibleState.Expanded)
    // A row that gets its first child is a new one for the tree; otherwise it would stay closed.
    item.id = children.length === 0 ? row.id : `${row.id} family`
    const stopping = row.pending.stop_level > 0 && row.lifecycle !== 'terminal'
    const label = stopping ? `stopping, level ${row.pending.stop_level}` : state.label
    const urgent = member.worst !== row.operator_state && (member.worst === 'needs_answer' || member.worst === 'failed') ? `below: ${OPERATOR_STATES[member.worst].label}` : ''
    item.description = [label, urgent, row.agent ?? '', elapsed(row.since, Date.now()), row.unread ? 'new' : ''].filter((part) => part !== '').join(' · ')
    item.iconPath = new vscode.ThemeIcon(stopping ? 'debug-stop' : state.icon, new vscode.ThemeColor(stopping ? 'list.warningForeground' : state.colour))
    item.contextValue = row.lifecycle === 'terminal' ? 'ended resumable' : row.active_runs > 0 || row.pending.running ? 'live running' : 'live resumable'
    item.tooltip = new vscode.MarkdownString(
      [`**${escaped(nameOf(row))}**`, `${label} · ${plural(row.turns, 'turn')}${below > 0 ? ` · ${below} below` : ''}`, escaped(row.plan == null ? '' : `Plan ${row.plan}`), escaped(row.branch ?? ''), escaped(row.workspace ?? ''), row.id]
        .filter((line) => line !== '')
        .join('\n\n'),
    )
    item.accessibilityInformation = { label: `${nameOf(row)}, ${item.description}` }
    item.command = { command: 'vscode.open', title: 'Open', arguments: [sessionUri(row.id)] }
    return item
  }
}
