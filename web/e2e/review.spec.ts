// The review loop on the page of a session: an agent changes a file, lines are commented on, the comments are sent as one
// message, and the agent's next turn has them.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Locator, Page } from '@playwright/test'

import { another, expect, fits, openSession, phone, picture, spotless, test } from './support/test'

function repository(folder: string): void {
  const git = (...words: string[]): string => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'commit.gpgsign=false', ...words], { cwd: folder, encoding: 'utf8' })
  writeFileSync(join(folder, 'notes.md'), '# Notes\none\ntwo\nthree\n')
  git('init', '-q', '-b', 'main')
  git('add', '.')
  git('commit', '-qm', 'first')
}

const rows = (page: Page, file: string): Locator => page.getByRole('grid', { name: `Changes of ${file}` })
const card = (page: Page, text: string): Locator => page.getByRole('article').filter({ hasText: text })

/** The number of a line, where a press begins a comment. */
const gutter = (page: Page, text: string): Locator => rows(page, 'notes.md').getByRole('row').filter({ hasText: text }).locator('.at').last()

async function changes(page: Page): Promise<void> {
  const link = page.getByRole('navigation', { name: 'Views of the session' }).getByRole('link', { name: /^Changes/ })
  await link.click()
  await expect(link).toHaveAttribute('aria-current', 'page')
}

test('S4-16 comments on changed lines are kept, sent once as one turn, and answered', async ({ page, daemon, browser }) => {
  repository(daemon.workspace)
  const session = daemon.script('Write notes', '/write notes.md # Notes\\none\\ntwo and a half\\nthree\\nfour\\nfive\\n\n/write src/deep/new.ts let a = 1\\n\n/say! written')
  await openSession(page, daemon, session)
  await expect(page.getByText('written').first()).toBeVisible()
  await changes(page)
  const tree = page.getByRole('navigation', { name: 'Changed files' })
  await expect(tree.getByText('0 of 2 viewed')).toBeVisible()
  await expect(tree.getByText('src/deep/')).toBeVisible()
  // Only the words that came are marked.
  await expect(rows(page, 'notes.md').locator('mark').first()).toHaveText(/and a half/)

  // One line by a press, a range by a drag.
  await gutter(page, 'two and a half').click()
  await page.getByLabel('Comment on line 3').fill('Why not three quarters?')
  await page.getByLabel('Comment on line 3').press('Control+Enter')
  await expect(card(page, 'Why not three quarters?')).toContainText('Draft')
  await gutter(page, 'four').hover()
  await page.mouse.down()
  await gutter(page, 'five').hover()
  await page.mouse.up()
  await page.getByLabel('Comment on lines 5 to 6').fill('/write notes.md # Title\\n# Notes\\none\\n2.75\\nthree\\nfour\\nfive\\n')
  await page.getByRole('button', { name: 'Keep as draft' }).click()
  // And one by the keyboard.
  await rows(page, 'src/deep/new.ts').focus()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByLabel('Comment on line 1').fill('A better name?')
  await page.getByLabel('Comment on line 1').press('Control+Enter')
  await expect(page.getByRole('button', { name: 'Send 3 comments' })).toBeVisible()
  await picture(page, 'review')
  await spotless(page)

  // Drafts are the daemon's: another screen has them, and so has this page when it is loaded again.
  const second = await another(browser, daemon)
  await openSession(second, daemon, session)
  await changes(second)
  await expect(second.getByRole('button', { name: 'Send 3 comments' })).toBeVisible()
  await card(second, 'A better name?').getByRole('button', { name: 'Remove' }).click()
  await expect(page.getByRole('button', { name: 'Send 2 comments' })).toBeVisible()
  await second.context().close()
  await page.reload()
  await expect(card(page, 'Why not three quarters?')).toContainText('Draft')

  await page.getByText('Side by side', { exact: true }).click()
  await expect(rows(page, 'notes.md').locator('.half.old').filter({ hasText: 'two' })).toBeVisible()
  await picture(page, 'review-split')
  await page.emulateMedia({ colorScheme: 'dark' })
  await spotless(page)
  await picture(page, 'review-dark')
  await page.emulateMedia({ colorScheme: 'light' })

  // A double press sends one message.
  await page.getByRole('button', { name: 'Send 2 comments' }).dblclick()
  await expect(page.getByText('Sent 2 comments')).toBeVisible()
  await expect(async () => {
    const { events } = await daemon.api<{ events: { type: string; data: { prompt?: string } }[] }>('GET', `/sessions/${session}/events?limit=1000`)
    const prompts = events.filter((event) => event.type === 'turn.started').map((event) => event.data.prompt ?? '')
    expect(prompts).toHaveLength(2)
    expect(prompts[1]).toContain('Review of your changes: 2 comments. Address each.\n\nnotes.md:3\n```\ntwo and a half\n```\nWhy not three quarters?')
    expect(prompts[1]).toContain('notes.md:5-6\n```\nfour\nfive\n```')
  }).toPass()

  // The turn did what was asked: one comment's lines changed, the other's moved.
  await page.getByLabel('Compare with').selectOption('session')
  await expect(card(page, 'Why not three quarters?')).toContainText('Answered by turn 2')
  await expect(card(page, 'Why not three quarters?')).toContainText('Changed since')
  await expect(card(page, '/write notes.md')).toContainText('Moved to lines 6–7')
  await picture(page, 'review-answered')
  await phone(page)
  await fits(page)
  await picture(page, 'review-phone')
})

test('a viewed file is folded, and is to be viewed again once it changed @firefox', async ({ page, daemon }) => {
  repository(daemon.workspace)
  const session = daemon.script('Write notes', '/write notes.md # Notes\\nchanged\\n\n/say! written')
  await openSession(page, daemon, session)
  await expect(page.getByText('written').first()).toBeVisible()
  await changes(page)
  const viewed = page.getByRole('checkbox', { name: 'Viewed notes.md' })
  await viewed.check()
  await expect(page.getByText('1 of 1 viewed')).toBeVisible()
  await expect(rows(page, 'notes.md')).toBeHidden()
  writeFileSync(join(daemon.workspace, 'notes.md'), '# Notes\nchanged again\n')
  await page.getByRole('button', { name: 'Compare again' }).click()
  await expect(page.getByText('0 of 1 viewed')).toBeVisible()
  await expect(viewed).not.toBeChecked()
})

test('an observer reads the review and has nothing to press', async ({ page, daemon, browser }) => {
  repository(daemon.workspace)
  const session = daemon.script('Write notes', '/write notes.md # Notes\\nchanged\\n\n/say! written')
  await openSession(page, daemon, session)
  await expect(page.getByText('written').first()).toBeVisible()
  await changes(page)
  await expect(rows(page, 'notes.md')).toBeVisible()
  daemon.run('review', 'add', session, 'notes.md:2', 'Look here')
  // It comes with the session's stream.
  await expect(card(page, 'Look here')).toBeVisible()
  const observer = await another(browser, daemon, true)
  await openSession(observer, daemon, session)
  await changes(observer)
  await expect(card(observer, 'Look here')).toBeVisible()
  await expect(observer.getByRole('button', { name: /Send|Remove|Edit/ })).toHaveCount(0)
  await expect(observer.getByRole('checkbox')).toHaveCount(0)
  await observer.context().close()
})
