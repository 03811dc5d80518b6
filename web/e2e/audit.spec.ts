import { readFileSync } from 'node:fs'

import { accessible, expect, fits, phone, picture, test } from './support/test'

test('the audit tells who guided, answered and stopped what, and can be saved', async ({ page, daemon }) => {
  const pay = daemon.script('Payments', '/ask May I go on?\n/wait-file never')
  const scan = daemon.script('Scanner', '/wait-file never')
  await page.getByRole('link', { name: 'Audit' }).click()
  // The link that signed this browser in is a change.
  await expect(page.getByRole('heading', { name: 'Audit' })).toBeVisible()
  await expect(page.getByText('local told Payments')).toBeHidden()

  daemon.run('guide', pay, 'Use tabs, not spaces')
  daemon.run('stop', scan, '--reason', 'enough for today')
  await expect(async () => {
    const { gates } = await daemon.api<{ gates: { id: string }[] }>('GET', '/gates')
    expect(gates).toHaveLength(1)
    daemon.run('answer', gates[0]?.id ?? '', 'allow')
  }).toPass()
  await page.getByRole('button', { name: 'Refresh' }).click()
  await expect(page.getByText('local told Payments')).toBeVisible()
  await expect(page.getByText('Use tabs, not spaces')).toBeVisible()
  await expect(page.getByText('local asked Scanner to stop · level 1, asked')).toBeVisible()
  await expect(page.getByText('enough for today').first()).toBeVisible()
  await expect(page.getByText(/local answered “allow.*” to an approval of Payments/)).toBeVisible()
  // It ends a while after it was asked to; the page asks again by itself.
  await expect(page.getByText('Scanner was stopped')).toBeVisible({ timeout: 45_000 })
  await accessible(page)
  await picture(page, 'audit')

  await page.getByRole('radio', { name: 'Guidance' }).check({ force: true })
  await expect(page.getByText('Scanner was stopped')).toBeHidden()
  await expect(page.getByText('local told Payments')).toBeVisible()
  const saving = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Save as JSON' }).click()
  const saved = JSON.parse(readFileSync(await (await saving).path(), 'utf8')) as { kind: string }[]
  expect(new Set(saved.map((entry) => entry.kind))).toEqual(new Set(['guidance']))

  await page.getByRole('combobox', { name: 'Session' }).selectOption(scan)
  await expect(page.getByText('Nobody stopped, guided, answered or changed anything here')).toBeVisible()
  await page.getByRole('radio', { name: 'Stops' }).check({ force: true })
  await phone(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  await expect(page.getByText('Scanner was stopped')).toBeVisible()
  await picture(page, 'audit-phone-dark')
  await fits(page)
})
