import { accessible, another, expect, fits, phone, picture, test } from './support/test'

// Nobody listens there, so what is sent outward is given up at once.
test.use({ config: '[notifications.webhooks.ops]\nurl = "http://127.0.0.1:9/hook"\nattempts = 1\nretry_ms = 100\n' })

test('S3-43 notifications are acknowledged, snoozed, dismissed and read, one by one and all at once', async ({ page, daemon, browser }) => {
  const { session } = await daemon.api<{ session: string }>('POST', '/sessions', { title: 'Lost' })
  for (let at = 0; at < 10; at += 1) await expect(daemon.api('GET', `/sessions/${session}/attach?after=99999`)).rejects.toThrow('seq_in_future')
  daemon.script('Deploy', '/ask May I deploy?')
  daemon.script('Migrate', '/ask May I migrate?')
  daemon.script('Clean', '/ask May I clean up?')

  const sidebar = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: /^Inbox/ })
  await expect(sidebar).toContainText('4')
  await sidebar.click()
  await page.getByRole('link', { name: 'All notifications' }).click()
  const list = page.getByRole('list', { name: 'Notifications' })
  const row = (text: string) => list.getByRole('listitem').filter({ hasText: text })
  await expect(list.locator('> li')).toHaveCount(4)
  await accessible(page)
  await picture(page, 'notifications')

  // Others are marked as read, and the count follows.
  await row('May I deploy?').getByRole('button', { name: 'Mark read' }).click()
  await expect(row('May I deploy?').getByText('read', { exact: true })).toBeVisible()
  // An approval waits until it is answered, whoever has read of it.
  await expect(sidebar).toContainText('4')

  // An alert is acknowledged, snoozed, dismissed.
  const alert = row('Continuity is degraded')
  await expect(alert.getByRole('button', { name: 'Mark read' })).toBeHidden()
  await alert.getByRole('button', { name: 'Acknowledge' }).click()
  await expect(alert.getByText('acknowledged', { exact: true })).toBeVisible()
  await alert.getByRole('button', { name: 'Snooze' }).click()
  await alert.getByRole('menuitem', { name: '1 hour' }).click()
  await expect(alert.getByText(/^snoozed until/)).toBeVisible()
  const page1 = await daemon.api<{ notifications: { kind: string; snoozed_until: string }[] }>('GET', '/notifications?status=snoozed')
  const minutes = (Date.parse(page1.notifications[0]?.snoozed_until ?? '') - Date.now()) / 60_000
  expect(minutes).toBeGreaterThan(50)
  expect(minutes).toBeLessThan(61)

  // In full, with where it was sent.
  await alert.getByRole('button', { name: /Continuity is degraded/ }).click()
  const detail = page.getByRole('dialog')
  await expect(detail.getByText('given up')).toBeVisible()
  await expect(detail.getByText('1 try')).toBeVisible()
  await accessible(page)
  await picture(page, 'notification-detail')
  await detail.getByLabel('Note').fill('known, deploying')
  await detail.getByRole('button', { name: 'Acknowledge' }).click()
  await expect(detail.getByText('known, deploying')).toBeVisible()
  await page.keyboard.press('Escape')
  await alert.getByRole('button', { name: 'Dismiss' }).click()
  await expect(list.locator('> li')).toHaveCount(3)

  // All at once, of what the filter shows.
  await page.getByLabel('Kind').selectOption('gate_waiting')
  await page.getByRole('button', { name: 'Mark all read' }).click()
  await expect(page.getByText('2 notifications marked read')).toBeVisible()
  await page.getByRole('button', { name: 'Ack all' }).click()
  await expect(page.getByText('3 notifications acknowledged')).toBeVisible()
  await page.getByRole('button', { name: 'Snooze all 30m' }).click()
  await expect(list.getByText(/^snoozed until/)).toHaveCount(3)
  await expect(sidebar).not.toContainText('waiting')
  await page.getByRole('button', { name: 'Dismiss all' }).click()
  await expect(page.getByText('Nothing fits this filter')).toBeVisible()

  // What still goes on stays, whatever is purged.
  await page.getByRole('radio', { name: 'Dismissed' }).check({ force: true })
  await expect(list.locator('> li')).toHaveCount(3)
  await page.getByRole('button', { name: 'Purge dismissed' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Purge', exact: true }).click()
  await expect(page.getByText('Nothing was removed')).toBeVisible()

  const observer = await another(browser, daemon, true)
  await phone(observer)
  await observer.emulateMedia({ colorScheme: 'dark' })
  await observer.goto(daemon.at('/notifications?status=all'))
  await expect(observer.getByRole('list', { name: 'Notifications' }).locator('> li')).toHaveCount(4)
  await expect(observer.getByRole('button', { name: 'Dismiss all' })).toBeHidden()
  await accessible(observer)
  await picture(observer, 'notifications-phone-dark')
  await fits(observer)
})
