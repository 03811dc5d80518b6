// The status bar item: what needs a person and how many sessions work.
import * as vscode from 'vscode'

import type { Connection } from '../client/connection'
import type { Store } from '../state/store'

export function statusBar(connection: Connection, store: Store): vscode.Disposable {
  const item = vscode.window.createStatusBarItem('lanyard.status', vscode.StatusBarAlignment.Left, 10)
  item.name = 'Lanyard'
  const draw = (): void => {
    const needs = store.needs.length
    const working = [...store.rows.values()].filter((row) => row.operator_state === 'working').length
    const live = connection.link === 'live'
    item.text = live ? `Lanyard: $(bell) ${needs} $(sync) ${working}` : connection.link === 'refused' ? '$(key) Lanyard: token refused' : '$(debug-disconnect) Lanyard: no daemon'
    item.tooltip = live ? `${needs} ${needs === 1 ? 'needs' : 'need'} you, ${working} working${connection.operator ? '' : '. This token only reads.'}` : 'The connection comes back by itself.'
    item.accessibilityInformation = { label: live ? `Lanyard: ${needs} need you, ${working} working` : 'Lanyard: no daemon' }
    item.backgroundColor = live && needs > 0 ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined
    item.command = live ? 'lanyard.needs.focus' : 'lanyard.reconnect'
    item.show()
  }
  draw()
  return vscode.Disposable.from(item, connection.onChange(draw), store.onChange(draw))
}
