import { expect, it } from 'vitest'

import { EVERYTHING } from './lines'
import { cleared, filters, read, write } from './wanted'

it('reads what it wrote, and takes nothing it does not know', () => {
  const wanted = { ...EVERYTHING, view: 'all', text: 'a b', operator: 'working', state: 'failed', workspace: '/w', attention: true, group: 'plan', sort: 'cost', density: 'roomy' } as const
  const query = new URLSearchParams(Object.entries(write(wanted)).filter((pair): pair is [string, string] => pair[1] !== null))
  expect(query.toString()).toBe('view=all&q=a+b&is=working&state=failed&workspace=%2Fw&attention=1&group=plan&sort=cost&rows=roomy')
  expect(read(query)).toEqual(wanted)
  expect(filters(wanted)).toEqual(['operator', 'state', 'workspace', 'attention'])
  expect(read(new URLSearchParams('view=odd&is=odd&state=odd&group=odd&memory=odd&attention=yes&sort=odd&rows=odd'))).toEqual(EVERYTHING)
  for (const name of ['view', 'group', 'sort', 'rows']) expect(cleared()).not.toHaveProperty(name)
  expect(cleared()).toHaveProperty('is', null)
})
