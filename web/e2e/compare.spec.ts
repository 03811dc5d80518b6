// Several sessions beside each other.
import { expect, fits, phone, picture, spotless, test } from './support/test'

test('sessions are compared beside each other, live, and one is added and taken out', async ({ page, daemon }) => {
  const ids = ['left', 'right', 'third'].map((name) => daemon.script(`The ${name} way`, `/say! ${name} at it\n/edit ${name}.md one\\n\n/usage 1200 80\n/cost 3\n/wait-file ${name}\n/say! ${name} done`))
  for (const name of ['left', 'right']) {
    const row = page.getByRole('row').filter({ hasText: `The ${name} way` })
    await row.getByRole('checkbox').check()
  }
  await page.getByRole('region', { name: 'Marked sessions' }).getByRole('button', { name: 'Compare' }).click()
  await expect(page).toHaveURL(/\/compare\/sess_[^/]+\/sess_[^/]+$/)
  const pane = (name: string): ReturnType<typeof page.getByRole> => page.getByRole('region', { name: `The ${name} way`, exact: true })
  await expect(pane('left').getByText('left at it', { exact: true })).toBeInViewport()
  await expect(pane('right').getByText('right at it', { exact: true })).toBeInViewport()
  daemon.touch('right')
  await expect(pane('right').getByText('right done', { exact: true })).toBeInViewport()
  await expect(pane('left').getByText('left done', { exact: true })).toBeHidden()

  // Keys act on the one that has the focus.
  await pane('left').getByRole('group', { name: /^Events of/ }).focus()
  await page.keyboard.press('/')
  await expect(pane('left').getByRole('searchbox')).toBeFocused()
  await page.keyboard.type('at it')
  await expect(pane('left').getByRole('search').getByRole('status')).toHaveText(/of/)
  await spotless(page)
  await picture(page, 'compare')

  await page.getByLabel('Add a session').selectOption({ label: 'The third way' })
  await expect(pane('third').getByText('third at it', { exact: true })).toBeVisible()
  await expect(pane('left').getByRole('searchbox')).toHaveValue('at it')
  await expect(page).toHaveURL(new RegExp(`${ids[2]}$`))
  await page.emulateMedia({ colorScheme: 'dark' })
  await picture(page, 'compare-dark')
  await page.reload()
  await expect(pane('third').getByText('third at it', { exact: true })).toBeVisible()
  await phone(page)
  await spotless(page)
  await picture(page, 'compare-phone')
  await fits(page)
  await page.getByRole('button', { name: 'Take The third way out' }).click()
  await expect(pane('third')).toBeHidden()
  await page.getByRole('button', { name: 'Take The left way out' }).click()
  await expect(page).toHaveURL(/\/sessions\/sess_/)
})
