// Changes of a session in the diff editor, and comments on them as one message to the agent.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Page } from '@playwright/test'

import { expect, openWindow, picture, row, runCommand, tab, test } from './support/test'

function repository(folder: string): void {
  const git = (...words: string[]): string => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'commit.gpgsign=false', ...words], { cwd: folder, encoding: 'utf8' })
  writeFileSync(join(folder, 'notes.txt'), 'one\ntwo\nthree\n')
  git('init', '-q', '-b', 'main')
  git('add', '.')
  git('commit', '-qm', 'first')
}

/** Comments on a line of the side after the change, by the keyboard. */
async function comment(window: Page, line: string, text: string): Promise<void> {
  await window.locator('.view-lines').getByText(line, { exact: true }).last().click()
  await runCommand(window, 'Comments: Add Comment on Current Selection')
  await expect(window.locator('.review-widget .comment-form .monaco-editor.focused')).toBeVisible()
  await window.keyboard.type(text)
  await window.getByRole('button', { name: 'Add to the Review' }).last().click()
  await expect(window.locator('.review-comment').filter({ hasText: text })).toBeVisible()
}

test('S0-54 changes are reviewed in the diff editor, and the comment arrives as a turn', async ({ window, daemon, server }) => {
  repository(daemon.workspace)
  const session = daemon.script('edits', '/edit notes.txt one\\ntwo and a half\\nthree\\nfour\\n\n/say! edited')
  await row(window, 'Sessions', /edits, ready for review/).click()
  const page = await tab(window)
  await expect(page.getByText('edited').first()).toBeVisible()
  await page.getByRole('button', { name: 'Changes' }).click()
  await expect(window.getByRole('tab', { name: /notes\.txt/ })).toBeVisible()
  await expect(window.getByText('two and a half').first()).toBeVisible()
  await comment(window, 'two and a half', 'why not three quarters?')
  await picture(window, 'review')
  // A window that is loaded again still has the comment.
  await window.reload()
  await openWindow(window, server, daemon)
  await (await tab(window)).getByRole('button', { name: 'Changes' }).click()
  await expect(window.locator('.review-comment').filter({ hasText: 'why not three quarters?' })).toBeVisible()
  await runCommand(window, 'Lanyard: Send the Review')
  await expect(window.getByText('The review was sent.', { exact: true })).toBeVisible()
  await expect(window.locator('.review-comment')).toHaveCount(0)
  await expect(async () => {
    const { events } = await daemon.api<{ events: { type: string; data: { prompt?: string } }[] }>('GET', `/sessions/${session}/events?limit=1000`)
    const prompts = events.filter((event) => event.type === 'turn.started').map((event) => event.data.prompt ?? '')
    expect(prompts).toHaveLength(2)
    expect(prompts[1]).toContain('notes.txt:2\n```\ntwo and a half\n```\nwhy not three quarters?')
  }).toPass()
})

test.describe('several files, in light colours', () => {
  test.use({ settings: { 'workbench.colorTheme': 'Default Light Modern' } })

  test('S0-54 all files of a session open in one editor, and one without changes says so', async ({ window, daemon }) => {
    repository(daemon.workspace)
    daemon.script('edits', '/edit notes.txt one\\n2\\nthree\\n\n/edit new.txt hello\\n\n/say! edited')
    await expect(row(window, 'Sessions', /edits, ready for review/)).toBeVisible()
    const edits = row(window, 'Sessions', /edits/)
    await edits.hover()
    await picture(window, 'light')
    await edits.click()
    const page = await tab(window)
    await expect(page.getByText('edited').first()).toBeVisible()
    await picture(window, 'light-session')
    await page.getByRole('button', { name: 'Changes' }).click()
    await window.getByRole('option', { name: /All 2 files/ }).click()
    await expect(window.getByRole('tab', { name: /Changes: edits/ })).toBeVisible()
    await expect(window.getByText('hello').first()).toBeVisible()
    await expect(window.getByText('new.txt').first()).toBeVisible()
    await picture(window, 'light-changes')
    await edits.click()
    await (await tab(window)).getByRole('button', { name: 'Changes' }).click()
    await window.getByRole('option', { name: /new\.txt/ }).click()
    await expect(window.getByRole('tab', { name: /new\.txt/ })).toBeVisible()
    await comment(window, 'hello', 'say it twice')
    await runCommand(window, 'Lanyard: Discard the Review')
    await expect(window.locator('.review-comment')).toHaveCount(0)
    daemon.script('talks', '/say! nothing to do')
    await row(window, 'Sessions', /talks/).click()
    await expect(async () => (await tab(window)).getByText('nothing to do').first().waitFor({ timeout: 1_000 })).toPass()
    await (await tab(window)).getByRole('button', { name: 'Changes' }).click()
    await expect(window.getByText('Nothing changed.', { exact: true })).toBeVisible()
  })
})

// S4-09: a background worker acts in its worktree; its work is reviewed from the task.
test('S4-09 S4-16 a review of a task reaches the session that its worker has now', async ({ window, daemon }) => {
  repository(daemon.workspace)
  const { id } = await daemon.api<{ id: string }>('POST', '/tasks', { title: 'Finish the API', agent: 'demo', prompt: '/edit notes.txt one\\nsecond\\nthree\\n\n/say! edited\n/wait-file never', workspace: daemon.workspace, deploy: true })
  const task = row(window, 'Plans and workers', /task Finish the API, running/)
  await expect(task).toBeVisible()
  await expect(async () => expect((await daemon.api<{ files: unknown[] }>('GET', `/tasks/${id}/diff`)).files).toHaveLength(1)).toPass()
  await task.click({ button: 'right' })
  await window.getByRole('menuitem', { name: 'Show Changes' }).click()
  await expect(window.getByRole('tab', { name: /notes\.txt/ })).toBeVisible()
  await comment(window, 'second', 'three words')
  await runCommand(window, 'Lanyard: Send the Review')
  await expect(window.getByText('The review was sent.', { exact: true })).toBeVisible()
  const { session } = await daemon.api<{ session: string }>('GET', `/tasks/${id}`)
  const inbox = await daemon.api<unknown>('GET', `/sessions/${session}/inbox`)
  expect(JSON.stringify(inbox)).toContain('notes.txt:2\\n```\\nsecond\\n```\\nthree words')
})
