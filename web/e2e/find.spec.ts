// Finding in a transcript, from failed call to failed call, and what can be done at a turn.
import { execFileSync } from 'node:child_process'
import { readFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'

import type { Locator, Page } from '@playwright/test'

import { expect, fits, openSession, phone, picture, spotless, test } from './support/test'

const events = (page: Page): Locator => page.getByRole('group', { name: 'Events' })
const message = (page: Page): Locator => page.getByLabel('Message to the agent', { exact: true })
const marks = (page: Page): Promise<number> => page.evaluate(() => CSS.highlights.get('found')?.size ?? 0)

test('FND-D10 find goes from hit to hit, marks them, and looks into what is not loaded', async ({ page, daemon }) => {
  const steps = Array.from({ length: 700 }, (_, at) => `/tool step${at + 1} {"n":${at + 1}}`).join('\n')
  const session = daemon.script('A long way', `/say! the needle of the beginning\n${steps}\n/say! a needle, and another needle\n/say! nothing\n/think it was a needle`)
  await expect.poll(async () => (await daemon.api<{ operator_state: string }>('GET', `/sessions/${session}`)).operator_state).not.toBe('working')
  await openSession(page, daemon, session)
  const log = events(page)
  await expect(log.getByText('Completed', { exact: true })).toBeInViewport()

  await page.keyboard.press('/')
  await page.keyboard.type('NEEDLE')
  const find = page.getByRole('search')
  // The newest one is shown at once, a folded thought opened.
  await expect(find.getByRole('status')).toHaveText(/^2 of 2$/)
  await expect(log.locator('.thinking')).toHaveText('it was a needle')
  await expect.poll(() => marks(page)).toBe(3)
  await page.keyboard.press('Enter')
  await expect(find.getByRole('status')).toHaveText('1 of 2')
  await expect(log.getByText('a needle, and another needle')).toBeInViewport()
  // What is before the first loaded event is said, and looked through with the next press.
  await expect(find.getByRole('button', { name: /^Search before event [\d,]+$/ })).toBeVisible()
  await page.keyboard.press('Enter')
  await expect(log.getByText('the needle of the beginning', { exact: true })).toBeInViewport()
  // The message itself has the words too: the whole log was searched.
  await expect(find.getByRole('button', { name: /^Search before/ })).toBeHidden()
  await expect(find.getByRole('status')).toHaveText(/^\d of 4$/)
  await page.keyboard.press('Shift+Enter')
  await expect(log.getByText('a needle, and another needle')).toBeInViewport()
  await picture(page, 'find')
  await spotless(page)
  await find.getByRole('searchbox').fill('no such words')
  await expect(find.getByRole('status')).toHaveText('Not found')
  await phone(page)
  await spotless(page)
  await picture(page, 'find-phone')
  await find.getByRole('searchbox').press('Escape')
  await expect.poll(() => marks(page)).toBe(0)
  await expect(log).toBeFocused()
})

test('from failed call to failed call, also within a group of many', async ({ page, daemon }) => {
  const session = daemon.script('Probes', '/tool-fail fetch no route\n/say! and on\n/repeat 300 /tool probe {"n":1}\n/tool-fail probe it is down\n/repeat 300 /tool probe {"n":2}\n/say! done')
  await openSession(page, daemon, session)
  const log = events(page)
  await expect(log.getByText('Completed', { exact: true })).toBeInViewport()
  await page.keyboard.press('n')
  const failed = (text: string): Locator => log.locator('.tool.error').filter({ hasText: text }).getByRole('button', { expanded: true })
  const down = failed('it is down')
  await expect(down).toBeFocused()
  await expect(down).toBeInViewport()
  await expect(page.getByRole('button', { name: '2 failed: go to the one before' })).toBeVisible()
  await page.keyboard.press('n')
  await expect(failed('no route')).toBeFocused()
  await page.keyboard.press('Shift+N')
  await expect(down).toBeFocused()
})

test('a turn can be copied, forked with its message and taken back with its files', async ({ page, daemon, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  execFileSync('sh', ['-c', 'git init -q . && git -c user.name=t -c user.email=t@t commit -q --allow-empty -m first'], { cwd: daemon.workspace })
  const session = daemon.script('Edit', '/edit notes.md one\\n\n/say! wrote **one**')
  await openSession(page, daemon, session)
  const log = events(page)
  await expect(log.getByText('Completed', { exact: true })).toHaveCount(1)
  await message(page).fill('/edit notes.md two\\n')
  await message(page).press('Enter')
  await expect(log.getByText('Completed', { exact: true })).toHaveCount(2)
  const notes = join(daemon.workspace, 'notes.md')
  expect(readFileSync(notes, 'utf8')).toBe('two\n')

  await log.getByRole('article', { name: 'Agent', exact: true }).first().hover()
  await log.getByRole('button', { name: 'Copy the answer' }).first().click()
  await expect(page.getByText('Copied').first()).toBeVisible()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('wrote **one**')

  // Back to the files of the first turn's end; what would change is said first.
  const end = log.getByRole('article', { name: 'End of the turn' }).first()
  await end.getByRole('button', { name: 'More for this turn' }).click()
  await expect(page.getByRole('menu')).toBeInViewport({ ratio: 1 })
  await picture(page, 'turn-menu')
  await page.getByRole('menuitem', { name: /^Roll back files to here/ }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByText('1 file changes back:')).toBeVisible()
  await expect(dialog.getByRole('listitem')).toHaveText(/notes\.md \+1 −1/)
  await spotless(page)
  await picture(page, 'rollback')
  await dialog.getByRole('button', { name: 'Roll back' }).click()
  await expect(dialog).toBeHidden()
  await expect(end.getByRole('button', { name: 'More for this turn' })).toBeFocused()
  await expect.poll(() => readFileSync(notes, 'utf8')).toBe('one\n')

  // A fork before the first message, with the message to change, and the files of then.
  const first = log.getByRole('article', { name: 'Message', exact: true }).first()
  await first.getByRole('button', { name: 'More for this message' }).click()
  await page.getByRole('menuitem', { name: 'Show it as written' }).click()
  await expect(first.locator('pre')).toContainText('/say! wrote **one**')
  await first.getByRole('button', { name: 'More for this message' }).click()
  await page.getByRole('menuitem', { name: /^Fork before this message/ }).click()
  await dialog.getByRole('checkbox', { name: /^Roll back the files/ }).check()
  await picture(page, 'fork-before')
  await dialog.getByRole('button', { name: 'Fork', exact: true }).click()
  await expect(page).not.toHaveURL(new RegExp(session))
  await expect(message(page)).toHaveValue('/edit notes.md one\\n\n/say! wrote **one**')
  expect(existsSync(notes)).toBe(false)
  await phone(page)
  await fits(page)
})
