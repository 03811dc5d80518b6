import { describe, expect, it } from 'vitest'

import { match } from './router.svelte'

describe('addresses', () => {
  it.each([
    ['/', 'overview', {}],
    ['/sessions/sess_1', 'session', { id: 'sess_1' }],
    ['/sessions/sess_1/family', 'family', { id: 'sess_1' }],
    ['/plans/a%2Fb', 'plan', { id: 'a/b' }],
    ['/gates/', 'gates', {}],
    ['/sessions/%E0%A4%A', 'session', { id: '%E0%A4%A' }],
    ['/nowhere/at/all', 'unknown', {}],
  ])('%s is the page %s', (path, name, params) => {
    expect(match(path)).toEqual({ name, params })
  })
})
