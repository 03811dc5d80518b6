import { test } from './support/test'
test('debug', async ({ page, daemon }) => {
  const steps = Array.from({ length: 900 }, (_, at) => `/tool step${at + 1} {"n":${at + 1}}`).join('\n')
  const session = daemon.script('A long way', `${steps}\n/say half of it\n/wait-file zz`)
  await new Promise((r) => setTimeout(r, 3000))
  page.on('console', (m) => console.log(m.text()))
  await page.goto(`http://${daemon.address}/sessions/${session}`)
  page.on('console', (m) => console.log(m.text()))
  for (let i = 0; i < 5; i++) {
    await new Promise((r) => setTimeout(r, 500))
    console.log(await page.evaluate(() => {
      const b = document.querySelector('[aria-label=Events]') as HTMLElement
      return JSON.stringify({ top: b?.scrollTop, h: b?.scrollHeight, c: b?.clientHeight, kids: [...(b?.children ?? [])].map((k) => [(k as HTMLElement).dataset.chunk ?? k.tagName, (k as HTMLElement).offsetHeight, k.children.length]), pill: document.querySelector('.pill')?.textContent })
    }))
  }
})
