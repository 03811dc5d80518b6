// What agents cost and did, what is left of budgets, where the time of a turn went, and health over time.
import { accessible, expect, fits, openSession, phone, picture, spotless, test } from './support/test'

const done = async (daemon: { api: <T>(method: string, route: string) => Promise<T> }, session: string): Promise<void> => {
  await expect.poll(async () => (await daemon.api<{ operator_state: string }>('GET', `/sessions/${session}`)).operator_state).not.toBe('working')
}

test.describe('with budgets', () => {
  test.use({ config: '[budgets]\nturn_usd = 2.0\nsession_usd = 1.0\nday_usd = 4.0\n' })

  test('insight shows what was used as a chart and a table, and what is left of budgets', async ({ page, daemon }) => {
    for (const [title, cents] of [['Fix the login', 60], ['Write the notes', 25]] as const) {
      await done(daemon, daemon.script(title, `/usage 1200 300\n/tool read {}\n/tool-fail bash no\n/cost ${cents}\n/say done`))
    }
    await page.getByRole('link', { name: 'Insight' }).click()
    await expect(page.getByRole('heading', { name: 'Insight', level: 1 })).toBeVisible()
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'demo' }) })
    await expect(row).toContainText('$0.85')
    await expect(page.getByRole('img', { name: /^Cost by day, .*: \$0\.85 in all/ })).toBeVisible()
    await expect(page.getByLabel('Sums of the range')).toContainText('4 tool calls, 2 failed')
    const left = page.getByRole('meter', { name: /Today/ })
    await expect(left).toHaveAttribute('aria-valuetext', '$0.85 of $4.00')
    await accessible(page)
    await picture(page, 'insight')

    // The choice is in the address, and a key moves it.
    await page.getByRole('radio', { name: 'Tokens' }).check({ force: true })
    await expect(page).toHaveURL(/of=tokens/)
    await expect(page.getByRole('img', { name: /^Tokens by day/ })).toBeVisible()
    await page.getByRole('radiogroup', { name: 'Group by' }).getByRole('radio', { name: 'Day' }).check({ force: true })
    await expect(page).toHaveURL(/by=day/)
    await expect(page.getByRole('rowheader')).toHaveCount(7)
    await page.getByRole('radiogroup', { name: 'Range' }).getByRole('radio', { name: 'A year' }).check({ force: true })
    await expect(page.getByRole('rowheader')).toHaveCount(365)

    await phone(page)
    await page.goto(daemon.at('/insight'))
    await expect(row).toContainText('$0.85')
    await page.emulateMedia({ colorScheme: 'dark' })
    await picture(page, 'insight-phone-dark')
    await fits(page)
    await spotless(page)
  })

  test('a spent budget is refused in words, and the session says what is left', async ({ page, daemon }) => {
    const session = daemon.script('Costly', '/cost 130\n/wait 60000')
    await expect.poll(async () => (await daemon.api<{ state: string }>('GET', `/sessions/${session}`)).state).toBe('interrupted')
    await openSession(page, daemon, session)
    await expect(page.getByText(/budget of \$1\.00 is spent: \$1\.30/).first()).toBeVisible()
    await page.getByLabel('Message to the agent', { exact: true }).fill('go on')
    await page.keyboard.press('Control+Enter')
    await expect(page.getByText(/session's budget of \$1\.00 is spent/i).last()).toBeVisible()
    await page.goto(daemon.at(`/sessions/${session}?tab=details`))
    await expect(page.getByRole('meter', { name: /This session/ })).toHaveAttribute('aria-valuetext', '$1.30 of $1.00')
    await page.goto(daemon.at('/inbox'))
    await expect(page.getByText("The session's budget is spent: $1.30 of $1.00")).toBeVisible()
    await page.goto(daemon.at('/settings'))
    await expect(page.getByText('Each session')).toBeVisible()
    await page.goto(daemon.at('/agents'))
    await expect(page.getByText('a turn may cost $2.00').first()).toBeVisible()
  })
})

test('where the time of a turn went is shown as a picture and as a table', async ({ page, daemon }) => {
  const session = daemon.script('Slow', '/tool read {"path":"a"}\n/wait 300\n/tool-fail bash npm test\n/wait 200\n/say done')
  await done(daemon, session)
  await openSession(page, daemon, session)
  const message = page.getByRole('article', { name: 'Message' }).first()
  await message.hover()
  await message.getByRole('button', { name: 'More for this message' }).click()
  await page.getByRole('menuitem', { name: 'Where the time went' }).click()
  const dialog = page.getByRole('dialog', { name: 'Where the time of this turn went' })
  await expect(dialog.getByRole('img')).toBeVisible()
  await expect(dialog.getByText('2 tool calls')).toBeVisible()
  await picture(page, 'waterfall')
  await dialog.getByRole('radio', { name: 'Table' }).check({ force: true })
  await expect(dialog.getByRole('row').filter({ hasText: 'bash' })).toContainText('failed')
  await spotless(page)
  await phone(page)
  await fits(page)
  await page.keyboard.press('Escape')
  await expect(dialog).toBeHidden()
})

test('health has a time axis, and the old address leads to it', async ({ page, daemon }) => {
  const { session } = await daemon.api<{ session: string }>('POST', '/sessions', { title: 'Lost' })
  for (let at = 0; at < 12; at += 1) await expect(daemon.api('GET', `/sessions/${session}/attach?after=99999`)).rejects.toThrow('seq_in_future')
  await page.goto(daemon.at('/continuity?hours=1'))
  await expect(page).toHaveURL(daemon.at('/health?hours=1'))
  const over = page.getByRole('region', { name: 'Over time' })
  await expect(over.getByRole('img', { name: /^Success rates from/ })).toBeVisible()
  await expect(over.getByRole('listitem').filter({ hasText: 'Continuity is degraded' }).first()).toBeVisible({ timeout: 30_000 })
  await over.getByText('The numbers').click()
  await expect(over.getByRole('row').filter({ hasText: '0 %' }).first()).toBeVisible()
  await spotless(page)
  await picture(page, 'health')
  await page.emulateMedia({ colorScheme: 'dark' })
  await phone(page)
  await picture(page, 'health-phone-dark')
  await fits(page)
})

test('Ctrl+K goes to the pages', async ({ page }) => {
  await expect(page.getByRole('heading', { name: 'Overview', level: 1 })).toBeVisible()
  await page.keyboard.press('Control+k')
  const name = page.getByRole('combobox', { name: 'Session or page' })
  await expect(name).toBeFocused()
  await name.fill('insi')
  await expect(page.getByRole('option', { name: /^Insight/, selected: true })).toBeVisible()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'Insight', level: 1 })).toBeVisible()
})
