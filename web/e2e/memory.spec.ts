import { readFileSync } from 'node:fs'

import { accessible, another, expect, fits, phone, picture, test } from './support/test'

test('memory is added to, searched, read in full, taken along and forgotten', async ({ page, daemon }) => {
  await page.getByRole('link', { name: 'Memory' }).click()
  await expect(page.getByText('Nothing is remembered yet')).toBeVisible()

  await page.getByRole('button', { name: 'Add an entry' }).click()
  const add = page.getByRole('dialog', { name: 'Add an entry' })
  await add.getByLabel('Text').fill('The API speaks JSON only')
  await add.getByLabel('Workspace').fill('/home/you/shop')
  await add.getByRole('textbox', { name: 'Name' }).fill('api')
  await add.getByLabel('Tags').fill('design, api')
  await add.getByRole('button', { name: 'Remember it' }).click()
  await expect(add).toBeHidden()
  const entries = page.getByRole('list', { name: 'Entries' })
  await expect(entries.getByText('The API speaks JSON only')).toBeVisible()
  await expect(page.getByText('1 entry in long-term memory')).toBeVisible()

  const session = await daemon.api<{ session: string }>('POST', '/sessions', { title: 'Payments' })
  for (const text of ['Card numbers in tests end in 4242', 'Refunds are JSON too, and take a day']) {
    await daemon.api('POST', '/memory', { text, session: session.session, tags: ['dev_test'] })
  }
  await daemon.api('POST', '/memory', { text: `Evil \u202Etxt <script>alert(1)</script> ${'x'.repeat(5_000)}`, workspace: '/w', tags: ['retain'] })

  await page.getByRole('searchbox', { name: 'Search in memory' }).fill('json')
  await expect(page.getByText('2 entries found by words')).toBeVisible()
  await expect(entries.getByRole('listitem')).toHaveCount(2)
  await accessible(page)
  await picture(page, 'memory-search')

  await entries.getByRole('button', { name: 'Refunds are JSON too' }).click()
  const whole = page.getByRole('dialog', { name: 'An entry' })
  await expect(whole.getByRole('link', { name: 'Payments' })).toBeVisible()
  await expect(whole.getByText('version 1')).toBeVisible()
  await accessible(page)
  await picture(page, 'memory-entry')
  await whole.getByRole('button', { name: 'Forget', exact: true }).click()
  await whole.getByRole('button', { name: 'Forget it for good' }).click()
  await expect(page.getByText('1 entry found by words')).toBeVisible()

  await page.getByRole('searchbox', { name: 'Search in memory' }).fill('')
  await expect(entries.getByRole('listitem')).toHaveCount(3)
  await expect(entries.getByText('Evil ⟦RLO⟧txt <script>alert(1)</script>')).toBeVisible()
  await picture(page, 'memory')
  const exporting = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Export' }).click()
  const file = await (await exporting).path()
  expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(3)

  await expect(page.getByRole('button', { name: 'Forget these…' })).toBeDisabled()
  await page.getByRole('button', { name: 'More filters' }).click()
  await page.getByLabel('Tags').fill('dev_test')
  await expect(entries.getByRole('listitem')).toHaveCount(1)
  await page.getByRole('button', { name: 'Forget these…' }).click()
  const sure = page.getByRole('dialog', { name: 'Forget what is shown' })
  await expect(sure.getByText('Would forget 1 entry')).toBeVisible()
  await sure.getByRole('button', { name: 'Forget for good' }).click()
  await expect(page.getByText('Nothing fits')).toBeVisible()

  await page.getByLabel('File to import').setInputFiles({ name: 'memory.jsonl', mimeType: 'application/json', buffer: readFileSync(file) })
  await expect(page.getByRole('dialog', { name: 'The file was read' }).getByText('1 entry brought in, 2 were there already.')).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(entries.getByText('Card numbers in tests end in 4242')).toBeVisible()
})

test('S3-33 the governance panel edits mode, switch, tags and allow-list, and says what was refused', async ({ page, daemon, browser }) => {
  const make = async (body: unknown): Promise<string> => (await daemon.api<{ session: string }>('POST', '/sessions', body)).session
  const above = await make({ title: 'Payments', memory: { mode: 'full' } })
  const below = await make({ title: 'Refunds', parent: above })
  await page.goto(daemon.at(`/memory?session=${above}`))
  const form = page.getByRole('form', { name: 'What the session may remember' })
  await expect(form.getByRole('radio', { name: 'Full' })).toBeChecked()
  await expect(page.getByText('1 session, tightened with it when it is')).toBeVisible()

  await form.getByRole('radio', { name: 'Selective' }).check()
  await form.getByRole('switch', { name: 'Session memory' }).uncheck()
  await form.getByLabel('Tags on everything it writes').fill('dev_test')
  await form.getByLabel('Allow-list for long-term memory').fill('design api')
  await form.getByRole('button', { name: 'Set the policy' }).click()
  await expect(page.getByText('The policy is set')).toBeVisible()
  await expect(page.getByText('Selective · was Full')).toBeVisible()
  expect(await daemon.api('GET', `/sessions/${above}/memory-policy`)).toMatchObject({
    policy: { mode: 'selective', session_memory: false, tags: ['dev_test'], allow: ['api', 'design'] },
  })

  await expect(daemon.api('POST', '/memory', { session: above, scope: 'workspace', text: 'no such tag', tags: ['other'] })).rejects.toThrow('409')
  await expect(page.getByText('no tag was on the allow-list')).toBeVisible()
  await accessible(page)
  await picture(page, 'memory-governance')

  await page.getByRole('combobox', { name: 'Session' }).selectOption(below)
  await expect(form.getByRole('radio', { name: 'Selective' })).toBeChecked()
  await form.getByRole('radio', { name: 'Full' }).check()
  await form.getByRole('button', { name: 'Set the policy' }).click()
  await expect(form.getByRole('alert')).toContainText('memory')
  expect(await daemon.api('GET', `/sessions/${below}/memory-policy`)).toMatchObject({ policy: { mode: 'selective' } })
  await picture(page, 'memory-governance-refused')

  const observer = await another(browser, daemon, true)
  await observer.goto(daemon.at(`/memory?session=${above}`))
  await expect(observer.getByRole('radio', { name: 'Selective' })).toBeDisabled()
  await expect(observer.getByRole('button', { name: 'Set the policy' })).toBeHidden()
  await expect(observer.getByRole('button', { name: 'Add an entry' })).toBeHidden()
  await phone(observer)
  await observer.emulateMedia({ colorScheme: 'dark' })
  await accessible(observer)
  await picture(observer, 'memory-phone-dark')
  await fits(observer)
})
