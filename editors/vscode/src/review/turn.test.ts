import { expect, test } from 'vitest'

import { reviewTurn, selectionTurn } from './turn'

test('comments become one message, in the order of files and lines', () => {
  const text = reviewTurn([
    { path: 'b.ts', line: 2, quoted: '  let x', text: 'second file\n' },
    { path: 'a.ts', line: 30, quoted: '', text: 'later' },
    { path: 'a.ts', line: 4, quoted: 'y'.repeat(300), text: 'sooner' },
  ])
  expect(text).toBe(`Review of your changes: 3 comments. Address each.\n\na.ts:4\n> ${'y'.repeat(200)}\nsooner\n\na.ts:30\nlater\n\nb.ts:2\n> let x\nsecond file`)
  expect(reviewTurn([{ path: 'a', line: 1, quoted: '', text: 'x' }])).toContain('one comment.')
})

test('selected text cannot end its own fence', () => {
  expect(selectionTurn('Explain this ', { path: 'a.md', first: 3, last: 3, text: 'plain\n' })).toBe('Explain this\n\na.md:3\n```\nplain\n```')
  expect(selectionTurn('Fix', { path: 'a.md', first: 3, last: 9, text: '````\nx\n````' })).toBe('Fix\n\na.md:3-9\n`````\n````\nx\n````\n`````')
})
