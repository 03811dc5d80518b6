import { expect, test } from 'vitest'

import { selectionTurn } from './turn'

test('selected text cannot end its own fence', () => {
  expect(selectionTurn('Explain this ', { path: 'a.md', first: 3, last: 3, text: 'plain\n' })).toBe('Explain this\n\na.md:3\n```\nplain\n```')
  expect(selectionTurn('Fix', { path: 'a.md', first: 3, last: 9, text: '````\nx\n````' })).toBe('Fix\n\na.md:3-9\n`````\n````\nx\n````\n`````')
})
