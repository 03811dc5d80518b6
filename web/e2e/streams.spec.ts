// Twenty agents stream at once: whoever points at a row keeps pointing at it.
import { expect, picture, test } from './support/test'

const STREAMS = 20

test('twenty agents stream at once, and no row moves under the pointer', async ({ page, daemon }) => {
  const steps = (at: number): string => Array.from({ length: 60 }, (_, word) => `/say word ${word} of ${at}\n/tool read {"path":"file${word}.ts"}\n/cost ${1 + ((at * 7 + word) % 13)}`).join('\n')
  for (let at = 0; at < STREAMS; at++) daemon.script(`stream ${at}`, `/wait-file go\n/pace 100\n${steps(at)}\n/say! the end of ${at}`)
  const rows = page.getByRole('row').filter({ hasText: /stream \d/ })
  await expect(rows).toHaveCount(STREAMS)
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'stream 7', exact: true }) })
  await row.scrollIntoViewIfNeeded()
  await row.hover()
  // Looked at in every frame while all of them work and end.
  await row.evaluate((element) => {
    const seen = { frames: 0, moves: [] as number[], gone: false }
    ;(window as unknown as { seen: typeof seen }).seen = seen
    const top = element.getBoundingClientRect().top
    const look = (): void => {
      seen.frames += 1
      if (!element.isConnected) seen.gone = true
      const by = element.getBoundingClientRect().top - top
      if (by !== 0) seen.moves.push(by)
      requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  })
  daemon.touch('go')
  await expect(rows.filter({ hasText: /word \d+/ }).first()).toBeVisible()
  await picture(page, 'twenty-streams')
  await expect.poll(async () => (await daemon.api<{ sessions: { operator_state: string }[] }>('GET', '/sessions?limit=50')).sessions.filter((one) => one.operator_state === 'working').length, { timeout: 90_000 }).toBe(0)
  await expect(row).toContainText('the end of 7')
  const seen = await page.evaluate(() => (window as unknown as { seen: { frames: number; moves: number[]; gone: boolean } }).seen)
  expect(seen).toMatchObject({ moves: [], gone: false })
  expect(seen.frames).toBeGreaterThan(10)
})
