// Pictures of the pages, in light and dark, on a laptop and on a phone. `PICTURES` names the folder they go to; without
// it they are in test-results/pictures, and those of the documentation in docs/pictures are left as they are.
import { execFileSync } from 'node:child_process'
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

const PLAN = `# Release 2.0

## [ ] api: Freeze the API

/say! frozen

## [ ] docs: Write the guide

- after: api

/ask-tool bash Publish the guide?
/say done

## [ ] bench: Measure it

- after: api

/say Measuring.
/run sleep 600

## [ ] ship: Publish

- after: docs, bench

/say! shipped
`

async function settled(page: Page): Promise<void> {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
}

async function both(page: Page, name: string, sizes: readonly (keyof typeof SIZES)[] = ['laptop', 'phone']): Promise<void> {
  for (const size of sizes) {
    const viewport = SIZES[size]
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

test.use({ config: '[daemon]\ndefault_agent = "demo"\n' })
test.setTimeout(600_000)

test('pictures', async ({ page, daemon }) => {
  execFileSync('sh', ['-c', 'git init -q -b main . && git -c user.name=t -c user.email=t@t commit -q --allow-empty -m first'], { cwd: daemon.workspace })
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

  // The other pages, on a laptop.
  await page.goto(daemon.at(`/sessions/${chat}?tab=changes`))
  await expect(page.getByRole('grid').first()).toBeVisible()
  await both(page, 'changes', ['laptop'])
  await page.goto(daemon.at(`/sessions/${chat}?tab=details`))
  await expect(page.getByRole('heading', { name: 'Facts' })).toBeVisible()
  await both(page, 'details', ['laptop'])
  const plan = await daemon.api<{ id: string }>('POST', '/plans/import', { markdown: PLAN, workspace: daemon.workspace, start: true })
  await page.goto(daemon.at(`/plans/${plan.id}`))
  await expect(page.getByRole('button', { name: /^docs: .*asks/ })).toBeVisible()
  await both(page, 'plan', ['laptop'])
  const compared = await daemon.api<{ id: string; sessions: { session: string }[] }>('POST', '/comparisons', {
    prompt: '/say I try it with a table.\n/edit parse.ts export const parse = (text: string) => text.split(",")\\n\n/say! The tests pass.\n/usage 5200 640 21000\n/cost 9',
    workspace: daemon.workspace, title: 'Make the parser faster', agents: [{ agent: 'demo' }, { agent: 'demo' }],
  })
  await page.goto(daemon.at(`/comparisons/${compared.id}`))
  await expect(page.getByText('The tests pass.')).toHaveCount(2)
  await page.getByText('Changes', { exact: true }).click()
  await expect(page.getByText('parse.ts')).toHaveCount(2)
  await both(page, 'comparison', ['laptop'])
  for (const [name, path] of [['plans', '/plans'], ['memory', '/memory'], ['audit', '/audit'], ['agents', '/agents'], ['settings', '/settings'], ['search', '/search?q=tests']] as const) {
    await page.goto(daemon.at(path))
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await expect(page.getByRole('status').filter({ hasText: /…$/ })).toHaveCount(0)
    await both(page, name, ['laptop'])
  }
})
