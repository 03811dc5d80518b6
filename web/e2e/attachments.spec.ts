// Attachments: a picture is pasted, seen before it is sent, sent with a message, and seen in the transcript and after a
// reload. Files are chosen and dropped, and removed before they are sent.
import type { Locator, Page } from '@playwright/test'

import { accessible, expect, openSession, test } from './support/test'

const log = (page: Page): Locator => page.getByRole('group', { name: 'Events' })
const send = (page: Page): Locator => page.getByRole('button', { name: 'Send', exact: true })
const message = (page: Page): Locator => page.getByLabel('Message to the agent', { exact: true })
const drafts = (page: Page): Locator => page.getByRole('list', { name: 'Attached to the message' })

/** A red point of one by one, as PNG. */
const POINT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

/** Pastes or drops a file, as a browser does. */
async function give(target: Locator, how: 'paste' | 'drop', name: string, type: string, base64: string): Promise<void> {
  await target.evaluate(
    (element, given) => {
      const bytes = Uint8Array.from(atob(given.base64), (letter) => letter.charCodeAt(0))
      const data = new DataTransfer()
      data.items.add(new File([bytes], given.name, { type: given.type }))
      const event =
        given.how === 'paste'
          ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
          : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
      element.dispatchEvent(event)
    },
    { how, name, type, base64 },
  )
}

const drawn = (image: Locator): Promise<number> => image.evaluate((element) => (element as HTMLImageElement).naturalWidth)

test('a pasted picture is seen before it is sent, in the transcript, and after a reload', async ({ page, daemon }) => {
  const session = daemon.script('A picture', '/say! ready')
  await openSession(page, daemon, session)
  await expect(log(page).getByText('ready', { exact: true })).toBeVisible()
  await give(message(page), 'paste', 'shot.png', 'image/png', POINT)
  await expect(drafts(page).getByText('shot.png')).toBeVisible()
  await expect(drafts(page).locator('img')).toBeVisible()
  await expect(send(page)).toBeEnabled()
  await accessible(page)
  await message(page).fill('/say! seen')
  await send(page).click()
  await expect(drafts(page)).toHaveCount(0)
  const image = log(page).getByRole('img', { name: 'shot.png' })
  await expect(image).toBeVisible()
  await expect.poll(() => drawn(image)).toBe(1)
  await expect(log(page).getByText('seen', { exact: true })).toBeVisible()
  await page.reload()
  await expect(image).toBeVisible()
  await expect.poll(() => drawn(image)).toBe(1)
  await expect(log(page).locator('a:has(img)')).toHaveAttribute('href', /\/attachments\/[0-9a-f]{64}/)
  await accessible(page)
})

test('files are chosen and dropped, taken away again, and refused where they lie', async ({ page, daemon }) => {
  const session = daemon.script('Files', '/say! ready')
  await openSession(page, daemon, session)
  await expect(log(page).getByText('ready', { exact: true })).toBeVisible()
  await page.getByLabel('Files to attach').setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('remember') })
  await give(page.getByRole('region', { name: 'Write to the session' }), 'drop', 'lie.png', 'image/png', btoa('<svg/>'))
  await expect(drafts(page).getByRole('listitem')).toHaveCount(2)
  await expect(drafts(page).getByText(/claims to be an image/)).toBeVisible()
  await drafts(page).getByRole('button', { name: 'Remove lie.png' }).click()
  await expect(drafts(page).getByRole('listitem')).toHaveCount(1)
  // What has arrived is kept with the draft.
  await page.reload()
  await expect(drafts(page).getByText('notes.txt')).toBeVisible()
  await message(page).fill('/say! noted')
  await send(page).click()
  await expect(log(page).getByRole('link', { name: /notes\.txt/ })).toBeVisible()
  await expect(log(page).getByText('noted', { exact: true })).toBeVisible()
})

test('a picture goes with the first message of a new session', async ({ page, daemon }) => {
  await page.goto(daemon.at('/'))
  await page.getByRole('button', { name: 'New session' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'New session' })
  await dialog.getByRole('combobox', { name: /^Agent/ }).selectOption('demo')
  await dialog.getByLabel('Folder it works in').fill(daemon.workspace)
  const words = dialog.getByRole('textbox', { name: 'What it should do', exact: true })
  await words.fill('/say! seen')
  await give(words, 'paste', 'shot.png', 'image/png', POINT)
  await expect(drafts(page).getByText('shot.png')).toBeVisible()
  await give(words, 'drop', 'notes.txt', 'text/plain', btoa('remember'))
  await expect(drafts(page).getByRole('listitem')).toHaveCount(2)
  await drafts(page).getByRole('button', { name: 'Remove notes.txt' }).click()
  await accessible(page)
  await dialog.getByRole('button', { name: 'Start' }).click()
  const image = log(page).getByRole('img', { name: 'shot.png' })
  await expect(image).toBeVisible()
  await expect.poll(() => drawn(image)).toBe(1)
})
