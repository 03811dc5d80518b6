import { accessible, expect, fits, phone, picture, test } from './support/test'

test('S3-40 the widget shows rates, counters, status and alerts, and is refreshed by hand', async ({ page, daemon }) => {
  const { session } = await daemon.api<{ session: string }>('POST', '/sessions', { title: 'Lost' })
  /** Comes back with a position the log does not reach. */
  const fail = async (times: number): Promise<void> => {
    for (let at = 0; at < times; at += 1) await expect(daemon.api('GET', `/sessions/${session}/attach?after=99999`)).rejects.toThrow('seq_in_future')
  }
  await page.getByRole('link', { name: 'Health' }).click()
  const widget = page.getByRole('region', { name: 'Continuity' })
  await expect(widget.getByText('ok', { exact: true })).toBeVisible()
  await expect(widget.getByText('no resumes yet')).toBeVisible()

  await fail(12)
  await widget.getByRole('button', { name: 'Refresh' }).click()
  await expect(widget.getByText('degraded', { exact: true })).toBeVisible()
  await expect(widget.getByText('12 of 12 attaches failed', { exact: true })).toBeVisible()
  await expect(widget.getByText(/It ends at 98 %/)).toBeVisible()
  await expect(widget.getByText(/An alert begins when a rate of at least 10 attempts is beyond its limit/)).toBeVisible()
  await expect(page.getByText('storage ok')).toBeVisible()
  await accessible(page)
  await picture(page, 'continuity')

  // By itself too.
  await fail(1)
  await expect(widget.getByText('13 of 13 attaches failed', { exact: true })).toBeVisible({ timeout: 45_000 })
  await phone(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  await picture(page, 'continuity-phone-dark')
  await fits(page)
})
