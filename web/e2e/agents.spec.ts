import { accessible, expect, fits, phone, picture, test, watch } from './support/test'

test.use({ config: '[agents.broken]\ndriver = "acp"\ncommand = ["/nowhere/agent"]\n\n[mcp.files]\ncommand = ["/nowhere/server"]\n' })

test('agents and servers are checked, and what does not work says what helps', async ({ page }) => {
  await page.getByRole('link', { name: 'Agents' }).click()
  const agents = page.getByRole('list', { name: 'Agents' })
  const demo = agents.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'demo' }) })
  await demo.getByRole('button', { name: 'Check demo' }).click()
  await expect(demo.getByText('works', { exact: true })).toBeVisible()
  await expect(demo.getByText(/says it is lanyard-scripted, speaks acp 1/)).toBeVisible()
  await expect(page.getByRole('list', { name: 'What demo can do' }).getByText('resume: yes')).toBeAttached()
  const broken = agents.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'broken' }) })
  await expect(broken.getByText('not found')).toBeVisible()
  await broken.getByRole('button', { name: 'Check broken' }).click()
  await expect(broken.getByRole('alert')).toContainText('correct its `command` in the config')
  await page.getByRole('button', { name: 'Check lanyard' }).click()
  await expect(page.getByText(/^\d+ tools · lanyard/)).toBeVisible()
  await page.getByRole('button', { name: 'Check files' }).click()
  await expect(page.getByRole('region', { name: 'MCP servers' }).getByRole('alert')).toBeVisible()
  await accessible(page)
  await picture(page, 'agents')
  await phone(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  await picture(page, 'agents-phone-dark')
  await fits(page)
})

test('a link lets somebody look on, and tokens are made and revoked', async ({ page, daemon, browser }) => {
  await page.getByRole('link', { name: 'Agents' }).click()
  await page.getByRole('button', { name: 'Link for an observer' }).click()
  const url = await page.getByRole('textbox', { name: 'The link' }).inputValue()
  await accessible(page)
  await picture(page, 'agents-link')
  await page.keyboard.press('Escape')

  const errors: string[] = []
  const observer = await (await browser.newContext()).newPage()
  watch(observer, errors)
  await observer.goto(url)
  await expect(observer.getByText('only looking')).toBeVisible()
  await observer.goto(daemon.at('/agents'))
  await expect(observer.getByRole('button', { name: 'Check demo' })).toBeDisabled()
  await expect(observer.getByRole('button', { name: 'New token' })).toBeHidden()

  await page.getByRole('button', { name: 'New token' }).click()
  const dialog = page.getByRole('dialog', { name: 'New token' })
  await dialog.getByLabel('Name').fill('prometheus')
  await dialog.getByRole('button', { name: 'Make it' }).click()
  const token = await page.getByRole('textbox', { name: 'The token' }).inputValue()
  const scrape = async (): Promise<number> => (await fetch(daemon.at('/metrics'), { headers: { authorization: `Bearer ${token}` } })).status
  expect(await scrape()).toBe(200)
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('button', { name: 'Revoke prometheus' }).click()
  await page.getByRole('dialog', { name: 'Revoke prometheus' }).getByRole('button', { name: 'Revoke', exact: true }).click()
  await expect(page.getByRole('button', { name: 'Revoke prometheus' })).toBeHidden()
  expect(await scrape()).toBe(401)

  // The observer's browser is signed out as soon as its token goes.
  await page.getByRole('button', { name: 'Revoke observer' }).click()
  await page.getByRole('dialog', { name: 'Revoke observer' }).getByRole('button', { name: 'Revoke', exact: true }).click()
  await expect(observer.getByRole('navigation', { name: 'Pages' })).toBeHidden()
  expect(errors).toEqual([])
})
