// The rebuilt pages have no finding of axe, of any weight, on a laptop and on a phone.
import { execFileSync } from 'node:child_process'

import { expect, openSession, phone, spotless, test } from './support/test'

test('FND-D18 the overview, the inbox and the views of a session have no finding of axe', async ({ page, daemon }) => {
  execFileSync('sh', ['-c', 'git init -q . && git -c user.name=t -c user.email=t@t commit -q --allow-empty -m first'], { cwd: daemon.workspace })
  daemon.script('Deploy', '/ask-tool deploy Deploy the site?\n/say! deployed')
  daemon.script('Fail', '/error -32000 no space is left')
  const session = daemon.script('Work', '/plan Look | Change\n/plan-done 1\n/say! looking\n/repeat 5 /tool read {"path":"a"}\n/tool-fail read no such file\n/edit a.md one\\n\n/usage 100 10 900\n/cost 3')
  await expect(page.getByRole('row').filter({ hasText: 'Ready for review' })).toHaveCount(1)
  await expect(page.locator('[data-gate] [data-choice]').first()).not.toHaveAttribute('aria-disabled', 'true')
  const views = ['/', '/?rows=roomy&group=state', '/inbox', `/sessions/${session}`, `/sessions/${session}?tab=changes`, `/sessions/${session}?tab=plan`, `/sessions/${session}?tab=details`]
  for (const small of [false, true]) {
    if (small) await phone(page)
    for (const view of views) {
      if (view === `/sessions/${session}`) await openSession(page, daemon, session)
      else await page.goto(daemon.at(view))
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
      if (view.includes('changes')) await expect(page.getByRole('region', { name: 'Changes' }).getByText('1 file', { exact: true })).toBeVisible()
      await test.step(`${view}${small ? ' on a phone' : ''}`, () => spotless(page))
    }
  }
})
