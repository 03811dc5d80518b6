// No page has a finding of axe, of any weight, in light and dark, on a laptop and on a phone, empty and with something on it.
import { execFileSync } from 'node:child_process'

import { expect, findings, phone, test } from './support/test'

test.use({ config: '[daemon]\ndefault_agent = "demo"\n' })

const PAGES = ['/plans', '/flows', '/memory', '/insight', '/insight?by=day&of=tokens', '/health', '/notifications', '/gates', '/audit', '/agents', '/settings', '/search', '/search?q=look', '/nowhere']

test('FND-D18 pages beside the overview, the inbox and sessions have no finding of axe', async ({ page, daemon }) => {
  test.setTimeout(300_000)
  execFileSync('sh', ['-c', 'git init -q . && git -c user.name=t -c user.email=t@t commit -q --allow-empty -m first'], { cwd: daemon.workspace })
  const all: string[] = []
  const look = async (path: string, how: string): Promise<void> => {
    await page.goto(daemon.at(path))
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await expect(page.getByRole('status').filter({ hasText: /…$/ })).toHaveCount(0)
    for (const one of await findings(page)) all.push(`${path} ${how}: ${one}`)
  }
  for (const path of ['/plans', '/flows', '/memory', '/audit']) await look(path, 'empty')

  const plan = await daemon.api<{ id: string }>('POST', '/plans/import', { markdown: '# Release\n\n## [ ] a: Look\n\n/say! done\n\n## [ ] b: Change\n\n- after: a\n\n/edit a.md one\\n\n/say! changed\n', workspace: daemon.workspace, start: true })
  const session = daemon.script('Ask', '/say! at it\n/ask-tool deploy Deploy the site?\n/say! deployed')
  daemon.run('guide', session, 'mind the gap')
  await daemon.api('POST', '/memory', { content: 'remember the milk' }).catch(() => undefined)
  await expect.poll(async () => (await daemon.api<{ status: string }>('GET', `/plans/${plan.id}`)).status).toBe('completed')
  const full = [...PAGES, `/plans/${plan.id}`, `/sessions/${session}/family`, '/?attention=1']
  for (const path of full) await look(path, 'light')
  await page.emulateMedia({ colorScheme: 'dark' })
  for (const path of full) await look(path, 'dark')
  await phone(page)
  for (const path of full) await look(path, 'on a phone')
  expect(all).toEqual([])
})
