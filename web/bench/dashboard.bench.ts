// How fast the dashboard is seen, and whether it keeps up: figures beside a bare page of the same machine and run.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { expect, type Page } from '@playwright/test'

import { test } from '../e2e/support/test'

const SESSIONS = 1_000
const REPEATS = 7
const EVENTS_PER_SECOND = 1_000
const SECONDS = 10
/** Requests under way at a time, so that the daemon gathers them as it does those of many agents. */
const ABREAST = 64
/** The goal: frames per second while events come in. */
const FRAMES = 30
/** Agents that stream at once, and the goal for the overview then. */
const STREAMS = 20
const SMOOTH = 50

const median = (numbers: number[]): number => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0

/** When something was first painted, in milliseconds from the start of the navigation. */
async function painted(page: Page, url: string): Promise<number> {
  const times: number[] = []
  for (let nth = 0; nth < REPEATS; nth++) {
    await page.goto(url)
    const paint = await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime)
    times.push((await paint.jsonValue()) ?? 0)
  }
  return median(times)
}

/** When the first session stood on the page. */
async function listed(page: Page, url: string): Promise<number> {
  await page.addInitScript(() => {
    const look = (): void => {
      if (document.body?.innerText.includes('session 999')) (window as unknown as { seenAt: number }).seenAt = performance.now()
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  })
  const times: number[] = []
  for (let nth = 0; nth < REPEATS; nth++) {
    await page.goto(url)
    const seen = await page.waitForFunction(() => (window as unknown as { seenAt?: number }).seenAt)
    times.push((await seen.jsonValue()) ?? 0)
  }
  return median(times)
}

async function abreast(count: number, make: (nth: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) await make(next++)
  }
  await Promise.all(Array.from({ length: ABREAST }, lane))
}

test('the first paint and the first session', async ({ page, daemon, browser }) => {
  await abreast(SESSIONS, (nth) => daemon.api('POST', '/sessions', { title: `session ${nth}`, source: 'bench' }))
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html')
    response.end(`<!doctype html><title>bare</title>${Array.from({ length: 40 }, (_, nth) => `<p>session ${nth}</p>`).join('')}`)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const bare = await painted(await (await browser.newContext()).newPage(), `http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  server.close()
  const first = await painted(page, `http://${daemon.address}/`)
  const rows = await listed(page, `http://${daemon.address}/`)
  console.log(`\nfirst paint                ${first.toFixed(0)} ms   ${(first / bare).toFixed(2)}x of a bare page (${bare.toFixed(0)} ms)`)
  console.log(`first of ${SESSIONS} sessions     ${rows.toFixed(0)} ms   ${(rows / bare).toFixed(2)}x of a bare page`)
})

/** Counts the frames of a page from here on. */
async function count(page: Page): Promise<void> {
  await page.evaluate(() => {
    const seen = { frames: [] as number[] }
    ;(window as unknown as { seen: typeof seen }).seen = seen
    const tick = (at: number): void => {
      seen.frames.push(at)
      requestAnimationFrame(tick)
    }
    requestAnimationFrame(tick)
  })
}

async function counted(page: Page): Promise<{ rate: number; gaps: number[] }> {
  const frames = await page.evaluate(() => (window as unknown as { seen: { frames: number[] } }).seen.frames)
  const gaps = frames.slice(1).map((at, nth) => at - (frames[nth] ?? at))
  return { rate: ((frames.length - 1) * 1_000) / ((frames.at(-1) ?? 0) - (frames[0] ?? 0)), gaps }
}

test(`frames of the overview while ${STREAMS} agents stream`, async ({ page, daemon, context }) => {
  const idle = await context.newPage()
  await idle.goto('about:blank')
  await count(idle)
  await new Promise((done) => setTimeout(done, SECONDS * 1_000))
  const bare = await counted(idle)
  await idle.close()
  const steps = Array.from({ length: 400 }, (_, at) => `/say word ${at} of a long answer\n/tool read {"path":"src/file${at}.ts"}\n/edit part.ts ${at}\n\n/usage ${at} 3 ${at * 40}`).join('\n')
  for (let nth = 0; nth < STREAMS; nth++) daemon.script(`stream ${nth}`, `/wait-file go\n/pace 40\n${steps}`)
  await page.goto(`http://${daemon.address}/`)
  await expect(page.getByRole('row').filter({ hasText: 'stream' })).toHaveCount(STREAMS)
  daemon.touch('go')
  await expect(page.getByRole('row').filter({ hasText: 'word' }).first()).toBeVisible()
  await count(page)
  await new Promise((done) => setTimeout(done, SECONDS * 1_000))
  const { rate, gaps } = await counted(page)
  console.log(`\n${STREAMS} streams, overview       ${rate.toFixed(1)} frames a second   ${(rate / bare.rate).toFixed(2)}x of an idle page (${bare.rate.toFixed(1)})   goal ${SMOOTH}: ${rate >= SMOOTH ? 'met' : 'MISSED'}; longest ${Math.max(...gaps).toFixed(0)} ms`)
})

test(`frames while ${EVENTS_PER_SECOND} events a second come in`, async ({ page, daemon }) => {
  const { session } = await daemon.api<{ session: string }>('POST', '/sessions', { title: 'busy', source: 'bench' })
  await daemon.api('POST', `/sessions/${session}/turns`, { prompt: 'go' })
  await page.goto(`http://${daemon.address}/sessions/${session}`)
  await expect(page.getByRole('heading', { level: 1 })).toContainText('busy')
  await count(page)
  const began = Date.now()
  let sent = 0
  for (let second = 0; second < SECONDS; second++) {
    await abreast(EVENTS_PER_SECOND, (nth) => {
      sent += 1
      const call = `c${second}-${nth >> 1}`
      const signal = nth % 2 === 0 ? { type: 'tool_called', call, tool: 'search', arguments: { query: `word ${nth}` } } : { type: 'tool_returned', call, content: `found ${nth}` }
      return daemon.api('POST', `/sessions/${session}/signals`, signal)
    })
    const ahead = began + (second + 1) * 1_000 - Date.now()
    if (ahead > 0) await new Promise((done) => setTimeout(done, ahead))
  }
  const took = (Date.now() - began) / 1_000
  const { rate, gaps } = await counted(page)
  await daemon.api('POST', `/sessions/${session}/signals`, { type: 'said', role: 'agent', text: 'that was all' })
  await expect(page.getByText('that was all')).toBeVisible()
  const behind = Date.now() - began - took * 1_000
  const slow = gaps.filter((gap) => gap > 1_000 / FRAMES).length
  console.log(`\nevents applied             ${(sent / took).toFixed(0)} a second for ${took.toFixed(1)} s; the last stood there ${behind.toFixed(0)} ms after it was sent`)
  console.log(`frames                     ${rate.toFixed(1)} a second   goal ${FRAMES}: ${rate >= FRAMES ? 'met' : 'MISSED'}; ${slow} of ${gaps.length} took longer than a ${FRAMES}th; longest ${Math.max(...gaps).toFixed(0)} ms`)
})
