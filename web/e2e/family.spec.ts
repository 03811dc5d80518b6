import { accessible, expect, fits, phone, picture, test } from './support/test'
import type { Daemon } from './support/daemon'

/** A task whose agent has two subagents, one of them with one of its own, and two parts, one of which is done. */
async function release(daemon: Daemon): Promise<{ task: string; session: string }> {
  const add = (title: string, prompt: string, ...more: string[]): string =>
    daemon.json<{ id: string }>('task', 'add', title, '--agent', 'demo', '--prompt', prompt, '--deploy', ...more).id
  const task = add('Release 1.0', '/spawn scout /wait-file go\n/spawn writer /spawn helper /wait-file go ; /join\n/join')
  // Parts of a task are children of its session, once it has one.
  await expect.poll(() => daemon.json<{ state: string }>('task', 'show', task).state).toBe('running')
  add('Write the notes', '/wait-file go', '--part-of', task)
  const links = add('Check the links', '/say Two links were broken.', '--part-of', task)
  daemon.run('task', 'wait', links)
  const { session } = daemon.json<{ session: string }>('task', 'show', task)
  return { task, session }
}

test('S1-27 S1-34 a family is drawn with its levels, and its subtree is stopped with a receipt', async ({ page, daemon }) => {
  const { task, session } = await release(daemon)
  await page.goto(daemon.at(`/sessions/${session}/family`))
  const drawing = page.getByRole('group', { name: 'The family, drawn' })
  for (const name of ['Release 1.0', 'scout', 'writer', 'helper', 'Write the notes', 'Check the links']) {
    await expect(drawing.getByRole('link', { name, exact: true })).toBeVisible()
  }
  await expect(drawing.getByText('Level 3', { exact: true })).toBeVisible()
  await expect(page.getByText('6 sessions, 5 live')).toBeVisible()
  await expect(page.getByRole('region', { name: 'Workers' })).toContainText('Write the notes')
  await expect(page.getByRole('region', { name: 'Mail' })).toContainText('Two links were broken.')

  // Who spawned whom.
  await drawing.getByRole('button', { name: 'Look at helper' }).press('Enter')
  const helper = page.getByRole('region', { name: 'helper' })
  await expect(helper.getByRole('link', { name: 'writer' })).toBeVisible()
  await expect(helper).toContainText('depth 3 of 3')
  await drawing.getByRole('button', { name: 'Look at Release 1.0' }).press('Enter')
  await expect(page.getByRole('region', { name: 'Release 1.0' })).toContainText('4 children')

  // Somebody new shows by itself.
  daemon.json('task', 'add', 'Tag it', '--agent', 'demo', '--prompt', '/wait-file go', '--deploy', '--part-of', task)
  await expect(drawing.getByRole('link', { name: 'Tag it', exact: true })).toBeVisible()
  await accessible(page)
  await picture(page, 'family')
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.reload()
  await expect(page.getByText('7 sessions, 6 live')).toBeVisible()
  await accessible(page)
  await picture(page, 'family-dark')
  await phone(page)
  await expect(drawing.getByText('Level 3', { exact: true })).toHaveCount(0)
  await fits(page)
  await picture(page, 'family-phone')
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.emulateMedia({ colorScheme: 'light' })

  // Folded, those below are gone from the drawing.
  await drawing.getByRole('button', { name: 'Fold those below writer' }).click()
  await expect(drawing.getByRole('link', { name: 'helper', exact: true })).toHaveCount(0)
  await drawing.getByRole('button', { name: 'Unfold those below writer' }).click()

  await drawing.getByRole('button', { name: 'Stop Release 1.0 and all below' }).click()
  const dialog = page.getByRole('dialog', { name: 'Stop Release 1.0' })
  await dialog.getByRole('radio', { name: /^Now/ }).check()
  await dialog.getByLabel('Reason, for the agent and the log').fill('wrong branch')
  await dialog.getByRole('button', { name: 'Stop the family' }).click()
  const receipt = page.getByRole('region', { name: 'Stop of Release 1.0 and all below' })
  await expect(receipt).toBeVisible()
  await expect(receipt.getByRole('status')).toContainText('Confirmed: nothing of it lives any more.')
  await expect(receipt.getByText('confirmed', { exact: true })).toHaveCount(6)
  await expect(page.getByText('7 sessions, 0 live')).toBeVisible()
  await accessible(page)
  await picture(page, 'family-stopped')
})

test('mail that nobody can take is sent again or acknowledged', async ({ page, daemon }) => {
  const { session } = await release(daemon)
  daemon.script('Listener', '/say here I am')
  daemon.run('stop', session, '--subtree', '--now')
  await page.goto(daemon.at(`/sessions/${session}/family`))
  const mail = page.getByRole('region', { name: 'Mail' })
  const letter = mail.getByRole('listitem').filter({ hasText: 'Two links were broken.' })
  await expect(letter).toContainText('nobody can take it')
  await letter.getByRole('button', { name: 'Send again' }).click()
  const dialog = page.getByRole('dialog', { name: 'Send it again' })
  await dialog.getByLabel('To whom').selectOption({ label: 'Listener' })
  await dialog.getByRole('button', { name: 'Send again' }).click()
  await expect(letter).toContainText(/given|waits/)
  await expect(letter.getByRole('link', { name: 'Listener' })).toBeVisible()
  await letter.getByRole('button', { name: 'Acknowledge' }).click()
  await expect(letter).toHaveCount(0)
})
