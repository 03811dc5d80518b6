// Settings: choices of the browser, and the daemon's config, which is changed in its file.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { another, expect, fits, phone, picture, spotless, test } from './support/test'

test('colours are chosen, and a changed config is taken up', async ({ page, daemon, browser }) => {
  await page.getByRole('link', { name: 'Settings' }).click()
  await expect(page.getByRole('heading', { name: 'Settings', level: 1 })).toBeVisible()
  const colours = page.getByRole('radiogroup', { name: 'Colours' })
  await colours.getByText('Dark', { exact: true }).click()
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark')
  await spotless(page)
  await picture(page, 'settings-dark')
  await page.reload()
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark')
  await colours.getByText('As the system').click()
  await expect(page.locator('html')).not.toHaveAttribute('data-theme')

  const config = join(daemon.folder, 'config.toml')
  await expect(page.getByRole('button', { name: 'Copy the path of the config' })).toHaveText(config)
  writeFileSync(config, `${readFileSync(config, 'utf8')}\n[daemon]\nlisten = "127.0.0.1:1"\n`)
  await page.getByRole('button', { name: 'Reload the config' }).click()
  await expect(page.getByRole('list', { name: 'Settings that wait for a start' })).toContainText('listen')
  writeFileSync(config, 'no = = toml')
  await page.getByRole('button', { name: 'Reload the config' }).click()
  await expect(page.getByRole('alert').filter({ hasText: 'The file is not used as it is' })).toBeVisible()
  await spotless(page)
  await picture(page, 'settings')
  await phone(page)
  await spotless(page)
  await fits(page)
  await picture(page, 'settings-phone')

  const watcher = await another(browser, daemon, true)
  await watcher.goto(daemon.at('/settings'))
  await expect(watcher.getByRole('button', { name: 'Copy the path of the config' })).toBeVisible()
  await expect(watcher.getByRole('button', { name: 'Reload the config' })).toHaveCount(0)
})
