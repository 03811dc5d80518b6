// A plan is changed from its page: tasks are added and edited, and those that ask look so.
import { expect, fits, phone, picture, spotless, test } from './support/test'

test.use({ config: '[daemon]\ndefault_agent = "demo"\n' })

test('tasks are added and edited, the graph fits, and one that asks looks so', async ({ page, daemon }) => {
  const chain = Array.from({ length: 7 }, (_, at) => `## [ ] t${at}: Step ${at}\n\n${at === 0 ? '' : `- after: t${at - 1}\n\n`}/say done\n`).join('\n')
  const plan = await daemon.api<{ id: string }>('POST', '/plans/import', { markdown: `# Long\n\n${chain}`, workspace: daemon.workspace, start: false })
  await page.goto(daemon.at(`/plans/${plan.id}`))
  const graph = page.getByRole('group', { name: /^Tasks as they wait/ })
  await expect(graph.getByRole('button')).toHaveCount(7)
  const fit = page.getByRole('button', { name: 'Fit all of it' })
  await fit.click()
  await expect(graph.getByRole('button', { name: /^t6: / })).toBeInViewport({ ratio: 1 })
  await expect(graph.getByRole('button', { name: /^t0: / })).toBeInViewport({ ratio: 1 })
  await page.getByRole('button', { name: 'Readable size' }).click()

  await page.getByRole('button', { name: 'Add a task' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Title').fill('Look it over')
  await dialog.getByLabel('Key in the plan').fill('look')
  await dialog.getByLabel('What its agent is told').fill('/ask-tool deploy Deploy the site?\n/say seen')
  await spotless(page)
  await picture(page, 'task-add')
  await dialog.getByRole('button', { name: 'Add the task' }).click()
  await expect(dialog).toBeHidden()
  await expect(graph.getByRole('button', { name: 'look: Look it over, pending' })).toHaveAttribute('aria-pressed', 'true')

  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await dialog.getByLabel('Title').fill('Look over it')
  await dialog.getByRole('checkbox', { name: /Step 0/ }).check()
  // A key that is held gives nothing twice, and what it waits for is sent as a whole.
  await dialog.getByLabel('Priority').selectOption('high')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await expect(graph.getByRole('button', { name: 'look: Look over it, pending, after t0' })).toBeVisible()
  await expect(page.getByRole('button', { name: 'Edit', exact: true })).toBeFocused()
  // What would wait for itself is not offered.
  await graph.getByRole('button', { name: /^t0: / }).click()
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await expect(dialog.getByRole('checkbox')).toHaveCount(0)
  await page.keyboard.press('Escape')

  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await expect(graph.getByRole('button', { name: 'look: Look over it, running, asks, after t0' })).toBeVisible()
  await spotless(page)
  await picture(page, 'plan-asks')
  await page.emulateMedia({ colorScheme: 'dark' })
  await spotless(page)
  await picture(page, 'plan-asks-dark')
  await phone(page)
  await fits(page)
  await picture(page, 'plan-asks-phone')
})
