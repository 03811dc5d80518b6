// Restarts of the daemon and of the window, and addresses that stay valid over both.
import { resolve } from 'node:path'

import { expect, openWindow, picture, row, runCommand, tab, test } from './support/test'

const PROGRAM = process.env.LANYARD_BIN ?? resolve(import.meta.dirname, '../../../target/debug/lanyard')

interface Task {
  id: string
  session: string
  worker: string
  run: number
  state: string
}

test.use({ config: '[daemon]\ndefault_agent = "demo"\n' })

test('S0-55 S4-T3 the daemon is killed, and the views and the open session go on', async ({ window, daemon }) => {
  daemon.script('survivor', '/say! before\n/wait-file go\n/say! after the kill')
  await row(window, 'Sessions', /survivor/).click()
  const page = await tab(window)
  await expect(page.getByText('before', { exact: true }).first()).toBeVisible()
  await daemon.kill9()
  await expect(window.getByRole('button', { name: 'Lanyard: no daemon' })).toBeVisible()
  await expect(page.getByText('Reconnecting… the agent goes on')).toBeVisible()
  await picture(window, 'away')
  await daemon.start()
  await expect(window.getByRole('button', { name: /Lanyard: 0 need you, 1 working/ })).toBeVisible()
  await expect(page.getByText('Attached')).toBeVisible()
  daemon.touch('go')
  await expect(page.getByText('after the kill', { exact: true }).first()).toBeVisible()
  await expect(page.getByText('before', { exact: true })).toHaveCount(1)
  daemon.script('new', '/ask Still here?')
  await expect(row(window, 'Needs you', /Still here\?/)).toBeVisible()
})

test('S4-06 S4-11 S4-12 S4-14 a task keeps its address and its worker over a retry and a reload', async ({ window, daemon, server }) => {
  const { id } = await daemon.api<{ id: string }>('POST', '/tasks', { title: 'Finish the API', prompt: '/say! first run\n/error -32000 broken', workspace: daemon.workspace, deploy: true })
  const read = async (): Promise<Task> => daemon.api<Task>('GET', `/tasks/${id}`)
  await expect(async () => expect((await read()).worker).toMatch(/^worker_/)).toPass()
  const before = await read()
  await row(window, 'Plans and workers', /task Finish the API/).click()
  const page = await tab(window)
  await expect(page.getByText('first run').first()).toBeVisible()
  await expect(page.getByText(before.worker)).toBeVisible()
  await expect(async () => expect((await read()).state).toBe('failed')).toPass()
  await daemon.api('POST', `/tasks/${id}/retry`, {})
  await expect(async () => expect((await read()).run).toBe(before.run + 1)).toPass()
  const after = await read()
  expect(after.worker).toBe(before.worker)
  await expect(page.getByText(`run ${after.run}`)).toBeVisible()
  await row(window, 'Plans and workers', /task Finish the API/).locator('.monaco-tl-twistie').click()
  await row(window, 'Plans and workers', /worker Worker/).locator('.monaco-tl-twistie').click()
  await expect(row(window, 'Plans and workers', /run Run 2, current/)).toBeVisible()
  await picture(window, 'plans')
  // The tab is bound to the address of the task, which a new window knows.
  await window.reload()
  await openWindow(window, server, daemon)
  const again = await tab(window)
  await expect(again.getByText(after.worker)).toBeVisible()
  await expect(again.getByText('first run').first()).toBeVisible()
  await runCommand(window, 'View: Close All Editors')
})

test.describe('where the extension may start the daemon', () => {
  test.use({ config: '[daemon]\nlisten = "127.0.0.1:0"\n', settings: { 'lanyard.start': 'always', 'lanyard.program': PROGRAM } })

  test('S0-55 a daemon that ended is started again, and its sessions are there', async ({ window, daemon }) => {
    const session = daemon.script('kept', '/say! before\n/wait-file go')
    await expect(row(window, 'Sessions', /kept, working/)).toBeVisible()
    const before = daemon.json<{ pid: number }>('status').pid
    daemon.run('down')
    await expect(() => expect(daemon.json<{ pid: number }>('status').pid).not.toBe(before)).toPass()
    await expect(window.getByRole('button', { name: /Lanyard: 0 need you, 1 working/ })).toBeVisible()
    expect(daemon.json<{ id: string }>('show', session).id).toBe(session)
  })
})
