// Plans and their tasks: imported, worked at, followed live, merged, mended and halted.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Page } from '@playwright/test'

import type { Daemon } from './support/daemon'
import { accessible, another, expect, fits, phone, picture, test } from './support/test'

// The tasks name no agent.
test.use({ config: '[daemon]\ndefault_agent = "demo"\n' })

interface Plan {
  id: string
  all: { id: string; key: string }[]
}

function git(folder: string, ...words: string[]): string {
  return execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'commit.gpgsign=false', ...words], { cwd: folder, encoding: 'utf8' })
}

/** The workspace as a repository with one commit. */
function repository(daemon: Daemon): void {
  writeFileSync(join(daemon.workspace, 'notes.txt'), 'one\ntwo\nthree\n')
  git(daemon.workspace, 'init', '-q', '-b', 'main')
  git(daemon.workspace, 'add', '.')
  git(daemon.workspace, 'commit', '-qm', 'first')
}

const sign = (daemon: Daemon, name: string): string => join(daemon.folder, name)
const touch = (daemon: Daemon, name: string): void => writeFileSync(sign(daemon, name), '')

/** Makes a plan without the page. */
async function made(daemon: Daemon, markdown: string, start = true): Promise<Plan> {
  return daemon.api<Plan>('POST', '/plans/import', { markdown, workspace: daemon.workspace, start })
}

const box = (page: Page, name: string | RegExp): ReturnType<Page['getByRole']> =>
  page.getByRole('group', { name: /^Tasks as they wait/ }).getByRole('button', { name })

test('a plan is imported, its faults shown at their line, and followed live to its end', async ({ page, daemon, browser }) => {
  repository(daemon)
  await page.goto(daemon.at('/plans'))
  await expect(page.getByText('No plans yet')).toBeVisible()
  await accessible(page)
  await picture(page, 'plans-empty')

  await page.getByRole('button', { name: 'Import a plan' }).click()
  const text = page.getByLabel('Markdown')
  await page.getByLabel('Folder its tasks work in').fill(daemon.workspace)
  await text.fill('# Release 1.0\n\n## [ ] api: Finish the API\n\n- after: nobody\n')
  const go = page.getByRole('button', { name: 'Import', exact: true })
  await go.click()
  const fault = page.getByRole('alert')
  await expect(fault).toContainText('there is no task `nobody`')
  await expect(fault).toContainText('- after: nobody')
  await accessible(page)
  await picture(page, 'plan-import')

  const task = (key: string, title: string, after: string, steps: string): string => `## [ ] ${key}: ${title}\n\n${after === '' ? '' : `- after: ${after}\n\n`}${steps}\n`
  await text.fill(
    [
      '# Release 1.0\n\nAll that stands between us and the tag.\n',
      task('survey', 'Look at what is there', '', '/say All is there.'),
      task('api', 'Finish the API', 'survey', `/wait-file ${sign(daemon, 'api')}\n/edit src/api.txt one route\n/say All routes are there.`),
      task('site', 'Update the site', 'survey', `/wait-file ${sign(daemon, 'site')}\n/say The site is new.`),
      task('notes', 'Write the release notes', 'api', '/edit CHANGES.md The new flag.\n/say Written.'),
      task('tag', 'Set the tag', 'notes, site', '/say Tagged.'),
    ].join('\n'),
  )
  await page.getByLabel('Name, to find it by').fill('release')
  await go.click()

  await expect(page.getByRole('heading', { name: 'Release 1.0', level: 1 })).toBeVisible()
  await expect(box(page, 'tag: Set the tag, pending, after notes, site')).toBeVisible()
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await expect(box(page, /^survey: .*, completed$/)).toBeVisible()
  await expect(box(page, /^api: .*, running, after survey$/)).toBeVisible()
  await expect(box(page, /^site: .*, running, after survey$/)).toBeVisible()
  await expect(page.getByText('2 at work')).toBeVisible()

  // By keyboard: from one to what comes before it, and to its panel.
  await box(page, /^api: /).click()
  await page.keyboard.press('ArrowLeft')
  await expect(box(page, /^survey: /)).toBeFocused()
  await expect(page.getByRole('heading', { name: 'survey Look at what is there' })).toBeVisible()
  await page.keyboard.press('ArrowRight')
  await box(page, /^api: /).click()
  await accessible(page)
  await picture(page, 'plan')

  // Somebody who only looks sees the same and can change nothing.
  const observer = await another(browser, daemon, true)
  await observer.goto(page.url())
  await expect(box(observer, /^api: .*, running/)).toBeVisible()
  await expect(observer.getByRole('button', { name: 'Halt' })).toHaveCount(0)
  await expect(observer.getByRole('button', { name: 'Message' })).toHaveCount(0)

  touch(daemon, 'api')
  await expect(box(page, /^notes: .*, completed/)).toBeVisible()
  await expect(box(page, /^tag: .*, pending/)).toBeVisible()
  touch(daemon, 'site')
  await expect(box(page, /^tag: .*, completed/)).toBeVisible()
  await expect(page.getByRole('img', { name: '5 tasks: 5 completed' })).toBeVisible()
  await expect(box(observer, /^tag: .*, completed/)).toBeVisible()
  await observer.context().close()

  await page.getByRole('button', { name: 'More for this plan' }).click()
  await page.getByRole('menuitem', { name: /^Archive it/ }).click()
  await page.getByRole('button', { name: 'Archive it' }).click()
  await expect(page.getByText('archived', { exact: true })).toBeVisible()
  await page.getByRole('link', { name: 'Plans', exact: true }).first().click()
  await expect(page.getByText('No plans yet')).toBeVisible()
  await page.getByLabel('Archived too').check()
  await expect(page.getByRole('list', { name: 'Plans' }).getByRole('link')).toContainText(['Release 1.0'])
  await picture(page, 'plans')
})

test('what a task changed is shown, merged, and a conflict said clearly', async ({ page, daemon }) => {
  repository(daemon)
  const plan = await made(
    daemon,
    '# Rewrite\n\n## [ ] two: Write the second\n\n/edit notes.txt one\\nzwei\\nthree\\n\n/say Done.\n\n## [ ] other: Write it differently\n\n/edit notes.txt one\\ndeux\\nthree\\n\n/say Done.\n',
  )
  await page.goto(daemon.at(`/plans/${plan.id}`))
  await expect(page.getByRole('img', { name: '2 tasks: 2 completed' })).toBeVisible()
  await expect(page.getByText('2 branches not merged')).toBeVisible()
  await box(page, /^two: /).click()
  await page.getByText('Changes', { exact: true }).click()
  const diff = page.getByRole('group', { name: 'Changes of notes.txt' })
  await expect(diff).toContainText('zwei')
  await accessible(page)
  await picture(page, 'task-diff')

  await page.getByRole('button', { name: 'Merge', exact: true }).click()
  await page.getByRole('button', { name: 'Merge it' }).click()
  await expect(page.getByText(/^merged as /)).toBeVisible()
  expect(git(daemon.workspace, 'show', 'HEAD:notes.txt')).toContain('zwei')

  await box(page, /^other: /).click()
  await page.getByText('Changes', { exact: true }).click()
  await expect(diff).toContainText('deux')
  await page.getByRole('button', { name: 'Merge', exact: true }).click()
  await page.getByRole('button', { name: 'Merge it' }).click()
  const refused = page.getByRole('alert')
  await expect(refused).toContainText('notes.txt')
  await expect(refused).toContainText('merge_conflict')
  await expect(page.getByText('Nothing was changed. To merge it by hand:')).toBeVisible()
  await picture(page, 'task-conflict')
  expect(git(daemon.workspace, 'status', '--porcelain')).toBe('')

  await page.getByRole('button', { name: 'Discard', exact: true }).click()
  await page.getByRole('button', { name: 'Discard it' }).click()
  await expect(page.getByText('It has no branch: it worked in the folder itself, or its branch was discarded.')).toBeVisible()
})

test('a task is failed, retried, told something; a plan and everything halted', async ({ page, daemon }) => {
  repository(daemon)
  const plan = await made(daemon, `# Mend it\n\n## [ ] fix: Mend the gate\n\n/wait-file ${sign(daemon, 'never')}\n\n## [ ] paint: Paint it\n\n- after: fix\n\n/say Green.\n`)
  await page.goto(daemon.at(`/plans/${plan.id}`))
  const tasks = page.getByRole('group', { name: 'What can be done with this task' })
  await expect(box(page, /^fix: .*, running$/)).toBeVisible()
  await box(page, /^fix: /).click()
  await tasks.getByRole('button', { name: 'More for this task' }).click()
  await page.getByRole('menuitem', { name: /^Fail it/ }).click()
  await page.getByLabel('Why', { exact: true }).fill('The hinge is broken')
  await page.getByRole('button', { name: 'Mark as failed' }).click()
  await expect(box(page, /^fix: .*, failed$/)).toBeVisible()
  await expect(page.getByText('Why The hinge is broken')).toBeVisible()
  await expect(page.getByText('failed', { exact: true }).first()).toBeVisible()

  await tasks.getByRole('button', { name: 'Retry' }).click()
  await expect(box(page, /^fix: .*, running$/)).toBeVisible()
  await expect(page.getByText('2 deploys, run 2')).toBeVisible()
  await tasks.getByRole('button', { name: 'Message' }).click()
  await page.getByLabel('Your words').fill('use the new hinge')
  await page.getByRole('button', { name: 'Send' }).click()
  await expect(page.getByText('Sent; it waits in the task’s mailbox')).toBeVisible()
  await page.getByText('Log', { exact: true }).click()
  await expect(page.getByText('to be done again')).toBeVisible()
  await expect(page.getByText('failed: The hinge is broken')).toBeVisible()
  await picture(page, 'task-log')

  await page.getByRole('button', { name: 'Halt', exact: true }).click()
  await page.getByLabel('At once, whatever agents are doing').check()
  await page.getByRole('button', { name: 'Halt the plan' }).click()
  await expect(box(page, /^fix: .*, cancelled$/)).toBeVisible()
  await expect(page.getByText('paused', { exact: true })).toBeVisible()

  await page.goto(daemon.at('/plans'))
  await page.getByRole('button', { name: 'Halt everything' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Halt everything' }).click()
  await expect(page.getByText('Everything is halted')).toBeVisible()
  await accessible(page)
  await picture(page, 'plans-halted')
  await page.getByRole('button', { name: 'Lift the halt' }).click()
  await expect(page.getByText('Everything is halted')).toHaveCount(0)
})

test('plans at phone width, in dark, and with hundreds of tasks', async ({ page, daemon }) => {
  repository(daemon)
  const many = Array.from({ length: 300 }, (_, at) => `## [ ] t${at}: Piece ${at}\n\n${at >= 20 ? `- after: t${at - 20}\n\n` : ''}/say ok\n`)
  const big = await made(daemon, `# A large plan\n\n${many.join('\n')}`, false)
  const small = await made(daemon, '# A small one\n\n<script>alert(1)</script> \u202eturned\n\n## [ ] a: First\n\n/say a\n\n## [ ] b: Second\n\n- after: a\n\n/say b\n', false)
  await page.goto(daemon.at(`/plans/${big.id}`))
  await expect(page.getByRole('list', { name: 'Tasks' }).getByRole('button')).toHaveCount(300)
  await page.getByText('Graph', { exact: true }).click()
  await expect(box(page, 't299: Piece 299, pending, after t279')).toBeAttached()
  await picture(page, 'plan-large')
  await page.getByRole('button', { name: 'Dark colours' }).click()
  await page.goto(daemon.at(`/plans/${small.id}`))
  await expect(page.getByText('<script>alert(1)</script>')).toBeVisible()
  await expect(box(page, 'b: Second, pending, after a')).toBeVisible()
  await page.keyboard.press('j')
  await expect(page.getByRole('heading', { name: 'b Second' })).toBeVisible()
  await accessible(page)
  await picture(page, 'plan-dark')
  await phone(page)
  await page.reload()
  await expect(page.getByRole('list', { name: 'Tasks' }).getByRole('button')).toHaveCount(2)
  await fits(page)
  await accessible(page)
  await picture(page, 'plan-phone')
  await page.goto(daemon.at('/plans'))
  await expect(page.getByRole('list', { name: 'Plans' }).getByRole('link')).toHaveCount(2)
  await fits(page)
  await picture(page, 'plans-phone')
})

interface Door {
  url: string
  headers: Record<string, string>
}

/** Calls Lanyard's own tools as a session's agent does. */
async function agent(daemon: Daemon): Promise<(name: string, args: Record<string, unknown>) => Promise<Record<string, unknown>>> {
  const { session } = await daemon.api<{ session: string }>('POST', '/sessions', { source: 'external', agent: 'Coordinator', workspace: daemon.workspace })
  const door = await daemon.api<Door>('POST', '/mcp/lanyard/address', { session })
  return async (name, args) => {
    const response = await fetch(door.url, {
      method: 'POST',
      headers: { ...door.headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
    })
    const { result } = (await response.json()) as { result: { isError: boolean; content: { text: string }[] } }
    expect(result.isError, JSON.stringify(result)).toBe(false)
    return JSON.parse(result.content[0]?.text ?? '{}') as Record<string, unknown>
  }
}

test('FND-M4: what agents plan is shown with its phases, steps and hand-offs', async ({ page, daemon }) => {
  const call = await agent(daemon)
  const plan = await call('memory_plan', { action: 'create', title: 'Checkout', phases: ['design', 'build'] })
  const steps = [
    { task: 'Draw the form', phase: 'design' },
    { task: 'Test it', type: 'test', phase: 'build', notes: 'with two cards', acceptance: ['cargo test is green'] },
  ]
  await call('memory_steps', { action: 'add', steps })
  await call('memory_steps', { action: 'complete', step: 1, evidence: 'a picture' })
  await call('memory_agent', { action: 'handoff', to_agent: 'Executor', reason: 'the design stands' })

  await page.goto(daemon.at('/plans'))
  const row = page.getByRole('list', { name: 'Plans' }).getByRole('link', { name: /Checkout/ })
  await expect(row).toContainText('1 of 2 steps done')
  await expect(row).not.toContainText('no tasks')
  await row.click()
  await expect(page).toHaveURL(new RegExp(String(plan.id)))
  await expect(page.getByText('in the hands of Executor')).toBeVisible()
  const build = page.getByRole('region', { name: 'Phase build' })
  await expect(build).toContainText('Test it')
  await expect(build).toContainText('with two cards')
  await expect(build).toContainText('cargo test is green')
  await expect(page.getByRole('region', { name: 'Phase design' })).toContainText('Evidence: a picture')
  await expect(page.getByRole('list', { name: 'Hand-offs' })).toContainText('the design stands')
  await expect(page.getByText('No tasks yet')).toHaveCount(0)
  await accessible(page)
  await fits(page)
})
