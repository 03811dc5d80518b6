import { expect, it } from 'vitest'

import { EVERYTHING } from './lines'
import { cleared, filters, read, write } from './wanted'

it('reads what it wrote, and takes nothing it does not know', () => {
  const wanted = { ...EVERYTHING, view: 'all', text: 'a b', state: 'failed', workspace: '/w', attention: true, group: 'plan' } as const
  const query = new URLSearchParams(Object.entries(write(wanted)).filter((pair): pair is [string, string] => pair[1] !== null))
  expect(query.toString()).toBe('view=all&q=a+b&state=failed&workspace=%2Fw&attention=1&group=plan')
  expect(read(query)).toEqual(wanted)
  expect(filters(wanted)).toEqual(['state', 'workspace', 'attention'])
  expect(read(new URLSearchParams('view=odd&state=odd&group=odd&memory=odd&attention=yes'))).toEqual(EVERYTHING)
  expect(cleared()).not.toHaveProperty('group')
})
