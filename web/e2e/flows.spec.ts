// Flows: started, followed live, asked and answered in place, cancelled and taken up again.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Daemon } from './support/daemon'
import { flowConfig, FlowStage, flowThatAsks } from './support/flow-stage'
import { accessible, another, expect, fits, give, phone, picture, test } from './support/test'

const touch = (daemon: Daemon, name: string): void => writeFileSync(join(daemon.folder, name), '')

test.describe('with checks', () => {
  const CHECK = ['sh', '-c', 'test -f fixed && echo "2 tests passed" || { echo "greets politely: no greeting"; exit 1; }']
  test.use({ config: flowConfig(`rules.phase_gate = "auto"\n[[flow.quality]]\nname = "tests"\ncommand = ${JSON.stringify(CHECK)}`) })

  test('a flow is started from the page and followed live through checks, reviews and phases to its report', async ({ page, daemon }) => {
    const stage = new FlowStage(daemon)
    const correction = { readiness: 'ready_with_corrections', score: 70, summary: 'Nearly there.', items: [{ id: 'R1', title: 'Greet by name', reason: 'the plan says polite', action: 'auto_fix', priority: 'P1' }] }
    stage.author(`/wait-file ${join(daemon.folder, 'go')}\n/edit greet.sh echo hello\n/usage 1200 80`)
    stage.author('/run touch fixed\n/say The test was right.')
    stage.reviewer('/say I looked at it.\n/usage 900 40', JSON.stringify(correction))
    stage.author('/edit greet.sh echo hello you\n/say By name now.')
    stage.reviewer('/say Better.')
    stage.author(`/wait-file ${join(daemon.folder, 'tell')}\n/edit CHANGES.md It greets.`)
    stage.reviewer('/say Well told.')
    const plan = join(daemon.workspace, 'PLAN.md')
    writeFileSync(plan, '# Greetings 1.0\n\nA program that greets.\n\n## Phase 1: Greet\n\nSay hello in the language of the user.\n\n- [ ] `greet.sh` prints a greeting\n\n## Phase 2: Tell people\n\n- [ ] a line in CHANGES.md\n')

    await page.goto(daemon.at('/flows'))
    await expect(page.getByText('No flows yet')).toBeVisible()
    await accessible(page)
    await picture(page, 'flows-empty')
    await page.getByRole('button', { name: 'Start a flow' }).click()
    await page.getByLabel('The plan’s file, by its whole path').fill(join(daemon.workspace, 'NONE.md'))
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await expect(page.getByRole('alert')).toContainText('NONE.md')
    await page.getByLabel('The plan’s file, by its whole path').fill(plan)
    await page.getByRole('combobox', { name: /^Author/ }).selectOption('author')
    await accessible(page)
    await picture(page, 'flow-new')
    await page.getByRole('button', { name: 'Start', exact: true }).click()

    await expect(page.getByRole('heading', { name: 'Greetings 1.0', level: 1 })).toBeVisible()
    const first = page.getByRole('list', { name: 'Steps of Phase 1: Greet' })
    await expect(first.getByText('at work', { exact: true })).toBeVisible()
    touch(daemon, 'go')
    await expect(first.getByText('1 of 1 failed')).toBeVisible()
    await expect(first.getByText('ready with corrections')).toBeVisible()
    await expect(first.getByText('Greet by name')).toBeVisible()
    const second = page.getByRole('list', { name: 'Steps of Phase 2: Tell people' })
    await expect(second.getByText('at work', { exact: true })).toBeVisible()
    await expect(page.getByRole('button', { name: /Phase 1: Greet complete/ })).toBeVisible()
    await expect(first.getByText(/^failed with 1 in/)).toBeVisible()
    await expect(first.getByText('greets politely: no greeting')).toBeVisible()
    await accessible(page)
    await picture(page, 'flow')

    touch(daemon, 'tell')
    await expect(second.getByText('Completed', { exact: true })).toBeVisible()
    await expect(page.getByText('all phases are done')).toBeVisible()
    await page.getByText('Report', { exact: true }).click()
    await expect(page.getByRole('region', { name: 'Report' })).toContainText('is completed')
    await accessible(page)
    await picture(page, 'flow-report')
    await page.goto(daemon.at('/flows'))
    await expect(page.getByRole('list', { name: 'Flows' }).getByRole('link')).toContainText(['Greetings 1.0'])
  })
})

test.describe('with people', () => {
  test.use({ config: flowConfig() })

  test('S2-01 S2-02 S2-07 a flow asks a person and goes on in the same session with the words it was given', async ({ page, daemon, browser }) => {
    const { flow } = await flowThatAsks(daemon)
    await page.goto(daemon.at('/flows'))
    await expect(page.getByText('waits: The author needs a person: Which greeting?')).toBeVisible()
    await picture(page, 'flows')
    await page.getByRole('link', { name: /Greetings 1\.0/ }).click()
    const card = page.getByRole('article')
    await expect(card).toContainText('Which greeting?')
    await accessible(page)
    await picture(page, 'flow-asks')

    const observer = await another(browser, daemon, true)
    await observer.goto(daemon.at(`/flows/${flow}`))
    await expect(observer.getByRole('article')).toContainText('Which greeting?')
    await expect(observer.getByRole('button', { name: 'Cancel the flow' })).toHaveCount(0)

    await card.getByRole('textbox').fill('the page is right')
    await give(card.getByRole('button', { name: 'Continue the session' }))
    await expect(card).toContainText('Continue the session, by you')
    await expect(page.getByText('told “the page is right”')).toBeVisible()
    await expect(page.getByText('goes on in')).toBeVisible()
    await expect(page.getByText('all phases are done')).toBeVisible()
    await expect(observer.getByRole('article')).toContainText('Continue the session, by')
    await observer.context().close()
  })

  test('S2-11 a flow is cancelled and taken up again, over a restart of the daemon', async ({ page, daemon }) => {
    const stage = new FlowStage(daemon)
    stage.script('author', `/wait-file ${join(daemon.folder, 'never')}`)
    const flow = await stage.begin('Greetings 2.0', ['Greet', 'Part'])
    await page.goto(daemon.at(`/flows/${flow}`))
    const steps = page.getByRole('list', { name: 'Steps of Phase 1: Greet' })
    await expect(steps.getByText('at work', { exact: true })).toBeVisible()
    await page.getByRole('button', { name: 'Cancel the flow' }).click()
    await page.getByLabel('Why, for the log').fill('wrong plan')
    await page.getByRole('button', { name: 'Cancel it' }).click()
    await expect(steps.getByText(/^Aborted/)).toBeVisible()
    await expect(page.getByRole('article')).toHaveCount(0)

    await daemon.kill9()
    await daemon.start()
    for (let phase = 0; phase < 2; phase++) {
      stage.author('/say Done now.')
      stage.reviewer('/say Good.')
    }
    await page.getByRole('button', { name: 'Take it up again' }).click()
    await expect(steps.getByText('Taken up again')).toBeVisible()
    await expect(page.getByText('all phases are done')).toBeVisible()
    await page.getByRole('button', { name: 'Dark colours' }).click()
    await accessible(page)
    await picture(page, 'flow-dark')
    await phone(page)
    await accessible(page)
    await picture(page, 'flow-phone')
    await page.goto(daemon.at('/flows'))
    await expect(page.getByRole('list', { name: 'Flows' }).getByRole('link')).toHaveCount(1)
    await fits(page)
    await picture(page, 'flows-phone')
  })
})
