import { flowConfig, flowThatAsks } from './support/flow-stage'
import { accessible, another, expect, fits, give, phone, picture, test } from './support/test'

const ASKS = '/ask-tool deploy Deploy the site to production?\n/say carried on'

test('a permission is given in place, and every browser says who gave it', async ({ page, browser, daemon }) => {
  const session = daemon.script('Ship it', ASKS)
  const other = await another(browser, daemon)
  await page.goto(daemon.at('/gates'))
  await other.goto(daemon.at('/gates'))
  const gate = page.getByRole('article', { name: 'Deploy the site to production?' })
  const elsewhere = other.getByRole('article', { name: 'Deploy the site to production?' })
  await expect(gate.getByRole('link', { name: 'Ship it' })).toHaveAttribute('href', `/sessions/${session}`)
  await expect(gate.getByRole('button', { name: /^\d?(Allow once|Always allow|Reject|Add words)$/ })).toHaveCount(4)
  await expect(elsewhere).toBeVisible()
  await accessible(page)
  await picture(page, 'gates-permission')

  // By keys alone: the first gate, its first answer.
  await expect(gate.locator('[data-choice]').first()).toBeEnabled()
  await page.keyboard.press('j')
  await expect(gate).toBeFocused()
  await page.keyboard.press('1')
  await expect(gate).toContainText('Allow once, by you')
  await expect(gate.locator('[data-choice]')).toHaveCount(0)
  await accessible(page)
  await picture(page, 'gates-settled')
  await expect(elsewhere).toContainText('Allow once, by')
  await expect(other.getByText('Nothing waits for you any more')).toBeVisible()
  await elsewhere.getByRole('button', { name: 'Dismiss', exact: true }).click()
  await expect(elsewhere).toHaveCount(0)
  await expect(other.getByText('Nothing waits for you', { exact: true })).toBeVisible()
  await expect.poll(() => daemon.run('logs', session)).toContain('permission: allow_once')
})

test('a gate that somebody answered meanwhile says so @firefox', async ({ page, daemon }) => {
  const session = daemon.script('Ship it', ASKS)
  await page.goto(daemon.at('/gates'))
  const gate = page.getByRole('article', { name: 'Deploy the site to production?' })
  const no = gate.getByRole('button', { name: 'Reject' })
  await expect(no).toBeEnabled()
  const id = await gate.getAttribute('data-gate')
  // The page learns of the answer only by being refused: the list comes late.
  let release = (): void => undefined
  const late = new Promise<void>((done) => (release = done))
  await page.route('**/api/v1/gates', async (route) => {
    await late
    await route.continue()
  })
  await daemon.api('POST', `/sessions/${session}/gates/${id ?? ''}`, { option: 'allow' })
  await no.click()
  await expect(page.getByText('Somebody answered it before')).toBeVisible()
  release()
  await expect(gate).toContainText('Allow once, by')
  await page.unrouteAll({ behavior: 'ignoreErrors' })
})

test('somebody who only looks sees the gate and cannot answer it', async ({ browser, daemon }) => {
  daemon.script('Ship it', ASKS)
  const page = await another(browser, daemon, true)
  await page.goto(daemon.at('/gates'))
  const gate = page.getByRole('article', { name: 'Deploy the site to production?' })
  await expect(gate.getByRole('button', { name: 'Allow once' })).toBeDisabled()
  await expect(gate.getByRole('button', { name: 'Add words' })).toHaveCount(0)
})

test.describe('flows', () => {
  test.use({ config: flowConfig() })

  test('S2-05 S2-07 a flow is answered by going on with its session, with words', async ({ page, daemon }) => {
    const { flow, stage } = await flowThatAsks(daemon)
    daemon.script('Ship it', ASKS)
    await page.goto(daemon.at('/gates'))
    const gate = page.getByRole('article', { name: 'The author needs a person: Which greeting?' })
    await expect(gate).toContainText('The page says Hello, the tests say Good day.')
    await expect(gate.getByRole('link', { name: 'Greetings 1.0' })).toHaveAttribute('href', `/flows/${flow}`)
    await expect(gate.getByText('1 session worked at it')).toBeVisible()
    await expect(page.getByRole('article', { name: 'Deploy the site to production?' })).toBeVisible()
    await accessible(page)
    await picture(page, 'gates')
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.reload()
    await expect(gate.getByText('1 session worked at it')).toBeVisible()
    await accessible(page)
    await picture(page, 'gates-dark')
    await phone(page)
    await picture(page, 'gates-phone')
    await fits(page)

    await gate.getByRole('textbox', { name: /Words for the agent/ }).fill('the page is right')
    await expect(gate.getByRole('button', { name: 'Override' })).toBeDisabled()
    await give(gate.getByRole('button', { name: 'Continue the session' }))
    await expect(gate).toContainText('Continue the session, by you')
    await stage.until<{ state: string }>(flow, (view) => view.state === 'completed')
    expect(daemon.run('flow', 'show', flow, '--log')).toContain('the page is right')
  })
})
