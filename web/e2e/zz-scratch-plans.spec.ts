import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { flowConfig, FlowStage, HELP } from './support/flow-stage'
import { accessible, expect, picture, test } from './support/test'
test.use({ config: flowConfig('rules.phase_gate = "ask"') + '\n[agents.demo]\ndriver="acp"\ncommand=["/tmp/lanyard-bin/lanyard","scripted-agent"]\n' })
test('look', async ({ page, daemon }) => {
  const git = (...w: string[]) => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...w], { cwd: daemon.workspace })
  writeFileSync(join(daemon.workspace, 'a.txt'), 'a\n')
  git('init', '-q', '-b', 'main'); git('add', '.'); git('commit', '-qm', 'first')
  const t = (k: string, title: string, after: string, steps: string) => `## [ ] ${k}: ${title}\n\n- agent: demo\n${after ? `- after: ${after}\n` : ''}${k === 'auth' ? '- priority: high\n- files: src/auth/**\n- must not change: Cargo.lock\n' : ''}\n${steps}\n\n`
  const wait = `/wait-file ${join(daemon.folder, 'never')}`
  const one = await daemon.api<{ id: string; all: { id: string; key: string }[] }>('POST', '/plans/import', { workspace: daemon.workspace, start: true, name: 'shop', markdown: '# Rebuild the shop\n\nEverything that has to be there before we switch over, in the order it can be done.\n\n' + [
    t('schema', 'Design the tables', '', '/say Twelve tables.'), t('auth', 'Sign-in and sessions', 'schema', `/edit src/auth/login.rs pub fn login(name: &str) -> Result<Session, Error> {\\n    // the token is kept for a day\\n    let session = Session::new(name, 86_400);\\n    Ok(session)\\n}\\n\n/say Works with **passkeys** and passwords.\n\n- \`login\` and \`logout\`\n- tests in \`tests/auth.rs\``), t('catalog', 'Catalogue with search', 'schema', wait), t('cart', 'Cart', 'auth, catalog', '/say x'), t('pay', 'Payments', 'cart', '/say x'), t('mail', 'Order mails', 'pay', '/say x'), t('admin', 'Back office', 'auth', '/error -32000 the build is broken'), t('load', 'Load test', 'catalog, pay', '/say x'), t('docs', 'Runbook', '', '/say Written.'), t('switch', 'Switch over', 'mail, load, admin, docs', '/say x'),
  ].join('') })
  await daemon.api('POST', '/plans/import', { workspace: daemon.workspace, markdown: '# Clean up the tests\n\n- [ ] one\n- [x] two\n- [ ] three' })
  await daemon.api('POST', '/plans/import', { workspace: daemon.workspace, start: true, markdown: '# Notes for 1.0\n\n' + t('a', 'Collect', '', '/say ok') + t('b', 'Write', 'a', '/say ok') })
  await page.goto(`http://${daemon.address}/plans/${one.id}`)
  await expect(page.getByText(/failed/).first()).toBeVisible()
  const auth = one.all.find((x) => x.key === 'auth')!
  await page.goto(`http://${daemon.address}/plans/${one.id}?task=${auth.id}`)
  await expect(page.getByText('what its agent said last')).toBeVisible()
  await picture(page, 'zz-plan')
  await page.getByText('Changes', { exact: true }).click()
  await expect(page.getByText('86_400')).toBeVisible()
  await accessible(page)
  await page.getByRole('button', { name: 'Dark colours' }).click()
  await accessible(page)
  await page.screenshot({ path: 'test-results/pictures/zz-diff.png', fullPage: true })
  await page.getByRole('button', { name: 'Light colours' }).click()
  await page.getByText('List', { exact: true }).click()
  await picture(page, 'zz-list')
  await page.goto(`http://${daemon.address}/plans`)
  await expect(page.getByText('Notes for 1.0')).toBeVisible()
  await picture(page, 'zz-plans')
  const stage = new FlowStage(daemon)
  mkdirSync(join(daemon.home, 'trees'), { recursive: true })
  for (const r of ['author', 'reviewer']) symlinkSync(join(daemon.folder, r), join(daemon.home, 'trees', r))
  const commit = 'git add -A; git -c user.name=a -c user.email=a@b commit -qm x --allow-empty'
  stage.script('author', `/edit greet.sh echo hi\n/run ${commit}; h=$(git rev-parse HEAD); for f in $(ls ../author | grep -v done | head -1); do sed -i "s/COMMIT/$h/" ../author/$f; done`)
  stage.script('author', '/say! {"status":"complete","commit":"COMMIT"}')
  stage.reviewer('/usage 4000 200', '{"readiness":"ready","score":91,"summary":"Fine."}')
  const flow = await stage.begin('Greetings 1.0', ['Greet', 'Tell people', 'Say goodbye'])
  await stage.until<{ gate?: unknown }>(flow, (v) => v.gate != null)
  await page.goto(`http://${daemon.address}/flows/${flow}`)
  await expect(page.getByRole('article')).toBeVisible()
  await page.screenshot({ path: 'test-results/pictures/zz-flow.png', fullPage: true })
  await page.getByRole('button', { name: /Abort/ }).click()
  await expect(page.getByText('The worktree is taken away')).toBeVisible()
  writeFileSync(join(daemon.workspace, 'OTHER.md'), '# Other plan\n\n## Phase 1: X\n\n- [ ] a\n')
  stage.reviewer('/say x', '{"readiness":"not_ready","score":30,"summary":"Too short.","items":[{"id":"A","title":"Say why","action":"human_required","priority":"P0","reason":"nobody knows"},{"id":"B","title":"Number the phases","action":"auto_fix","priority":"P2"}]}')
  stage.author('/say y', HELP)
  const other = await daemon.api<{ id: string }>('POST', '/flows', { kind: 'plan_review', plan: join(daemon.workspace, 'OTHER.md') })
  await stage.until<{ gate?: unknown }>(other.id, (v) => v.gate != null)
  await page.goto(`http://${daemon.address}/flows/${other.id}`)
  await expect(page.getByRole('article')).toBeVisible()
  await page.screenshot({ path: 'test-results/pictures/zz-review.png', fullPage: true })
  await page.goto(`http://${daemon.address}/flows`)
  await expect(page.getByText('Other plan')).toBeVisible()
  await picture(page, 'zz-flows')
})
