// Models, modes and commands: picked for a new session and in the composer, and not shown where nothing is offered.
import { expect, give, test } from './support/test'

interface Detail {
  choice: { model?: string; mode?: string }
  turns: number
}

test('a model is picked for a new session, changed in the composer, and a command completed', async ({ page, daemon }) => {
  daemon.offer('picky', ['--models', 'small,large', '--modes', 'ask,yolo', '--commands', 'say,choices'])
  await expect.poll(async () => (await daemon.api<{ works: boolean }>('POST', '/agents/picky/check', {})).works).toBe(true)
  await page.goto(daemon.at('/'))
  await page.getByRole('button', { name: 'New session' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'New session' })
  await dialog.getByRole('combobox', { name: /^Agent/ }).selectOption('picky')
  await dialog.getByLabel('Model', { exact: true }).selectOption('large')
  await expect(dialog.getByLabel(/^Effort/)).toBeDisabled()
  await dialog.getByLabel('Folder it works in').fill(daemon.workspace)
  await dialog.getByRole('textbox', { name: 'What it should do', exact: true }).fill('/choices')
  await give(dialog.getByRole('button', { name: 'Start' }))
  await expect(page.getByText('model=large mode=ask')).toBeVisible()

  const composer = page.getByRole('region', { name: 'Write to the session' })
  await composer.getByLabel('Mode', { exact: true }).selectOption('yolo')
  await expect(composer.getByText('asks for no approvals')).toBeVisible()
  const session = page.url().split('/').at(-1) ?? ''
  await expect.poll(async () => (await daemon.api<Detail>('GET', `/sessions/${session}`)).choice).toEqual({ model: 'large', mode: 'yolo' })
  const message = composer.getByLabel('Message to the agent')
  await message.fill('/cho')
  await message.press('Tab')
  await expect(message).toHaveValue('/choices ')
  await message.press('Enter')
  await expect(page.getByText('model=large mode=yolo')).toBeVisible()
})
