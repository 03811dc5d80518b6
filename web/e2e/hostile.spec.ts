// Text that means harm, or is just very long, is shown as what it is.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { accessible, expect, fits, picture, test } from './support/test'

const EVIL = '<script>document.title="owned"</script><img src=x onerror=alert(1)><style>*{display:none}</style>'

test('hostile text of agents and tools does nothing but read badly', async ({ page, daemon }) => {
  const dialogs: string[] = []
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.message())
    void dialog.dismiss()
  })
  writeFileSync(join(daemon.workspace, 'evil.sh'), `printf '\\033[31mred\\033[0m\\033]0;owned\\007 \\342\\200\\256txt.exe ${EVIL.replaceAll('"', '\\"')}'\n`)
  const session = daemon.script(
    `Evil ${EVIL}`,
    [
      `/say! ${EVIL}`,
      '/say! \\n\\n[click](javascript:alert(1)) **bold** \u202egnp.exe\u202c \u001b[31mred\u001b[0m \\n\\n[site](https://example.org/)',
      `/think ${EVIL}`,
      '/run sh evil.sh',
      "/run head -c 60000 /dev/zero | tr '\\0' x",
      `/tool-fail ${'x'.repeat(300)} ${EVIL}`,
      `/plan ${EVIL} | \u202eb`,
      `/edit evil.html ${EVIL}`,
      '/say the end',
    ].join('\n'),
  )
  await page.goto(daemon.at(`/sessions/${session}`))
  const log = page.getByRole('group', { name: 'Events' })
  await expect(log.getByText('Completed', { exact: true })).toBeVisible()
  await expect(log.locator('article.agent').first()).toContainText(EVIL)
  await expect(log.locator('article.agent').nth(1)).toContainText('⟦RLO⟧gnp.exe⟦PDF⟧ red')
  await expect(log.locator('article.agent').getByRole('link', { name: 'site' })).toHaveAttribute('rel', 'noreferrer')
  await expect(log.getByRole('link', { name: 'click' })).toHaveCount(0)
  const call = log.getByRole('article', { name: 'Tool call' }).filter({ hasText: 'evil.sh' })
  await call.getByRole('button').click()
  await expect(call.locator('section pre')).toContainText('red ⟦RLO⟧txt.exe <script>')
  const long = log.getByRole('article', { name: 'Tool call' }).filter({ hasText: 'head -c' })
  await long.getByRole('button').click()
  await long.getByRole('button', { name: /^Show all 58.6 KiB/ }).click()
  await expect(long.getByRole('button', { name: 'Show less' })).toBeVisible()

  await expect(log.locator('script, img, style, iframe')).toHaveCount(0)
  await expect(page).not.toHaveTitle(/^owned/)
  await fits(page)
  await accessible(page)
  await picture(page, 'transcript-hostile')
  expect(dialogs).toEqual([])
})

test('a line of a megabyte and two thousand chunks hang nothing', async ({ page, daemon }) => {
  const session = daemon.script('Endless', '/endless 1048576\n/chatter 2000 400\n/say the end')
  await page.goto(daemon.at(`/sessions/${session}`))
  const log = page.getByRole('group', { name: 'Events' })
  await expect(log.getByText('Completed', { exact: true })).toBeVisible()
  await daemon.api('POST', `/sessions/${session}/turns`, { prompt: `${'x'.repeat(1_000_000)}\n/say all read` })
  await expect(log.getByText('all read', { exact: true })).toBeVisible()
  await log.getByRole('button', { name: 'Show 256.0 KiB more of 976.6 KiB of the message' }).click()
  await expect(log.getByRole('group', { name: 'All of the message' })).toBeVisible()
  // The page still answers.
  await page.getByRole('radiogroup', { name: 'What is shown' }).getByText('Control', { exact: true }).click()
  await expect(log.getByText('all read', { exact: true })).toBeHidden()
  await fits(page)
})
