// Two browsers on one session: who writes, and how it changes hands.
import type { Page } from '@playwright/test'

import { accessible, another, expect, openSession, picture, test } from './support/test'

test.use({ config: '[writer]\ndeny_ms = 60000\n' })

const composer = (page: Page) => page.getByRole('region', { name: 'Write to the session' })
const message = (page: Page) => page.getByLabel('Message to the agent', { exact: true })
const press = (page: Page, name: string): Promise<void> => composer(page).getByRole('button', { name, exact: true }).click()

test('S3-11 S3-14 S3-19 one writes alone, another is refused, takes over, and is kept out', async ({ page, daemon, browser }) => {
  const session = daemon.script('shared', '/say! hello')
  const second = await another(browser, daemon)
  await openSession(page, daemon, session)
  await openSession(second, daemon, session)
  await expect(page.getByText('2 watchers: you,')).toBeVisible()
  await expect(page.getByText('Anyone may write.').first()).toBeVisible()

  await press(page, 'Write alone')
  await expect(composer(page)).toContainText('You write alone.')
  await expect(composer(second)).toContainText('writes alone.')

  // The words of the other are refused, and stay.
  await message(second).fill('/say! from the second')
  await message(second).press('Enter')
  await expect(composer(second).getByRole('alert')).toContainText('writes alone here.')
  await expect(message(second)).toHaveValue('/say! from the second')
  await picture(second, 'session-writer-refused')

  // The one who writes is asked, and keeps it.
  await press(second, 'Take over')
  await expect(composer(second)).toContainText('Asked: it passes to you in')
  await expect(composer(page)).toContainText('wants to write.')
  await accessible(page)
  await picture(page, 'session-writer-asked')
  await press(page, 'Keep')
  await expect(second.getByText('keeps the right to write')).toBeVisible()
  await message(page).fill('/say! from the first')
  await message(page).press('Enter')
  await expect(second.getByText('from the first', { exact: true }).first()).toBeVisible()

  // Leaving gives it back, without a word to the agent.
  await page.getByRole('link', { name: 'Overview' }).click()
  await expect(composer(second)).toContainText('Anyone may write.')
  await message(second).press('Enter')
  await expect(message(second)).toHaveValue('')
  await expect(second.getByText('from the second', { exact: true }).first()).toBeVisible()
})

test('S3-14 a writer who is asked hands over, and lets go', async ({ page, daemon, browser }) => {
  const session = daemon.script('handed', '/say! hello')
  const second = await another(browser, daemon)
  await openSession(page, daemon, session)
  await openSession(second, daemon, session)
  await press(page, 'Write alone')
  await expect(composer(second)).toContainText('writes alone.')
  await press(second, 'Take over')
  await expect(composer(page)).toContainText('wants to write.')
  await press(page, 'Hand over')
  await expect(composer(second)).toContainText('You write alone.')
  await expect(composer(page)).toContainText('writes alone.')
  await message(second).fill('/say! mine now')
  await message(second).press('Enter')
  await expect(page.getByText('mine now', { exact: true }).first()).toBeVisible()
  await press(second, 'Release')
  await expect(composer(page)).toContainText('Anyone may write.')

  // A page that is closed does not keep it either.
  await press(page, 'Write alone')
  await expect(composer(second)).toContainText('writes alone.')
  // A page lets go of what it knows to hold.
  await expect(composer(page)).toContainText('You write alone.')
  await page.goto(daemon.at('/'))
  await expect(composer(second)).toContainText('Anyone may write.')
})
