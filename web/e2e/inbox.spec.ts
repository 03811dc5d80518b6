// The inbox: what waits in one list, with buttons and keys that act, and a count that is seen from other tabs.
import type { Page } from '@playwright/test'

import { accessible, another, expect, fits, give, phone, picture, test } from './support/test'

const lines = (page: Page) => page.getByRole('list', { name: 'Waiting' }).locator('> li')
const line = (page: Page, text: string) => lines(page).filter({ hasText: text })

test('FND-D13 what waits is in one list with buttons that act, and no command of a terminal', async ({ page, daemon }) => {
  daemon.script('Deploy', '/ask-tool deploy Deploy the site?\n/say! deployed')
  await expect.poll(async () => (await daemon.api<{ gates: unknown[] }>('GET', '/gates')).gates.length).toBe(1)
  const finished = daemon.script('Write the notes', '/say! The notes are written.')
  daemon.script('Build', '/error -32000 no space is left')
  const sidebar = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: /^Inbox/ })
  await expect(sidebar).toContainText('3')
  await expect(page).toHaveTitle('(3) Overview · Lanyard')
  await expect(page.locator('link[rel=icon]')).toHaveAttribute('href', '/icon-waiting.svg')
  await sidebar.click()
  await expect(lines(page)).toHaveCount(3)
  // A gate stands once, whatever tells of it.
  await expect(line(page, 'Deploy the site?')).toHaveCount(1)
  await expect(page.locator('main')).not.toContainText('lanyard ')
  await expect(line(page, 'Write the notes')).toContainText('The notes are written.')
  await accessible(page)
  await picture(page, 'inbox')

  await give(line(page, 'Deploy the site?').getByRole('button', { name: 'Allow once' }))
  await expect(line(page, 'Deploy the site?')).toContainText('Allow once, by you')
  await line(page, 'Write the notes').getByRole('button', { name: 'Done' }).click()
  await expect(line(page, 'Write the notes')).toHaveCount(0)
  expect((await daemon.api<{ unread: boolean }>('GET', `/sessions/${finished}`)).unread).toBe(false)
  await line(page, 'Build').getByRole('button', { name: 'Snooze for an hour' }).click()
  await expect(line(page, 'Build')).toHaveCount(0)
  // On the overview too.
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Overview' }).click()
  await expect(page.getByRole('region', { name: 'Needs you' }).getByText('Build', { exact: true })).toHaveCount(0)
  await phone(page)
  await page.goto(daemon.at('/inbox'))
  await fits(page)
  await accessible(page)
  await picture(page, 'inbox-phone')
})

test('FND-D13 the inbox goes by keys: j k e h enter, and a number answers', async ({ page, daemon }) => {
  daemon.script('Deploy', '/ask-tool deploy Deploy the site?\n/say! deployed\n/wait-file never')
  await expect.poll(async () => (await daemon.api<{ gates: unknown[] }>('GET', '/gates')).gates.length).toBe(1)
  for (const [name, step] of [['first done', '/say! ready'], ['then failed', '/error -32000 no space is left']] as const) {
    const session = daemon.script(name, step)
    await expect.poll(async () => (await daemon.api<{ unread: boolean }>('GET', `/sessions/${session}`)).unread).toBe(true)
  }
  await page.goto(daemon.at('/inbox'))
  await expect(lines(page)).toHaveCount(3)
  const gate = page.getByRole('article', { name: 'Deploy the site?' })
  await expect(gate.locator('[data-choice]').first()).not.toHaveAttribute('aria-disabled', 'true')
  await page.keyboard.press('j')
  await expect(gate).toBeFocused()
  await page.keyboard.press('e')
  await expect(page.getByText('This one is not done with a press')).toBeVisible()
  await page.keyboard.press('1')
  await expect(gate).toContainText('Allow once, by you')
  await page.keyboard.press('j')
  await expect(page.getByRole('article', { name: 'first done' })).toBeFocused()
  await page.keyboard.press('k')
  await page.keyboard.press('j')
  await page.keyboard.press('e')
  await expect(line(page, 'first done')).toHaveCount(0)
  await expect(page.getByRole('article', { name: 'then failed' })).toBeFocused()
  // The notification that is snoozed may come a moment after the row.
  await expect(line(page, 'then failed').getByRole('button', { name: 'Snooze for an hour' })).toBeVisible()
  await page.keyboard.press('h')
  await expect(line(page, 'then failed')).toHaveCount(0)
  await page.keyboard.press('j')
  await expect(gate).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/\/sessions\/sess_/)
})

test('FND-D13 a browser notification comes once, whatever the number of tabs, and none while somebody looks', async ({ page, context, daemon }) => {
  await context.grantPermissions(['notifications'], { origin: `http://${daemon.address}` })
  // What is shown is counted in the storage that the tabs share.
  await context.addInitScript(() => {
    class Counted {
      static permission = 'granted'
      static requestPermission = (): Promise<string> => Promise.resolve('granted')
      onclick: (() => void) | null = null
      constructor(title: string) {
        localStorage.setItem('shown', JSON.stringify([...(JSON.parse(localStorage.getItem('shown') ?? '[]') as string[]), title]))
      }
      close(): void {
        this.onclick = null
      }
    }
    Object.defineProperty(window, 'Notification', { value: Counted })
    // Nobody looks unless the test says so.
    Object.defineProperty(document, 'hasFocus', { value: () => localStorage.getItem('looks') === 'yes' })
  })
  const second = await context.newPage()
  for (const one of [page, second]) {
    await one.goto(daemon.at('/inbox'))
    await expect(one.getByText('Nothing waits for you')).toBeVisible()
  }
  const looked = (): Promise<number> => page.evaluate(() => Date.now() - Number(localStorage.getItem('lanyard.looked') ?? 0))
  await expect.poll(looked).toBeGreaterThan(2_000)
  const shown = (): Promise<string[]> => page.evaluate(() => JSON.parse(localStorage.getItem('shown') ?? '[]') as string[])
  daemon.script('Deploy', '/ask-tool deploy Deploy the site?')
  await expect(lines(page)).toHaveCount(1)
  await expect(lines(second)).toHaveCount(1)
  await expect.poll(shown).toEqual(['Approval: Deploy the site?'])
  await page.evaluate(() => localStorage.setItem('looks', 'yes'))
  await expect.poll(looked).toBeLessThan(1_500)
  daemon.script('Migrate', '/ask-tool migrate Migrate the data?')
  await expect(lines(page)).toHaveCount(2)
  await expect(lines(second)).toHaveCount(2)
  expect(await shown()).toEqual(['Approval: Deploy the site?'])
})

test('FND-D13 an observer reads the inbox and changes nothing', async ({ browser, daemon }) => {
  daemon.script('Write the notes', '/say! The notes are written.')
  const page = await another(browser, daemon, true)
  await page.goto(daemon.at('/inbox'))
  await expect(line(page, 'Write the notes').getByRole('button')).toHaveText(['Review'])
})
