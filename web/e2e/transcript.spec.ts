// A session as people read it: what is said and done, live, back to its beginning and over a restart of the daemon.
import type { Locator, Page } from '@playwright/test'

import { accessible, expect, fits, openSession, phone, picture, test } from './support/test'

const events = (page: Page): Locator => page.getByRole('group', { name: 'Events' })

test('S3-11 a live turn: what is being written, then what was said and done @firefox', async ({ page, daemon }) => {
  const session = daemon.script('Look around', `/think first I look at what there is\n/wait-file begin\n/pace 250\n/say slowly said words one by one until all of them are there\n/pace 0\n/wait-file go\n/run printf 'one\\ntwo\\n'\n/tool-fail fetch no route to host\n/plan Read | Change | Check\n/plan-done 1\n/edit notes.md # Notes\\nfirst line\n/edit notes.md # Notes\\nsecond line\n/compact 9000 2000\n/say! All **done**: see \`notes.md\`\\n\\n\`\`\`ts\\nconst a = "b" // c\\n\`\`\`\n/usage 1200 80`)
  await page.goto(daemon.at(`/sessions/${session}`))
  const log = events(page)
  // It writes for a while, and somebody looks from the beginning.
  await expect(log.getByText(/^Thought · 7 words/)).toBeVisible()
  daemon.touch('begin')
  await expect(log.getByText('writing', { exact: true })).toBeVisible()
  await expect(log.getByText('slowly said words one by one until all of them are there')).toBeVisible()
  await expect(log.getByText('writing', { exact: true })).toBeHidden()
  daemon.touch('go')
  await expect(log.getByText('Completed', { exact: true })).toBeVisible()
  await expect(log.getByText('1,200 in, 80 out')).toBeVisible()

  // Thoughts are folded, and open.
  const thought = log.getByRole('button', { name: /^Thought · 7 words/ })
  await thought.click()
  await expect(log.locator('.thinking')).toHaveText('first I look at what there is')
  // A tool call: in a line, then arguments and result.
  const call = log.getByRole('article', { name: 'Tool call' }).filter({ hasText: 'printf' })
  await expect(call.getByRole('button')).toContainText(/\d m?s/)
  await call.getByRole('button').click()
  await expect(call.getByRole('definition')).toContainText("printf 'one")
  await expect(call.getByRole('heading', { name: 'Result' })).toBeVisible()
  await expect(call.locator('section pre')).toHaveText('one\ntwo\n')
  await expect(log.getByRole('button', { name: /fetch/ })).toContainText('no route to host')
  await expect(log.getByText('Context compacted')).toBeVisible()
  await expect(log.getByText('9,000 → 2,000')).toBeVisible()
  await expect(log.getByText('1 of 3 done', { exact: true })).toBeVisible()
  await expect(log.getByText('Plan: 0 of 3 done')).toBeVisible()
  await expect(log.locator('.agent strong', { hasText: 'done' })).toBeVisible()
  await expect(log.locator('.agent figure .string')).toHaveText('"b"')

  await accessible(page)
  await thought.click()
  await picture(page, 'transcript')
  await page.emulateMedia({ colorScheme: 'dark' })
  await accessible(page)
  await page.keyboard.press('End')
  await expect(log.getByText('1,200 in, 80 out')).toBeInViewport()
  await picture(page, 'transcript-dark')
  await page.emulateMedia({ colorScheme: 'light' })
  await phone(page)
  await expect(log).toBeVisible()
  await fits(page)
  await picture(page, 'transcript-phone')
  const views = page.getByRole('navigation', { name: 'Views of the session' })
  await views.getByRole('link', { name: 'Details' }).click()
  await expect(log).toBeHidden()
  await expect(page.getByRole('heading', { name: 'Facts' })).toBeVisible()
  await views.getByRole('link', { name: 'Chat' }).click()
  await expect(log.getByText('1,200 in, 80 out')).toBeInViewport()
})

test('the change of a file is shown with its lines', async ({ page, daemon }) => {
  const session = daemon.script('Change a file', '/edit notes.md # Notes\\nfirst line\n/edit notes.md # Notes\\nsecond line')
  await page.goto(daemon.at(`/sessions/${session}`))
  const change = events(page).getByRole('group', { name: 'Change of notes.md' }).last()
  await expect(change.locator('.old')).toHaveText(/2−first line/)
  await expect(change.locator('.new')).toHaveText(/2\+second line/)
  await picture(page, 'transcript-diff')
})

test('a long log is read back to its beginning without jumps, and found in', async ({ page, daemon }) => {
  const steps = Array.from({ length: 900 }, (_, at) => `/tool step${at + 1} {"n":${at + 1}}`).join('\n')
  const session = daemon.script('A long way', `${steps}\n/say half of it\n/wait-file go\n/say the rest`)
  await expect.poll(async () => (await daemon.api<{ last_seq: number }>('GET', `/sessions/${session}`)).last_seq).toBeGreaterThan(1_800)
  await page.goto(daemon.at(`/sessions/${session}`))
  const log = events(page)
  await expect(log.getByText('half of it')).toBeInViewport()
  await expect(log.getByRole('button', { name: /^step900\b/ })).toBeInViewport()
  expect(await log.getByRole('article').count()).toBeLessThan(300)

  // Back, a bit at a time: each step on the way is seen, none is jumped over.
  await log.hover()
  const seen = new Set<number>()
  await expect
    .poll(
      async () => {
        await page.mouse.wheel(0, -450)
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
        for (const text of await log.locator('.tool .name').allTextContents()) seen.add(Number(text.replace('step', '')))
        return seen.has(1)
      },
      { intervals: [10], timeout: 90_000 },
    )
    .toBe(true)
  expect(Array.from({ length: 900 }, (_, at) => at + 1).filter((n) => !seen.has(n))).toEqual([])
  await expect(log.getByText('The beginning of the log')).toBeAttached()

  // What comes meanwhile moves nothing, and is counted.
  const first = log.getByRole('button', { name: /^step2\b/ })
  await first.scrollIntoViewIfNeeded()
  const before = await first.boundingBox()
  daemon.touch('go')
  const pill = page.getByRole('button', { name: /^\d+ new$/ })
  await expect(pill).toBeVisible()
  expect((await first.boundingBox())?.y).toBe(before?.y)
  await pill.click()
  await expect(log.getByText('Completed', { exact: true })).toBeInViewport()
  await expect(pill).toBeHidden()

  // Keys: find, then from one to the next.
  await page.keyboard.press('/')
  await expect(page.getByRole('searchbox')).toBeFocused()
  await page.keyboard.type('step450')
  await expect(log.getByRole('button', { name: /^step450\b/ })).toBeVisible()
  await expect(page.getByRole('search').getByRole('status')).toHaveText('2 of 2')
  await page.keyboard.press('Escape')
  await page.keyboard.press('End')
  await expect(log.getByText('Completed', { exact: true })).toBeInViewport()
  await page.keyboard.press('Home')
  await expect(log.getByText('The beginning of the log')).toBeInViewport()
  await page.getByRole('radiogroup', { name: 'What is shown' }).getByText('Tools', { exact: true }).click()
  await expect(log.getByText('half of it')).toBeHidden()
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await expect(log.locator('button[aria-expanded=true]')).toBeFocused()

  // A link to one event.
  await page.goto(daemon.at(`/sessions/${session}?at=200`))
  await expect(log.locator('article.aimed')).toBeInViewport()
})

test('the daemon is killed and comes back in mid-stream: no word twice, none missing', async ({ page, daemon }) => {
  // Each is a message of its own; all of them fit into what the list keeps in the page.
  const lines = (from: number, to: number): string => Array.from({ length: to - from + 1 }, (_, at) => `/say! line ${from + at};\\n`).join('\n')
  const session = daemon.script('Talk on', `${lines(1, 12)}\n/wait-file go\n/pace 5\n${lines(13, 24)}\n/say over`)
  await page.goto(daemon.at(`/sessions/${session}`))
  const log = events(page)
  await expect(log.getByText('line 12;')).toBeVisible()
  await daemon.kill9()
  await expect(page.getByText('Reconnecting to the daemon…')).toBeVisible()
  // The agent talks on while nobody listens.
  daemon.touch('go')
  await daemon.start()
  await expect(page.getByText('Reconnecting to the daemon…')).toBeHidden()
  await expect(log.getByText('Completed', { exact: true })).toBeVisible()
  await expect(log.getByText('same process')).toBeVisible()
  const said = (await log.locator('article.agent').allTextContents()).join('\n')
  expect(said.match(/line \d+;/g)).toEqual(Array.from({ length: 24 }, (_, at) => `line ${at + 1};`))
})

test('a session that is not there, and one that goes away', async ({ page, daemon }) => {
  await page.goto(daemon.at('/sessions/sess_01aaaaaaaaaaaaaaaaaaaaaaaa'))
  await expect(page.getByRole('heading', { name: 'There is no such session' })).toBeVisible()
  await accessible(page)
  const session = daemon.script('Soon gone', '/say here')
  await page.goto(daemon.at(`/sessions/${session}`))
  await expect(events(page).getByText('Completed', { exact: true })).toBeVisible()
  daemon.run('rm', session, '--yes')
  await expect(page.getByRole('heading', { name: 'This session was deleted' })).toBeVisible()
})

test('FND-D5 Markdown of an agent keeps its meaning, and loads nothing', async ({ page, daemon }) => {
  const asked: string[] = []
  page.on('request', (request) => void (request.url().includes('example.org') && asked.push(request.url())))
  const text = [
    '1. first', '   - inner _em_', '   - inner ~~gone~~', '2. second', '', '| a | b |', '|---|---|', '| `x \\| y` | z |', '',
    '- [x] done', '- [ ] open', '', '![the graph](https://example.org/g.png) and <b>html</b>',
  ]
  const session = daemon.script('Markdown', `/say! ${text.join('\\n')}`)
  await openSession(page, daemon, session)
  const said = page.getByRole('article', { name: 'Agent' })
  await expect(said.locator('ol > li')).toHaveCount(2)
  await expect(said.locator('ol > li').first().locator('ul > li')).toHaveText([/inner em/, /inner gone/])
  await expect(said.locator('em')).toHaveText('em')
  await expect(said.locator('del')).toHaveText('gone')
  await expect(said.locator('tbody td')).toHaveText(['x | y', 'z'])
  await expect(said.getByRole('img', { name: 'Done', exact: true })).toHaveCount(1)
  await expect(said.getByRole('img', { name: 'Not done' })).toHaveCount(1)
  await expect(said.getByRole('link', { name: 'the graph' })).toHaveAttribute('href', 'https://example.org/g.png')
  await expect(said).toContainText('<b>html</b>')
  await expect(said.locator('img, b')).toHaveCount(0)
  await accessible(page)
  expect(asked).toEqual([])
})
