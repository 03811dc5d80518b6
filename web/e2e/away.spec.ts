// Pages while the daemon is away, and when it comes back.
import { expect, test } from './support/test'

test('FND-D11 a page that is opened while the daemon is away appears when it is back', async ({ page, daemon }) => {
  await expect(page.getByRole('heading', { name: 'Overview', level: 1 })).toBeVisible()
  await daemon.kill9()
  await page.getByRole('link', { name: /^Audit/ }).click()
  await expect(page.getByRole('heading', { name: 'This page could not be loaded' })).toBeVisible()
  await expect(page.getByText('The daemon does not answer.')).toBeVisible()
  await expect(page.getByRole('heading', { name: 'Overview', level: 1 })).toHaveCount(0)
  // Another one, while it is still away.
  await page.getByRole('link', { name: /^Inbox/ }).click()
  await expect(page).toHaveURL(daemon.at('/inbox'))
  await expect(page.getByRole('heading', { name: 'This page could not be loaded' })).toBeVisible()
  // A page that was loaded before is there at once.
  await page.getByRole('link', { name: /^Overview/ }).click()
  await expect(page.getByRole('heading', { name: 'Overview', level: 1 })).toBeVisible()
  await page.getByRole('link', { name: /^Inbox/ }).click()
  await daemon.start()
  await expect(page.getByRole('heading', { name: 'Inbox', level: 1 })).toBeVisible()
  await expect(page.getByRole('heading', { name: 'This page could not be loaded' })).toHaveCount(0)
  await page.getByRole('link', { name: /^Audit/ }).click()
  await expect(page.getByRole('heading', { name: 'Audit', level: 1 })).toBeVisible()
})
