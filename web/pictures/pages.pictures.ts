// Pictures of the pages, in light and dark, on a laptop and on a phone. `PICTURES` names the folder they go to; without
// it they are in test-results/pictures, and those of the documentation in docs/pictures are left as they are.
import { resolve } from 'node:path'

import type { Page } from '@playwright/test'

import type { Daemon } from '../e2e/support/daemon'
import { expect, openSession, test } from '../e2e/support/test'

const FOLDER = process.env.PICTURES ?? resolve(import.meta.dirname, '../test-results/pictures')
const SIZES = { laptop: { width: 1366, height: 768 }, phone: { width: 390, height: 844 } }

const row = (page: Page, title: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name: title, exact: true }) })

/** Twenty agents: at work, asking, done, failed. */
async function twenty(daemon: Daemon): Promise<string> {
  const chat = daemon.script(
    'Fix the login redirect',
    [
      '/plan Find the cause | Write a failing test | Fix it | Run all tests',
      '/say I start with the route that handles the callback.',
      '/repeat 12 /tool read {"path":"src/auth/callback.ts"}',
      '/tool grep {"pattern":"redirect_uri"}',
      '/tool-fail bash npm test: 2 tests failed',
      '/plan-done 1',
      '/edit callback.ts export const next = (url: URL) => url.searchParams.get("next") ?? "/"\\n',
      '/say The redirect target was dropped when the session expired. **The test fails as expected**, now the fix.\\n\\n- keep `next` in the state\\n- check that it is a path',
      '/plan-done 2',
      '/usage 18200 930 42000',
      '/cost 38',
      '/run npm test >/dev/null 2>&1; sleep 600',
    ].join('\n'),
  )
  const working = ['Upgrade the HTTP client', 'Sort the import order', 'Cache the price list', 'Translate the manual', 'Find the slow query', 'Split the big module', 'Index the archive', 'Rename the settings', 'Draw the charts', 'Read the old logs', 'Sign the packages', 'Trim the images', 'Merge the readers', 'Close the sockets']
  for (const [at, title] of working.entries()) {
    daemon.script(title, `/plan Look | Change | Test\n/say Looking at the code.\n/usage ${4_000 + at * 900} 300 ${12_000 + at * 7_000}\n/cost ${3 + at * 4}\n/edit part${at}.ts export const part = ${at}\\n\n/plan-done 1\n/run sleep 600`)
  }
  for (const title of ['Publish the package', 'Clean the build folder']) {
    daemon.script(title, `/ask-tool bash ${title.toLowerCase()}: npm run ${title.toLowerCase().split(' ')[0]}\n/say done`)
  }
  for (const [at, title] of ['Write the release notes', 'Test the import'].entries()) {
    daemon.script(title, `/edit notes${at}.md # ${title}\\n\n/say! All of it is done, and the checks pass.\n/usage 3100 420 ${18_000 + at * 9_000}\n/cost ${12 + at * 9}`)
  }
  for (const title of ['Check the licences']) daemon.script(title, '/say Trying.\n/error -32000 the registry does not answer')
  return chat
}

async function settled(page: Page): Promise<void> {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
}

async function both(page: Page, name: string): Promise<void> {
  for (const [size, viewport] of Object.entries(SIZES)) {
    await page.setViewportSize(viewport)
    for (const colours of ['light', 'dark'] as const) {
      // The documentation has no need of this one.
      if (process.env.PICTURES !== undefined && size === 'phone' && colours === 'dark') continue
      await page.evaluate((colours) => (document.documentElement.dataset.theme = colours), colours)
      await settled(page)
      // Answers are greyed for a moment after a card moved.
      await expect(page.locator('.answers [aria-disabled=true]')).toHaveCount(0)
      await page.screenshot({ path: `${FOLDER}/${name}${size === 'phone' ? '-phone' : ''}${colours === 'dark' ? '-dark' : ''}.png` })
    }
    await page.evaluate(() => delete document.documentElement.dataset.theme)
  }
  await page.setViewportSize(SIZES.laptop)
}

test('pictures', async ({ page, daemon }) => {
  await page.setViewportSize(SIZES.laptop)
  const chat = await twenty(daemon)
  await expect(page.locator('[data-gate]').first()).toBeVisible()
  await expect(row(page, 'Check the licences')).toContainText('Failed')
  await both(page, 'overview')
  await openSession(page, daemon, chat)
  await expect(page.getByText('keep next in the state')).toBeVisible()
  await both(page, 'session')
  await page.goto(daemon.at('/inbox'))
  await expect(page.locator('[data-gate]').first()).toBeVisible()
  await both(page, 'inbox')
})
