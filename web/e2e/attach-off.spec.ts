import { accessible, expect, picture, test } from './support/test'

test.use({ config: '[features]\nattach = "off"\n' })

test('FND-M7 with attaching switched off the page says so, follows by asking, and sends', async ({ page, daemon }) => {
  const session = daemon.script('Quiet', '/wait-file go\n/say the first answer')
  // What the page is told of the session at first is older than the log it reads then.
  await page.route(
    (url) => url.pathname === `/api/v1/sessions/${session}`,
    async (route) => {
      const told = await route.fetch()
      daemon.touch('go')
      await expect.poll(() => daemon.run('logs', session)).toContain('turn.finished')
      await route.fulfill({ response: told })
    },
    { times: 1 },
  )
  await page.goto(daemon.at(`/sessions/${session}`))
  const log = page.getByRole('group', { name: 'Events' })
  await expect(log.getByText('the first answer', { exact: true })).toBeVisible()
  await expect(page.getByText('Live attach is switched off')).toBeVisible()
  await expect(page.getByText('Reconnecting…')).toHaveCount(0)
  await page.getByRole('textbox', { name: 'Message to the agent' }).fill('/say the second answer')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await expect(log.getByText('the second answer', { exact: true })).toBeVisible()
  await accessible(page)
  await picture(page, 'session-attach-off')
  // What others do is seen as well, also over a restart.
  await daemon.kill9()
  await expect(page.getByText('Reconnecting… the agent goes on')).toBeVisible()
  await daemon.start()
  await expect(page.getByText('Live attach is switched off')).toBeVisible()
  daemon.run('send', session, '/say the third answer', '--delivery', 'queue')
  await expect(log.getByText('the third answer', { exact: true })).toBeVisible()
})
