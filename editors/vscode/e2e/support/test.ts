// A daemon, code-server with the extension, and a window of it in Chromium.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

import { test as base, expect, type Frame, type Locator, type Page } from '@playwright/test'

import { Daemon } from '../../../../web/e2e/support/daemon'
import { CodeServer } from './code-server'

interface Given {
  /** The config of the daemon, as TOML. */
  config: string
  settings: Record<string, unknown>
  daemon: Daemon
  server: CodeServer
  /** A window with the workspace open and Lanyard's views in front. */
  window: Page
  /** Opens a window that knows the daemon by its address and has the token of an observer. */
  observe: () => Promise<void>
}

export const test = base.extend<Given>({
  config: ['', { option: true }],
  settings: [{}, { option: true }],
  daemon: async ({ config }, use) => {
    const daemon = new Daemon(config)
    await daemon.start()
    await use(daemon)
    await daemon.end()
  },
  server: async ({ daemon, settings }, use) => {
    const folder = join(daemon.folder, 'editor')
    mkdirSync(folder)
    const server = new CodeServer(folder, { LANYARD_DATA_DIR: daemon.home, LANYARD_CONFIG: join(daemon.folder, 'config.toml') }, settings)
    await server.start()
    await use(server)
    await server.end()
  },
  window: async ({ page, server, daemon }, use) => {
    await openWindow(page, server, daemon)
    await use(page)
  },
  observe: async ({ page, daemon }, use) => {
    const folder = join(daemon.folder, 'editor')
    mkdirSync(folder)
    const server = new CodeServer(folder, { LANYARD_DATA_DIR: join(daemon.folder, 'elsewhere') }, { 'lanyard.address': daemon.at('') })
    await server.start()
    await use(async () => {
      const { token } = await daemon.api<{ token: string }>('POST', '/tokens', { name: 'watcher', role: 'observer' })
      await page.goto(`${server.address}/?folder=${daemon.workspace}`)
      await page.getByRole('tab', { name: /^Lanyard/ }).first().click()
      await expect(page.getByText('The token is missing or was revoked.')).toBeVisible({ timeout: 90_000 })
      await runCommand(page, 'Lanyard: Set Token')
      const box = page.locator('.quick-input-widget input[type=password]')
      await box.fill(token)
      await box.press('Enter')
    })
    await server.end()
  },
})

export async function openWindow(page: Page, server: CodeServer, daemon: Daemon): Promise<void> {
  await page.goto(`${server.address}/?folder=${daemon.workspace}`)
  await page.getByRole('tab', { name: /^Lanyard/ }).first().click()
  await expect(page.getByRole('treeitem').or(page.getByText('No active sessions.')).first()).toBeVisible({ timeout: 90_000 })
}

/** A row of a view by what it says. */
export const row = (page: Page, view: string, name: string | RegExp): Locator => page.getByRole('tree', { name: view }).getByRole('treeitem', { name }).first()

/** The page of a session inside of its tab. */
export async function tab(page: Page): Promise<Frame> {
  let found: Frame | undefined
  await expect(async () => {
    for (const frame of page.frames()) {
      if (frame.parentFrame()?.parentFrame() == null) continue
      const element = await frame.frameElement()
      if ((await frame.locator('#app').count()) > 0 && (await element.isVisible())) found = frame
    }
    expect(found).toBeDefined()
  }).toPass()
  if (found === undefined) throw new Error('no session is open')
  return found
}

export async function runCommand(page: Page, name: string): Promise<void> {
  await page.keyboard.press('F1')
  await page.locator('.quick-input-widget input').first().fill(`>${name}`)
  await page.getByRole('option', { name: new RegExp(name) }).first().click()
}

export async function picture(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: `test-results/pictures/${name}.png` })
}

export { expect }
