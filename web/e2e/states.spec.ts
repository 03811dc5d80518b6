// The one state of a session that a person acts on, and what was seen of it.
import type { Locator, Page } from '@playwright/test'

import { accessible, another, expect, openSession, picture, test } from './support/test'

const row = (page: Page, name: string): Locator => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })

test('FND-D2 a gate, a failure and a finished turn read as what they are, until somebody has seen them', async ({ page, browser, daemon }) => {
  const asks = daemon.script('asks', '/ask-tool rm rm -rf build?\n/say done')
  daemon.script('fails', '/error -32000 the disk is full')
  const done = daemon.script('finishes', '/say all done')
  daemon.script('works', '/wait-file never')
  await expect(row(page, 'asks')).toContainText('Needs answer')
  await expect(row(page, 'fails')).toContainText('Failed')
  await expect(row(page, 'finishes')).toContainText('Ready for review')
  await expect(row(page, 'finishes')).toContainText('new')
  await expect(row(page, 'works')).toContainText('Working')
  await expect(page.getByRole('treegrid')).not.toContainText(/executing|between turns/)
  await accessible(page)
  await picture(page, 'overview-states')

  const other = await another(browser, daemon)
  await openSession(other, daemon, done)
  await expect(other.getByRole('heading', { name: 'finishes' })).toBeVisible()
  await expect.poll(async () => (await daemon.api<{ unread?: boolean }>('GET', `/sessions/${done}`)).unread).toBe(false)
  await expect(row(page, 'finishes')).toContainText('Idle')
  await expect(row(page, 'finishes')).not.toContainText('new')
  await other.context().close()

  await openSession(page, daemon, asks)
  await expect(page.locator('header .name')).toContainText('Needs answer')
  await expect(page.locator('header .name')).not.toContainText('executing')
  await page.goto(daemon.at(`/sessions/${asks}/family`))
  await expect(page.locator('.kin').first()).toContainText('Needs answer')
})

test('FND-D17 a restart of the daemon makes nothing active', async ({ page, daemon }) => {
  const session = daemon.script('rests', '/say all done')
  await expect(row(page, 'rests')).toContainText('Ready for review')
  const before = await daemon.api<{ last_activity_at: string }>('GET', `/sessions/${session}`)
  await daemon.kill9()
  await daemon.start()
  await expect(page.getByText('Live', { exact: true }).first()).toBeVisible()
  await expect(row(page, 'rests')).toContainText('Ready for review')
  expect((await daemon.api<{ last_activity_at: string }>('GET', `/sessions/${session}`)).last_activity_at).toBe(before.last_activity_at)
})

test('FND-D12 a folder that is not there is named at its field, and one under the home is taken', async ({ page }) => {
  await page.getByRole('button', { name: 'New session' }).click()
  const dialog = page.getByRole('dialog', { name: 'New session' })
  await dialog.getByLabel('Agent').selectOption('demo')
  const folder = dialog.getByLabel('Folder it works in')
  await folder.fill('/no/such/folder')
  await dialog.getByRole('textbox', { name: 'What it should do', exact: true }).fill('/say hello')
  await dialog.getByRole('button', { name: 'Start' }).click()
  await expect(folder).toHaveAttribute('aria-invalid', 'true')
  await expect(dialog.getByRole('alert')).toContainText('/no/such/folder')
  await accessible(page)
  await picture(page, 'new-session-folder')
  await folder.fill('~/')
  await expect(dialog.getByRole('alert')).toHaveCount(0)
  await dialog.getByRole('button', { name: 'Start' }).click()
  await expect(page).toHaveURL(/\/sessions\/sess_/)
})
