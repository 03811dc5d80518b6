import { describe, expect, test } from 'vitest'

import { beginning, harmless } from './harmless'

describe('harmless', () => {
  test.each([
    ['plain words\tand\nlines', 'plain words\tand\nlines'],
    ['\u001b[31mred\u001b[0m', 'red'],
    ['\u001b]0;title\u0007', '␛]0;title␇'],
    ['a\r\nb\rc', 'a\nb\nc'],
    ['safe\u202egnp.exe', 'safe⟨U+202E⟩gnp.exe'],
    ['no\u200bgap', 'no⟨U+200B⟩gap'],
    ['\u007f\u009b', '␡⟨U+009B⟩'],
    ['<script>alert(1)</script>', '<script>alert(1)</script>'],
  ])('%j', (given, shown) => {
    expect(harmless(given)).toBe(shown)
  })
})

describe('beginning', () => {
  test.each([
    ['a\nb\nc', 2, 100, 'a\nb'],
    ['a\nb\nc', 3, 100, 'a\nb\nc'],
    ['abcdef', 5, 3, 'abc'],
    ['ab\ncd', 1, 100, 'ab'],
    ['', 2, 10, ''],
    ['x😀y', 1, 2, 'x'],
  ])('%j in %i lines and %i characters', (text, lines, chars, shown) => {
    expect(beginning(text, lines, chars)).toBe(shown)
  })
})
