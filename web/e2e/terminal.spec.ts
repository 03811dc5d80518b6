// A program on a terminal in the browser: watched, typed into by the writer alone, and there again after a reload and
// after the daemon was away.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Locator, Page } from '@playwright/test'

import type { Daemon } from './support/daemon'
import { accessible, another, expect, test } from './support/test'

const PROGRAM = `
stty raw -echo
count=0
printf '\\033[?1049h\\033[2J\\033[1;1H\\033[38;2;10;200;30mfull screen\\033[m'
while :; do
  set -- $(stty size)
  printf '\\033[2;1Hsize %sx%s\\033[K' "$2" "$1"
  key=$(dd bs=1 count=1 2>/dev/null)
  case $key in q) break ;; [a-z]) count=$((count+1)) ;; esac
  printf '\\033[3;1Hkeys %s last <%s>\\033[K' "$count" "$key"
done
printf '\\033[?1049lgoodbye\\n'
`

function start(daemon: Daemon): string {
  writeFileSync(join(daemon.workspace, 'program.sh'), PROGRAM)
  return daemon.run('run', '--pty', '--detach', '--cwd', daemon.workspace, '--', 'sh', 'program.sh').trim()
}

const view = (page: Page): Locator => page.getByRole('region', { name: 'Terminal of the session' })
const rows = (page: Page): Locator => page.locator('.xterm-rows')

test('a terminal is watched, typed into by one, and there again after a reload and a restart', async ({ page, daemon, browser }) => {
  const session = start(daemon)
  await page.goto(daemon.at(`/sessions/${session}`))
  await expect(rows(page)).toContainText('full screen')
  await expect(rows(page)).toContainText('size 80x24')
  await accessible(page)

  // One who watches types nothing.
  await page.locator('.xterm-screen').click()
  await page.keyboard.type('x')
  await view(page).getByRole('button', { name: 'Write alone' }).click()
  await expect(view(page)).toContainText('You write alone.')
  await page.locator('.xterm-screen').click()
  await page.keyboard.type('ab')
  await expect(rows(page)).toContainText('keys 2 last <b>')
  // The window is the writer's.
  await expect(rows(page)).not.toContainText('size 80x24')

  const second = await another(browser, daemon, true)
  await second.goto(daemon.at(`/sessions/${session}`))
  await expect(rows(second)).toContainText('keys 2 last <b>')

  await page.reload()
  await expect(rows(page)).toContainText('keys 2 last <b>')
  await daemon.kill9()
  await daemon.start()
  await expect(view(page).getByRole('status').first()).toContainText('×')
  await expect(rows(page)).toContainText('keys 2 last <b>')
  await view(page).getByRole('button', { name: /Write alone|Take over/ }).click()
  await expect(view(page)).toContainText('You write alone.')
  await page.locator('.xterm-screen').click()
  await page.keyboard.type('q')
  await expect(view(page)).toContainText('The program has ended.')
  await expect(page.getByLabel('Last screen')).toContainText('goodbye')
})
