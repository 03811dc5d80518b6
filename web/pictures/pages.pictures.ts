// Pictures of the pages, in light and dark, on a laptop and on a phone. `PICTURES` names the folder they go to; without
// it they are in test-results/pictures, and those of the documentation in docs/pictures are left as they are.
import { execFileSync } from 'node:child_process'
import { renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

import type { Page } from '@playwright/test'

import { Daemon } from '../e2e/support/daemon'
import { another, expect, openSession, test } from '../e2e/support/test'

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
  await expect(page.getByText('keep next in the state').last()).toBeVisible()
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
  await page.getByRole('radiogroup', { name: 'View' }).getByText('Changes').click()
  await expect(page.getByRole('group', { name: /^Changes of/ }).getByText('parse.ts', { exact: true })).toHaveCount(2)
  await both(page, 'comparison', ['laptop'])
  for (const [name, path] of [['plans', '/plans'], ['memory', '/memory'], ['audit', '/audit'], ['agents', '/agents'], ['settings', '/settings'], ['search', '/search?q=tests']] as const) {
    await page.goto(daemon.at(path))
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await expect(page.getByRole('status').filter({ hasText: /…$/ })).toHaveCount(0)
    await both(page, name, ['laptop'])
  }
})

const DAY_MS = 86_400_000

/** A fortnight of work of three agents, under a clock that is set by hand. */
async function fortnight(daemon: Daemon, set: (at: number) => void): Promise<string> {
  const work = [['claude', 42, 18_000], ['codex', 19, 26_000], ['opencode', 11, 9_000]] as const
  let last = ''
  for (let day = 13; day >= 0; day -= 1) {
    let now = Date.now() - day * DAY_MS - 3_600_000
    for (const [nth, [agent, cents, tokens]] of work.entries()) {
      if ((day * 3 + nth) % 5 === 4) continue
      const [gate, spent] = [`go-${day}-${nth}`, Math.round(cents * (1 + ((day * 7 + nth * 3) % 6) / 2))]
      set((now += 600_000))
      const steps = ['/tool read {"path":"src/app.ts"}', `/wait-file ${gate}`, (day + nth) % 4 === 0 ? '/tool-fail bash npm test: 1 failed' : '/tool bash {"command":"npm test"}', `/usage ${tokens * (1 + (day % 3))} ${Math.round(tokens / 9)}`, `/cost ${spent}`, '/say done']
      const made = daemon.json<{ session: string }>('run', '--agent', agent, '--title', `Work of day ${day}`, '--cwd', daemon.workspace, '--detach', steps.join('\n'))
      last = made.session
      await expect.poll(async () => (await daemon.api<{ events: { type: string }[] }>('GET', `/sessions/${last}/events?limit=200`)).events.some((event) => event.type === 'tool.returned')).toBe(true)
      set((now += 420_000 + ((day * 5 + nth) % 4) * 300_000))
      daemon.touch(gate)
      await expect.poll(async () => (await daemon.api<{ operator_state: string }>('GET', `/sessions/${last}`)).operator_state).not.toBe('working')
    }
  }
  set(Date.now())
  return last
}

test('pictures of insight and health', async ({ browser }) => {
  test.setTimeout(300_000)
  const clock = join(resolve(import.meta.dirname, '../test-results'), `clock-${process.pid}`)
  let boot = 1_000
  const set = (at: number): void => {
    boot += 1_000
    writeFileSync(`${clock}.new`, `${Math.round(at)} ${boot}`)
    renameSync(`${clock}.new`, clock)
  }
  set(Date.now() - 14 * DAY_MS)
  process.env.LANYARD_CLOCK_FILE = clock
  const daemon = new Daemon('[budgets]\nturn_usd = 3.0\nsession_usd = 8.0\nfamily_usd = 12.0\nday_usd = 2.5\n')
  await daemon.start()
  for (const agent of ['claude', 'codex', 'opencode']) daemon.offer(agent, [])
  await fortnight(daemon, set)
  const { session } = await daemon.api<{ session: string }>('POST', '/sessions', { title: 'Lost' })
  for (let hour = 5; hour >= 0; hour -= 1) {
    set(Date.now() - hour * 3_600_000 - 60_000)
    const good = hour < 3 ? 30 : 20
    const token = daemon.token()
    const attach = () => fetch(daemon.at(`/api/v1/sessions/${session}/attach?after=0`), { headers: { authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(2_000) }).then((answer) => answer.body?.cancel()).catch(() => null)
    await Promise.all(Array.from({ length: good }, attach))
    for (let at = 0; at < ([1, 0, 2, 12, 3, 0][hour] ?? 0); at += 1) await daemon.api('GET', `/sessions/${session}/attach?after=99999`).catch(() => null)
  }
  set(Date.now())
  const page = await another(browser, daemon)
  await page.setViewportSize(SIZES.laptop)
  await page.goto(daemon.at('/insight?days=30'))
  await expect(page.getByRole('rowheader', { name: 'claude' })).toBeVisible()
  await both(page, 'insight')
  await page.goto(daemon.at('/health'))
  await expect(page.getByRole('img', { name: /^Success rates/ })).toBeVisible()
  await both(page, 'health')
  await daemon.end()
  delete process.env.LANYARD_CLOCK_FILE
})

test('picture of the time of a turn', async ({ page, daemon }) => {
  await page.setViewportSize(SIZES.laptop)
  const session = daemon.script('Fix the login redirect', '/wait 700\n/tool read {"path":"src/auth/callback.ts"}\n/wait 500\n/ask-tool bash Run npm test\n/wait 900\n/tool grep {"pattern":"next"}\n/wait 400\n/tool-fail bash npm test: 1 failed\n/wait 600\n/edit callback.ts export const next = 1\\n\n/say done')
  await expect.poll(async () => (await daemon.api<{ gates: unknown[] }>('GET', '/gates')).gates.length).toBe(1)
  const { gates } = await daemon.api<{ gates: { id: string }[] }>('GET', '/gates')
  await page.waitForTimeout(1_500)
  daemon.run('answer', gates[0]?.id ?? '', 'allow')
  await expect.poll(async () => (await daemon.api<{ operator_state: string }>('GET', `/sessions/${session}`)).operator_state).not.toBe('working')
  await openSession(page, daemon, session)
  const message = page.getByRole('article', { name: 'Message' }).first()
  await message.hover()
  await message.getByRole('button', { name: 'More for this message' }).click()
  await page.getByRole('menuitem', { name: 'Where the time went' }).click()
  await expect(page.getByRole('dialog').getByRole('img')).toBeVisible()
  await both(page, 'waterfall')
})
