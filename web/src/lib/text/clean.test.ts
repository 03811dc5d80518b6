import { describe, expect, it } from 'vitest'

import { beginning, brief, clean, line, pieces } from './clean'

describe('text of others', () => {
  it.each([
    ['words, tabs and lines stay', 'plain words\tand\nlines', 'plain words\tand\nlines'],
    ['colours of a terminal go', '\u001b[1;31mred\u001b[0m', 'red'],
    ['titles of a terminal go', '\u001b]0;evil\u0007x', 'x'],
    ['a bare escape is seen', 'a\u001b', 'a␛'],
    ['what turns text around is seen', 'a\u202eb\u2069', 'a⟦RLO⟧b⟦PDI⟧'],
    ['hidden letters are counted', `a${String.fromCodePoint(0xe0041, 0xe0042)}b`, 'a⟦2 hidden⟧b'],
    ['gaps without width are seen', 'no\u200bgap\u2065', 'no⟦ZWSP⟧gap⟦U+2065⟧'],
    ['other controls are seen', 'a\u0000\u0085b\u007f', 'a␀⟦U+0085⟧b␡'],
    ['lines end alike', 'a\r\nb\rc', 'a\nb\nc'],
    ['letters and faces stay', 'שלום 👩‍👩‍👧 é', 'שלום 👩‍👩‍👧 é'],
    ['markup stays text', '<script>alert(1)</script>', '<script>alert(1)</script>'],
  ])('%s', (_, text, shown) => expect(clean(text)).toBe(shown))

  it('is put on one line', () => expect(line(' a  b\n\nc\u202e ')).toBe('a b c⟦RLO⟧'))

  it.each([
    ['a  b\n\nc', 240, 'a b c'],
    ['x'.repeat(1_000_000), 10, `${'x'.repeat(9)}…`],
    ['twelve chars', 12, 'twelve chars'],
    ['xxx😀yy', 5, 'xxx…'],
  ])('%#. is brief', (text, most, shown) => expect(brief(text, most)).toBe(shown))

  it.each([
    ['a\nb\nc', 2, 100, 'a\nb'],
    ['a\nb\nc', 3, 100, 'a\nb\nc'],
    ['abcdef', 5, 3, 'abc'],
    ['ab\ncd', 1, 100, 'ab'],
    ['', 2, 10, ''],
    ['x😀y', 1, 2, 'x'],
  ])('begins: %j in %i lines and %i characters', (text, lines, chars, shown) => expect(beginning(text, lines, chars)).toBe(shown))

  it.each([
    ['aaaa\nbb\ncc', 6, ['aaaa\n', 'bb\ncc']],
    ['a'.repeat(10), 4, ['aaaa', 'aaaa', 'aa']],
    ['', 4, []],
  ])('in pieces: %j', (text, size, found) => {
    expect(pieces(text, size)).toEqual(found)
    expect(found.join('')).toBe(text)
  })
})
