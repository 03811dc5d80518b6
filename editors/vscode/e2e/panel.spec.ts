// The panel of sessions in VS Code: what runs, what needs a person, and every control that reaches a running agent.
import { expect, picture, row, runCommand, tab, test } from './support/test'

/** A call whose answer Lanyard can put text in front of. */
const CALL = '/mcp lanyard memory_agent {"action":"list"}'

interface Row {
  id: string
  status: string
  children: Row[]
}

const live = { config: '[stop]\ngraceful_ms = 120000\n' }
test.use(live)

test('S0-51 S0-52 S0-55 sessions come and go by themselves, and an approval is answered in its row', async ({ window, daemon }) => {
  await expect(window.getByText('No active sessions.')).toBeVisible()
  await expect(window.getByText('Nothing needs you.')).toBeVisible()
  const session = daemon.script('fix the login', '/ask Run the tests?\n/wait-file go\n/say! thank you')
  const approval = row(window, 'Needs you', /Run the tests\?/)
  await expect(approval).toBeVisible()
  await expect(row(window, 'Sessions', /fix the login, needs answer · demo · \d+ s/)).toBeVisible()
  await expect(window.getByRole('tab', { name: /^Lanyard - 1 needs you/ }).first()).toBeVisible()
  await expect(window.getByRole('button', { name: /Lanyard: 1 need you, 0 working/ })).toBeVisible()
  await approval.hover()
  await picture(window, 'needs-you')
  await approval.getByRole('button', { name: 'Allow' }).click()
  await expect(window.getByText('Nothing needs you.')).toBeVisible()
  await expect(row(window, 'Sessions', /fix the login, working/)).toBeVisible()
  const { gates } = await daemon.api<{ gates: { answered?: { option?: string }; status: { name: string } }[] }>('GET', `/sessions/${session}/gates`)
  expect(JSON.stringify(gates)).toContain('allow_once')
  daemon.touch('go')
  daemon.script('second', '/ask Push it?\n/say! no then')
  const second = row(window, 'Needs you', /Push it\?/)
  await second.hover()
  await second.getByRole('button', { name: 'Deny' }).click()
  await expect(window.getByText('Push it?')).toHaveCount(0)
})

test('S0-45 S0-53 S0-54 guidance from its tab is delivered to a running agent, then acknowledged', async ({ window, daemon }) => {
  daemon.script('guide me', `/say! reading\n${CALL}\n/wait-file go\n${CALL}\n/wait-file on\n${CALL}\n/wait-file never`)
  await row(window, 'Sessions', /guide me/).click()
  const page = await tab(window)
  await expect(page.getByText('Attached')).toBeVisible()
  await expect(page.getByText('reading').first()).toBeVisible()
  await page.locator('label', { hasText: /^Guide/ }).click()
  const box = page.getByLabel('Guidance for the running agent')
  await box.fill('look at the tests first')
  await box.press('Enter')
  const note = page.getByRole('list', { name: 'Guidance', exact: true }).getByRole('listitem').filter({ hasText: 'look at the tests first' })
  await expect(note).toBeVisible()
  daemon.touch('go')
  await expect(note).toContainText('delivered')
  await picture(window, 'guidance')
  daemon.touch('on')
  await expect(note).toContainText('acknowledged')
  // Detached, the agent goes on; attached again, everything is there.
  await page.getByRole('button', { name: 'Detach' }).click()
  await expect(page.getByText('Detached; the agent goes on')).toBeVisible()
  await page.getByRole('button', { name: 'Attach', exact: true }).click()
  await expect(page.getByText('Attached')).toBeVisible()
  await expect(page.getByText('reading').first()).toBeVisible()
})

test('S0-43 S0-53 S0-54 a family is stopped from the tree, and its tab shows the receipt', async ({ window, daemon }) => {
  const hub = daemon.script('hub', `${CALL}\n/spawn scout /say up ; /wait-file never\n/spawn digger /say up ; /wait-file never\n/say! both run\n/wait-file never`)
  await expect(row(window, 'Sessions', /scout/)).toBeVisible()
  const parent = row(window, 'Sessions', /hub/)
  await expect(parent).toHaveAttribute('aria-expanded', 'true')
  await parent.hover()
  await picture(window, 'family')
  await parent.getByRole('button', { name: 'Stop…' }).click()
  await window.getByRole('option', { name: /Stop the whole family/ }).click()
  const page = await tab(window)
  const receipt = page.getByRole('region', { name: 'Stop', exact: true })
  await expect(receipt).toContainText('asked for level 1, the subtree')
  await expect(row(window, 'Sessions', /hub, stopping, level 1/)).toBeVisible()
  await picture(window, 'stop')
  // A second press raises the level.
  await page.getByRole('button', { name: 'Stop harder', exact: true }).first().click()
  await expect(receipt).toContainText('raised to level 2')
  await expect(receipt).toContainText('2 of 2')
  await expect(window.getByText('No active sessions.')).toBeVisible()
  const tree = await daemon.api<Row>('GET', `/sessions/${hub}/tree`)
  expect([tree, ...tree.children].map((one) => one.status)).toEqual(['stopped', 'stopped', 'stopped'])
  await picture(window, 'stopped')
})

test.describe('with a token that only reads', () => {
  test('S0-54 an observer sees everything and is offered nothing that changes', async ({ daemon, page, observe }) => {
    daemon.script('watched', '/ask May I?\n/say! thank you')
    await observe()
    await expect(row(page, 'Needs you', /May I\?/)).toBeVisible()
    await row(page, 'Needs you', /May I\?/).hover()
    await expect(page.getByRole('button', { name: 'Allow' })).toHaveCount(0)
    await row(page, 'Sessions', /watched/).hover()
    await expect(page.getByRole('button', { name: 'Stop…' })).toHaveCount(0)
    await row(page, 'Sessions', /watched/).click()
    const shown = await tab(page)
    await expect(shown.getByText(/May I\?/).first()).toBeVisible()
    await expect(shown.getByRole('button', { name: 'Stop', exact: true })).toHaveCount(0)
    await expect(shown.getByLabel('Message to the agent')).toHaveCount(0)
    await runCommand(page, 'Lanyard: Forget Token')
    await expect(page.getByText('The token is missing or was revoked.')).toBeVisible()
  })
})
