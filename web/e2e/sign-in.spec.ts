import { expect } from '@playwright/test'

import { accessible, another, picture, signIn, test } from './support/test'

test('a link signs in once and leaves no trace in the address @firefox', async ({ page, daemon, browser }) => {
  const link = daemon.link()
  const other = await (await browser.newContext()).newPage()
  await other.goto(link)
  await expect(other).toHaveURL(daemon.at('/'))
  await expect(other.getByRole('navigation', { name: 'Pages' })).toBeVisible()

  const third = await (await browser.newContext()).newPage()
  await third.goto(link)
  await expect(third.getByRole('alert')).toContainText('lanyard open')
  expect(new URL(third.url()).hash).toBe('')
  expect(daemon.log()).not.toContain(new URL(link).hash.slice(1))
  await accessible(third)
  await picture(third, 'sign-in')

  // The cookie is not for scripts.
  expect(await page.evaluate(() => document.cookie)).toBe('')
})

test('signing out ends it here and in every stream', async ({ page, daemon }) => {
  await page.getByRole('button', { name: 'Sign out' }).click()
  await expect(page.getByText('This browser is not signed in')).toBeVisible()
  await page.goto(daemon.at('/gates'))
  await expect(page.getByText('This browser is not signed in')).toBeVisible()
})

test('an observer looks and is refused what changes something', async ({ daemon, browser }) => {
  const looker = await another(browser, daemon, true)
  await expect(looker.getByText('only looking')).toBeVisible()
  const status = await looker.evaluate(async () => {
    const response = await fetch('/api/v1/sessions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ title: 'x' }),
    })
    return response.status
  })
  expect(status).toBe(403)
})

test('no request leaves the machine, and nothing inline runs', async ({ browser, daemon }) => {
  const page = await (await browser.newContext()).newPage()
  const hosts = new Set<string>()
  page.on('request', (request) => hosts.add(new URL(request.url()).host))
  await signIn(page, daemon)
  for (const label of ['Inbox', 'Plans', 'Flows', 'Memory', 'Insight', 'Health', 'Audit', 'Agents']) {
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: label }).click()
    await expect(page.getByRole('heading', { level: 1, name: label, exact: true })).toBeVisible()
  }
  expect([...hosts]).toEqual([daemon.address])
  const ran = await page.evaluate(() => {
    const script = document.createElement('script')
    script.textContent = 'window.ranInline = true'
    document.body.append(script)
    return 'ranInline' in window
  })
  expect(ran).toBe(false)
})
