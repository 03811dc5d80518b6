import { expect, test } from 'vitest'

import { address, asParts, held, label, opens, partsIn } from './parts'

const id = 'ab'.repeat(32)

test('a part is named in words, and its content has an address', () => {
  expect(label({ kind: 'image', id, media_type: 'image/png', bytes: 3, name: 'shot.png' })).toBe('[image shot.png]')
  expect(label({ kind: 'file', id, media_type: 'text/plain', bytes: 3 })).toBe('[file text/plain]')
  expect(label({ kind: 'link', uri: 'file:///a' })).toBe('[link file:///a]')
  expect(address('sess_1', { id, name: 'a b.png' })).toBe(`/api/v1/sessions/sess_1/attachments/${id}?name=a+b.png`)
})

test('only web addresses are opened', () => {
  expect(opens('https://example.org/x')).toBe(true)
  for (const uri of ['javascript:alert(1)', 'file:///etc/passwd', 'data:text/html,x']) expect(opens(uri)).toBe(false)
})

test('attachments are found among the blocks of an answer', () => {
  const image = { type: 'attachment', kind: 'image', id, media_type: 'image/png', bytes: 3 }
  expect(partsIn([{ type: 'text', text: 'x' }, image, { type: 'attachment', kind: 'link', uri: 'x' }, null])).toEqual([image])
  expect(partsIn('text')).toEqual([])
})

test('a draft keeps what the daemon has', () => {
  const draft = { key: 'a', name: 'a.png', bytes: 3, image: true, preview: 'data:x', id, error: null }
  expect(held([draft, { key: 'b', name: 'b' }, null])).toEqual([{ ...draft, preview: null }])
  expect(held('nonsense')).toEqual([])
  expect(asParts([draft, { ...draft, id: null }])).toEqual([{ kind: 'attachment', id, name: 'a.png' }])
})
