// "Needs you": approvals of agents and flows with their answers, and notifications.
import * as vscode from 'vscode'

import { isYesNo, type Need } from '../state/needs'
import type { Store } from '../state/store'
import { escaped } from '../state/words'
import { sessionUri } from '../session/uris'

export class NeedsView implements vscode.TreeDataProvider<Need>, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>()
  readonly onDidChangeTreeData = this.#changed.event
  readonly #view: vscode.TreeView<Need>
  readonly #held: vscode.Disposable[]

  constructor(private readonly store: Store) {
    this.#view = vscode.window.createTreeView('lanyard.needs', { treeDataProvider: this })
    this.#held = [this.#view, this.#changed, store.onChange((part) => part === 'needs' && this.#draw())]
  }

  dispose(): void {
    for (const one of this.#held) one.dispose()
  }

  getChildren(need?: Need): Need[] {
    return need === undefined ? this.store.needs : []
  }

  getTreeItem(need: Need): vscode.TreeItem {
    const item = new vscode.TreeItem(need.label)
    item.id = need.id
    item.description = need.about
    item.accessibilityInformation = { label: `${need.kind}: ${need.label}, ${need.about}` }
    switch (need.kind) {
      case 'approval':
        item.contextValue = isYesNo(need.gate.options) ? 'approval' : 'question'
        item.iconPath = new vscode.ThemeIcon('question', new vscode.ThemeColor('list.warningForeground'))
        item.tooltip = tip(need.gate.title, [need.gate.agent ?? '', need.gate.workspace ?? ''])
        item.command = open(sessionUri(need.gate.session))
        break
      case 'flow':
        item.contextValue = 'flow'
        item.iconPath = new vscode.ThemeIcon('milestone', new vscode.ThemeColor('list.warningForeground'))
        item.tooltip = tip(need.entry.gate.reason, [need.entry.title, need.entry.phase ?? '', need.entry.gate.evidence ?? ''])
        item.command = { command: 'lanyard.answer', title: 'Answer', arguments: [need] }
        break
      case 'notification': {
        const { severity, session, text } = need.notification
        item.contextValue = 'notification'
        item.iconPath = new vscode.ThemeIcon(severity === 'info' ? 'info' : severity === 'warning' ? 'warning' : 'error')
        item.tooltip = tip(need.notification.title, [text ?? ''])
        if (session != null) item.command = open(sessionUri(session))
        break
      }
    }
    return item
  }

  #draw(): void {
    const count = this.store.needs.length
    this.#view.badge = count === 0 ? undefined : { value: count, tooltip: `${count} ${count === 1 ? 'needs' : 'need'} you` }
    this.#changed.fire()
  }
}

const open = (uri: vscode.Uri): vscode.Command => ({ command: 'vscode.open', title: 'Open', arguments: [uri] })

const tip = (title: string, more: readonly string[]): vscode.MarkdownString =>
  new vscode.MarkdownString([`**${escaped(title)}**`, ...more.filter((line) => line !== '').map(escaped)].join('\n\n'))
