// The same message to several agents in worktrees of their own, one of which is kept; and the end of a session's own worktree.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { expect, findings, openSession, phone, picture, test } from './support/test'

test.use({ config: '[daemon]\ndefault_agent = "demo"\n' })

function repository(folder: string): void {
  execFileSync('sh', ['-c', 'git init -q -b main . && git config user.name t && git config user.email t@t && echo one > kept.txt && git add . && git commit -qm first'], { cwd: folder })
}

test('a message goes to two agents, their changes stand beside each other, and one is kept @firefox', async ({ page, daemon }) => {
  repository(daemon.workspace)
  await page.getByRole('button', { name: 'New session' }).click()
  const dialog = page.getByRole('dialog', { name: 'New session' })
  await dialog.getByLabel('Folder it works in').fill(daemon.workspace)
  await dialog.getByRole('textbox', { name: /^What it should do/ }).fill('/edit new.txt from one of them\n/say! done')
  await dialog.getByRole('button', { name: 'Add an agent' }).click()
  await expect(dialog.getByLabel('Agent 2', { exact: true })).toHaveValue('demo')
  await dialog.getByRole('button', { name: 'Start 2 sessions' }).click()
  await expect(page).toHaveURL(/\/comparisons\/cmp_/)
  const panes = page.getByRole('group', { name: 'Sessions beside each other' }).locator('> section')
  await expect(panes).toHaveCount(2)
  for (const at of [0, 1]) await expect(panes.nth(at).getByText('Completed', { exact: true })).toBeVisible()
  await page.getByRole('radiogroup', { name: 'View' }).getByText('Changes').click()
  for (const at of [0, 1]) await expect(panes.nth(at).getByRole('group', { name: /^Changes of/ }).getByText('new.txt', { exact: true })).toBeVisible()
  expect(await findings(page)).toEqual([])
  await picture(page, 'comparison')

  // What would be lost is said, and agreed to, before anything is done.
  await panes.nth(0).getByRole('button', { name: /^Keep this one/ }).click()
  const keep = page.getByRole('dialog', { name: 'Keep demo' })
  await expect(keep.getByText('1 file is in no commit:')).toBeVisible()
  await expect(keep.getByText('Lanyard commits it first')).toBeVisible()
  await expect(keep.getByRole('button', { name: 'Keep this one' })).toBeDisabled()
  await picture(page, 'comparison-keep')
  await keep.getByRole('button', { name: 'Cancel' }).click()
  await expect(panes.nth(0).getByRole('button', { name: /^Keep this one/ })).toBeFocused()
  expect(existsSync(join(daemon.workspace, 'new.txt'))).toBe(false)
  await panes.nth(0).getByRole('button', { name: /^Keep this one/ }).click()
  await keep.getByLabel('Discard this unfinished work').check()
  await keep.getByRole('button', { name: 'Keep this one' }).click()
  await expect(page.getByText('Kept, and merged into main')).toBeVisible()
  await expect(panes.nth(0).getByText('kept', { exact: true })).toBeVisible()
  await expect(panes.nth(1).getByText('discarded', { exact: true })).toBeVisible()
  expect(existsSync(join(daemon.workspace, 'new.txt'))).toBe(true)
  await phone(page)
})

test('a session’s own branch is merged and discarded where its changes are', async ({ page, daemon }) => {
  repository(daemon.workspace)
  const session = daemon.script('Fix it', '/edit fixed.txt yes\n/say! done', '--worktree=fix')
  await openSession(page, daemon, session)
  await expect(page.getByText('Completed', { exact: true })).toBeVisible()
  await page.getByRole('link', { name: /^Changes/ }).click()
  const changes = page.getByRole('region', { name: 'Changes' })
  await changes.getByRole('button', { name: 'Merge', exact: true }).click()
  const merge = page.getByRole('dialog', { name: 'Merge this branch?' })
  await expect(merge.getByText('1 file of its worktree is in no commit')).toBeVisible()
  await merge.getByRole('button', { name: 'Commit and merge' }).click()
  await expect(changes.getByText('merged into main')).toBeVisible()
  expect(existsSync(join(daemon.workspace, 'fixed.txt'))).toBe(true)
  daemon.run('send', session, '/edit more.txt not yet\n/say! again')
  await changes.getByRole('button', { name: 'Discard' }).click()
  const discard = page.getByRole('dialog', { name: 'Discard this branch?' })
  await expect(discard.getByText('more.txt')).toBeVisible()
  // Work that is in no commit takes a word more.
  await expect(discard.getByRole('button', { name: 'Discard' })).toBeDisabled()
  await discard.getByRole('textbox').fill('discard')
  await discard.getByRole('button', { name: 'Discard' }).click()
  await expect(page.getByText('The branch is discarded and the session archived')).toBeVisible()
  await expect(changes.getByText('branch discarded')).toBeVisible()
})
