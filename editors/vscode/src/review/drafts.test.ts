import { expect, test } from 'vitest'

import { draftsOf, placeIn } from './drafts'

const text = (at: number): string => ['a', 'b', 'c', 'd'][at] ?? ''

test('a selection names the lines of the file', () => {
  expect(placeIn({ path: 'x', side: 'after' }, 1, 2, text, (at) => at)).toEqual({ path: 'x', side: 'new', first: 2, last: 3, quote: 'b\nc' })
  expect(placeIn({ path: 'x', side: 'before' }, 0, 0, text, (at) => at + 10)).toEqual({ path: 'x', side: 'old', first: 11, last: 11, quote: 'a' })
  // A gap lies between the two pieces that are shown.
  expect(placeIn({ path: 'x', side: 'after' }, 1, 2, text, (at) => (at < 2 ? at : at + 40))).toMatchObject({ first: 43, last: 43, quote: 'c' })
})

test('what can be sent is shown', () => {
  const comments = ['draft', 'sent', 'answered', 'unanswered'].map((state) => ({ comment: state, state }))
  expect(draftsOf({ comments: comments as never }).map((one) => one.comment)).toEqual(['draft', 'unanswered'])
})
