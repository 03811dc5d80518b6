// An answer reaches only the gate that was on the screen, at rest, when the pointer went down. With a real mouse.
import type { Locator, Page } from '@playwright/test'

import { flowConfig, FlowStage } from './support/flow-stage'
import { another, expect, picture, rests, test } from './support/test'

const GAPS = [50, 120, 250, 400, 600]
const DANGER = ['rm -rf build', 'npm install', 'git push --force', 'curl | sh', 'drop table', 'deploy', 'reboot', 'chmod -R 777']

const open = (page: Page): Locator => page.locator('[data-gate]:not([data-settled])')
const settled = (page: Page): Locator => page.locator('[data-gate][data-settled]')
/** The answer that stands out. */
const yes = (card: Locator): Locator => card.locator('[data-choice]').first()

interface Answer {
  gate: string
  body: string
}

/** Answers the page sends. */
function answers(page: Page): Answer[] {
  const sent: Answer[] = []
  page.on('request', (request) => {
    const gate = /\/gates\/([^/]+)$/.exec(new URL(request.url()).pathname)?.[1]
    if (request.method() === 'POST' && gate !== undefined) sent.push({ gate, body: request.postData() ?? '' })
  })
  return sent
}

/** Puts the pointer on a button that is ready, and answers where that is. */
async function aim(page: Page, button: Locator): Promise<{ x: number; y: number }> {
  await rests(button)
  const box = await button.boundingBox()
  if (box === null) throw new Error('the button is not on the page')
  const point = { x: box.x + box.width / 2, y: box.y + box.height / 2 }
  await page.mouse.move(point.x, point.y)
  return point
}

async function click(page: Page): Promise<void> {
  await page.mouse.down()
  await page.mouse.up()
}

async function doubleClick(page: Page, gap: number): Promise<void> {
  await click(page)
  await page.waitForTimeout(gap)
  await click(page)
}

/** The open gate under a point, if any. */
const under = (page: Page, { x, y }: { x: number; y: number }): Promise<string | null> =>
  page.evaluate(([x, y]) => document.elementFromPoint(x, y)?.closest('[data-gate]:not([data-settled])')?.getAttribute('data-gate') ?? null, [x, y] as const)

const waiting = async (daemon: { api: <T>(method: string, route: string) => Promise<T> }): Promise<string[]> =>
  (await daemon.api<{ gates: { id: string }[] }>('GET', '/gates')).gates.map((gate) => gate.id)

for (const place of ['/', '/gates']) {
  test(`FND-D1 a double click approves one gate, at ${place}`, async ({ page, daemon }) => {
    for (const what of DANGER.slice(0, GAPS.length + 1)) daemon.script(`Session for ${what}`, `/ask-tool ${what.split(' ')[0] ?? ''} ${what}?\n/say done`)
    await expect.poll(async () => (await waiting(daemon)).length).toBe(GAPS.length + 1)
    await page.goto(daemon.at(place))
    await expect(open(page).first()).toBeVisible()
    const sent = answers(page)
    for (const [at, gap] of GAPS.entries()) {
      const card = open(page).first()
      const gate = await card.getAttribute('data-gate')
      const point = await aim(page, yes(card))
      await doubleClick(page, gap)
      await expect.poll(() => sent.map((one) => one.gate).slice(at)).toEqual([gate])
      const same = page.locator(`[data-gate="${gate ?? ''}"]`)
      await expect(same).toHaveAttribute('data-settled', '')
      await expect(same).toContainText('Allow once, by you')
      // What lies under the pointer is still the card that was answered.
      expect(await under(page, point)).toBeNull()
      expect(sent).toHaveLength(at + 1)
      await expect.poll(async () => (await waiting(daemon)).length).toBe(GAPS.length - at)
      if (gap === 250) await picture(page, `answers${place === '/' ? '-overview' : '-gates'}`)
    }
    await page.getByRole('button', { name: /^Dismiss \d settled$/ }).click()
    await expect(settled(page)).toHaveCount(0)
    await expect(open(page)).toHaveCount(1)
    expect(sent).toHaveLength(GAPS.length)
  })
}

test('FND-D1 a click never reaches another gate while a second operator answers', async ({ page, browser, daemon }) => {
  for (const what of DANGER) daemon.script(`Session for ${what}`, `/ask-tool tool ${what}?\n/say done`)
  await expect.poll(async () => (await waiting(daemon)).length).toBe(DANGER.length)
  const other = await another(browser, daemon)
  await page.goto(daemon.at('/gates'))
  await other.goto(daemon.at('/gates'))
  await expect(open(page)).toHaveCount(DANGER.length)
  await expect(open(other)).toHaveCount(DANGER.length)
  const sent = answers(page)
  for (const gap of GAPS) {
    const card = open(page).first()
    const gate = (await card.getAttribute('data-gate')) ?? ''
    const before = await waiting(daemon)
    const earlier = sent.length
    await aim(page, yes(card))
    await aim(other, yes(other.locator(`[data-gate="${gate}"]`)))
    await Promise.all([doubleClick(page, gap), click(other)])
    await expect(page.locator(`[data-gate="${gate}"]`)).toHaveAttribute('data-settled', '')
    await expect(other.locator(`[data-gate="${gate}"]`)).toHaveAttribute('data-settled', '')
    await expect.poll(() => waiting(daemon)).toEqual(before.filter((id) => id !== gate))
    expect(sent.slice(earlier).filter((one) => one.gate !== gate)).toEqual([])
  }

  // Answered by somebody else between pressing and letting go.
  const card = open(page).first()
  const gate = (await card.getAttribute('data-gate')) ?? ''
  const before = await waiting(daemon)
  const asked = sent.length
  await aim(page, yes(card))
  await page.mouse.down()
  const [session] = (await daemon.api<{ gates: { id: string; session: string }[] }>('GET', '/gates')).gates.filter(({ id }) => id === gate)
  await daemon.api('POST', `/sessions/${session?.session ?? ''}/gates/${gate}`, { option: 'deny' })
  await expect(page.locator(`[data-gate="${gate}"]`)).toHaveAttribute('data-settled', '')
  await page.mouse.up()
  await click(page)
  await expect(page.locator(`[data-gate="${gate}"]`)).toContainText('Reject, by')
  expect(await waiting(daemon)).toEqual(before.filter((id) => id !== gate))
  expect(sent).toHaveLength(asked)
  await other.context().close()
})

test('FND-D1 a card that has just come or moved takes no click', async ({ page, daemon }) => {
  await page.goto(daemon.at('/gates'))
  const sent = answers(page)
  // As soon as it is there, before anybody can have read it: the pointer is where the answer will be, and clicks and clicks.
  await page.evaluate(() => {
    const state = { came: 0 }
    Object.assign(globalThis, { state })
    new MutationObserver(() => {
      if (state.came === 0 && document.querySelector('[data-choice]') !== null) state.came = performance.now()
    }).observe(document.body, { childList: true, subtree: true })
  })
  const { session } = await daemon.api<{ session: string }>('POST', '/sessions', { agent: 'demo', title: 'First', workspace: daemon.workspace, source: 'web' })
  await daemon.api('POST', `/sessions/${session}/turns`, { prompt: '/ask-tool rm rm -rf build?\n/say done' })
  const button = yes(open(page))
  await button.waitFor()
  const box = await button.boundingBox()
  await page.mouse.move((box?.x ?? 0) + 20, (box?.y ?? 0) + 10)
  const early = (): Promise<boolean> => page.evaluate(() => performance.now() - (globalThis as unknown as { state: { came: number } }).state.came < 300)
  while (await early()) await click(page)
  expect(sent).toEqual([])
  await expect(button).toBeEnabled()

  // Moved while the pointer was down: by whatever is above it.
  await aim(page, button)
  await page.mouse.down()
  await page.evaluate(() => document.querySelector('[data-gate]')?.parentElement?.style.setProperty('padding-top', '6px'))
  await page.mouse.up()
  expect(sent).toEqual([])
  await expect(button).not.toBeEnabled()
  await expect(button).toBeEnabled()

  // A key that is held down answers once, and only where the focus was.
  daemon.script('Second', '/ask-tool npm npm install?\n/say done')
  await expect(open(page)).toHaveCount(2)
  await expect(yes(open(page).nth(1))).toBeEnabled()
  await page.keyboard.press('j')
  await page.keyboard.down('1')
  for (let repeat = 0; repeat < 5; repeat++) await page.keyboard.down('1')
  await page.keyboard.up('1')
  await expect(settled(page)).toHaveCount(1)
  await page.keyboard.press('1')
  await expect.poll(async () => (await waiting(daemon)).length).toBe(1)
  expect(sent).toHaveLength(1)
})

test('FND-D1 a double click in the transcript approves one gate', async ({ page, daemon }) => {
  const steps = DANGER.slice(0, GAPS.length + 1).map((what) => `/ask-tool tool ${what}?`)
  const session = daemon.script('Asks and asks', [...steps, '/say done'].join('\n'))
  await page.goto(daemon.at(`/sessions/${session}`))
  const sent = answers(page)
  for (const [at, gap] of GAPS.entries()) {
    const card = page.getByRole('article', { name: `${DANGER[at] ?? ''}?` })
    await aim(page, yes(card))
    await doubleClick(page, gap)
    await expect(card).toContainText('Allow once, by')
    await expect(page.getByRole('article', { name: `${DANGER[at + 1] ?? ''}?` })).toBeVisible()
    expect(sent).toHaveLength(at + 1)
    if (gap === 120) await picture(page, 'answers-transcript')
  }
  expect(await waiting(daemon)).toHaveLength(1)
})

test.describe('of a flow', () => {
  test.use({ config: flowConfig() })

  test('FND-D1 after the gate of a flow nothing of the next one lies under the pointer', async ({ page, daemon }) => {
    const stage = new FlowStage(daemon)
    for (let round = 0; round <= GAPS.length; round++) {
      stage.author(`/say Round ${round}.`, `{"status":"needs_human","reason":"Question ${round}?","notes":"${'Why. '.repeat(round * 8)}"}`)
    }
    const flow = await stage.begin('Greetings 1.0', ['Greet'])
    await page.goto(daemon.at(`/flows/${flow}`))
    const sent = answers(page)
    for (const [at, gap] of GAPS.entries()) {
      const card = page.getByRole('article', { name: `The author needs a person: Question ${at}?` })
      const point = await aim(page, card.locator('[data-choice="continue"]'))
      await doubleClick(page, gap)
      await expect(card).toContainText('Fix it anew, by you')
      const next = page.getByRole('article', { name: `The author needs a person: Question ${at + 1}?` })
      await expect(next).toBeVisible()
      expect(await under(page, point)).toBeNull()
      expect(sent).toHaveLength(at + 1)
      if (gap === 120) await picture(page, 'answers-flow')
    }
    expect(sent.filter((one) => one.body.includes('abort'))).toEqual([])
  })
})
