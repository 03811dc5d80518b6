// A link for somebody who looks at one session; other titles; where tokens are used from.
import { expect, findings, openSession, picture, test, watch } from './support/test'

test('a share link shows one session to another browser, and ends when it is revoked @firefox', async ({ page, daemon, browser }) => {
  const other = daemon.script('A secret of the house', '/say! not for them')
  const session = daemon.script('Fix the login', '/say! It works again.\n/wait-file go')
  await openSession(page, daemon, session)
  await page.getByRole('button', { name: 'More', exact: true }).click()
  await page.getByRole('menuitem', { name: /^Share…/ }).click()
  const dialog = page.getByRole('dialog', { name: 'Share this session' })
  await dialog.getByLabel('For', { exact: true }).fill('the reviewers')
  await dialog.getByLabel('Good for').selectOption({ label: 'an hour' })
  await dialog.getByRole('button', { name: 'Make a link' }).click()
  const link = await dialog.getByLabel('The link', { exact: true }).inputValue()
  await picture(page, 'share')

  const reader = await (await browser.newContext()).newPage()
  const errors: string[] = []
  watch(reader, errors)
  const refused: string[] = []
  reader.on('response', (response) => {
    if (response.status() >= 400) refused.push(`${response.status()} ${response.url()}`)
  })
  await reader.goto(link)
  await expect(reader).toHaveURL(daemon.at(`/sessions/${session}`))
  await expect(reader.getByText('It works again.', { exact: true })).toBeVisible()
  await expect(reader.getByText(/^Shared for reading until/)).toBeVisible()
  await expect(reader.getByRole('navigation', { name: 'Pages' })).toHaveCount(0)
  await expect(reader.getByRole('button', { name: 'Stop' })).toHaveCount(0)
  for (const view of ['Changes', 'Plan', 'Details']) await reader.getByRole('link', { name: new RegExp(`^${view}`) }).click()
  expect(await findings(reader)).toEqual([])
  await picture(reader, 'shared')
  // It goes on live, and leads nowhere else.
  daemon.touch('go')
  await reader.getByRole('link', { name: /^Chat/ }).click()
  await expect(reader.getByText('Completed', { exact: true })).toBeVisible()
  expect([refused, errors]).toEqual([[], []])
  await reader.goto(daemon.at('/inbox'))
  await expect(reader).toHaveURL(daemon.at(`/sessions/${session}`))
  await reader.goto(daemon.at(`/sessions/${other}`))
  await expect(reader.getByText('A share link shows one session')).toBeVisible()
  await expect(reader.getByText('not for them')).toHaveCount(0)
  await reader.goto(daemon.at(`/sessions/${session}`))
  await expect(reader.getByText('It works again.', { exact: true })).toBeVisible()

  await expect(dialog.getByText(/used/)).toBeVisible({ timeout: 30_000 })
  await dialog.getByRole('button', { name: 'Revoke the link of the reviewers' }).click()
  await expect(dialog.getByText('The link is revoked').or(page.getByText('The link is revoked'))).toBeVisible()
  await expect(reader.getByText('This browser is not signed in.')).toBeVisible()
})

test('an operator who opens a share link stays an operator', async ({ page, daemon }) => {
  const session = daemon.script('Fix the login', '/say! hello')
  const { url } = daemon.json<{ url: string }>('share', 'new', session)
  await page.goto(url)
  await expect(page).toHaveURL(daemon.at(`/sessions/${session}`))
  await expect(page.getByRole('navigation', { name: 'Pages' })).toBeAttached()
  await expect(page.getByRole('button', { name: 'More', exact: true })).toBeVisible()
})

test('FND-D18 a session is renamed, and tokens say from where they were used', async ({ page, daemon }) => {
  const session = daemon.script('An old name', '/say! hello')
  await openSession(page, daemon, session)
  await page.getByRole('button', { name: 'More', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Rename…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Rename the session' })
  await dialog.getByLabel('Title').fill('A better name')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('A better name')
  // The focus is where it was.
  await expect(page.getByRole('button', { name: 'More', exact: true })).toBeFocused()
  await page.goto(daemon.at('/'))
  await expect(page.getByRole('link', { name: 'A better name' })).toBeVisible()
  await page.goto(daemon.at('/agents'))
  const mine = page.getByRole('list', { name: 'Tokens' }).getByRole('listitem').filter({ hasText: 'this browser' })
  await expect(mine).toContainText(/\w+ on \w+/)
  await expect(mine).toContainText(/last used .* from a browser/)
})
