import { describe, expect, it } from 'vitest'

import { match } from '../router.svelte'
import { chosen, comparePath } from './chosen'

describe('sessions beside each other', () => {
  it.each([
    [['sess_1', 'sess_2'], '/compare/sess_1/sess_2'],
    [['sess_1', 'sess_2', 'sess_1'], '/compare/sess_1/sess_2'],
    [['a', 'b', 'c', 'd', 'e'], '/compare/a/b/c/d'],
    [['a/b', 'c'], '/compare/a%2Fb/c'],
    [['sess_1'], '/sessions/sess_1'],
    [[], '/'],
  ])('%j have the address %s', (ids, path) => expect(comparePath(ids)).toBe(path))

  it.each([[['a', 'b']], [['a', 'b', 'c']], [['a/b', 'c', 'd', 'e']]])('%j are read back', (ids) => {
    const route = match(comparePath(ids))
    expect(route.name).toBe('compare')
    expect(chosen(route.params)).toEqual(ids)
  })
})
