// "Plans and workers": each plan with its tasks, each task with its worker and runs. A worker's id stays when its task is
// started again.
import * as vscode from 'vscode'

import { sessionUri, taskUri } from '../session/uris'
import { planTree, type PlanNode } from '../state/plan-tree'
import type { Store } from '../state/store'
import { escaped } from '../state/words'

export class PlansView implements vscode.TreeDataProvider<PlanNode>, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>()
  readonly onDidChangeTreeData = this.#changed.event
  readonly #held: vscode.Disposable[]

  constructor(private readonly store: Store) {
    this.#held = [vscode.window.createTreeView('lanyard.plans', { treeDataProvider: this, showCollapseAll: true }), this.#changed, store.onChange((part) => part === 'plans' && this.#changed.fire())]
  }

  dispose(): void {
    for (const one of this.#held) one.dispose()
  }

  getChildren(node?: PlanNode): PlanNode[] {
    return node?.children ?? planTree(this.store.plans, this.store.tasks, this.store.workers)
  }

  getTreeItem(node: PlanNode): vscode.TreeItem {
    const state = node.children.length === 0 ? vscode.TreeItemCollapsibleState.None : node.kind === 'plan' ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.Collapsed
    const item = new vscode.TreeItem(node.label, state)
    item.id = node.key
    item.description = node.about
    item.contextValue = node.kind
    item.iconPath = new vscode.ThemeIcon(node.icon)
    item.tooltip = new vscode.MarkdownString([`**${escaped(node.label)}**`, escaped(node.about), ...node.more.map(escaped)].join('\n\n'))
    item.accessibilityInformation = { label: `${node.kind} ${node.label}, ${node.about}` }
    if (node.task !== null) item.command = { command: 'vscode.open', title: 'Open', arguments: [taskUri(node.task)] }
    else if (node.session !== null) item.command = { command: 'vscode.open', title: 'Open', arguments: [sessionUri(node.session)] }
    return item
  }
}
