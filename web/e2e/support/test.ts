// Tests with a daemon of their own and pages that are signed in. A page that logs an error or is refused something by
// the content policy fails its test.
import AxeBuilder from '@axe-core/playwright'
import { test as base, expect, type Browser, type Locator, type Page } from '@playwright/test'

import { Daemon } from './daemon'

interface Given {
  /** The config of the daemon, as TOML. */
  config: string
  daemon: Daemon
  /** Signed in as an operator, at the overview. */
  page: Page
}

/** Errors the browser itself tells of while the daemon is away. */
const AWAY = /net::ERR_(?!BLOCKED)|WebSocket connection to|connection to (the server at )?ws:/

/** axe copies the style sheets of a page into a document of its own, and Firefox tells that its policy refuses them. */
const COPIED = /blocked an inline style \(style-src-elem\)/

export function watch(page: Page, errors: string[]): void {
  page.on('pageerror', (error) => {
    if (!COPIED.test(String(error))) errors.push(String(error))
  })
  page.on('console', (message) => {
    const text = message.text()
    if (message.type() === 'error' && !AWAY.test(text) && !COPIED.test(text) && !/status of (4\d\d|5\d\d)/.test(text)) errors.push(text)
  })
}

export const test = base.extend<Given>({
  config: ['', { option: true }],
  daemon: async ({ config }, use) => {
    const daemon = new Daemon(config)
    await daemon.start()
    await use(daemon)
    await daemon.end()
  },
  page: async ({ page, daemon }, use) => {
    const errors: string[] = []
    watch(page, errors)
    await signIn(page, daemon)
    await use(page)
    expect(errors, 'errors of the page').toEqual([])
  },
})

export async function signIn(page: Page, daemon: Daemon, observer = false): Promise<void> {
  await page.goto(daemon.link(observer))
  await expect(page.getByRole('navigation', { name: 'Pages' })).toBeAttached()
  await expect(page).toHaveURL(daemon.at('/'))
}

/** Another browser, signed in by itself. */
export async function another(browser: Browser, daemon: Daemon, observer = false): Promise<Page> {
  const page = await (await browser.newContext()).newPage()
  await signIn(page, daemon, observer)
  return page
}

/** The page of a session, attached. */
export async function openSession(page: Page, daemon: Daemon, session: string): Promise<void> {
  await page.goto(daemon.at(`/sessions/${session}`))
  await expect(page.getByText('Attached · live tail')).toBeAttached()
}

/** Waits until the card of an answer rests on the screen: cards that have just come or moved take none. */
export async function rests(answer: Locator): Promise<void> {
  await answer.scrollIntoViewIfNeeded()
  // Scrolling is noticed with the next frame.
  await answer.page().evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
  await expect(answer).toBeEnabled()
}

export async function give(answer: Locator): Promise<void> {
  await rests(answer)
  await answer.click()
}

/** No serious finding of axe on what is shown. */
export async function accessible(page: Page): Promise<void> {
  const found = await new AxeBuilder({ page }).analyze()
  const serious = found.violations.filter((one) => one.impact === 'serious' || one.impact === 'critical')
  expect(serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(' | ')}`)).toEqual([])
}

/** No finding of axe at all, of whatever weight, sizes of targets and the order of headings among them. */
export async function spotless(page: Page): Promise<void> {
  expect(await findings(page)).toEqual([])
}

/** What axe finds, each in a line. */
export async function findings(page: Page): Promise<string[]> {
  const found = await new AxeBuilder({ page }).options({ rules: { 'target-size': { enabled: true } } }).analyze()
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 300)).join(' | ')}`)
}

/** Nothing sticks out to the side, once all is laid out. */
export async function fits(page: Page): Promise<void> {
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBe(0)
}

/** The page as on a phone. */
export async function phone(page: Page): Promise<void> {
  await page.setViewportSize({ width: 390, height: 844 })
  await fits(page)
}

/** A picture of a page, for people to look at. */
export async function picture(page: Page, name: string): Promise<void> {
  // Hiding the caret takes an inline style, which the pages' policy refuses and Firefox tells of.
  await page.screenshot({ path: `test-results/pictures/${name}.png`, caret: 'initial' })
}

export { expect }
