import { expect, it } from 'vitest'

import { glimpse } from './glimpse'

it.each([
  ['a  b\n\nc', 240, 'a b c'],
  ['evil\u202Etxt\u0007', 240, 'evil⟨U+202E⟩txt␇'],
  ['x'.repeat(1_000_000), 10, `${'x'.repeat(10)}…`],
  ['twelve chars', 12, 'twelve chars'],
])('a glimpse of a text', (text, most, shown) => expect(glimpse(text, most)).toBe(shown))
