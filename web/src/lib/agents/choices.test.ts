import { describe, expect, it } from 'vitest'

import { completed, pickers } from './choices'

const offer = {
  models: { items: [{ id: 'small', name: 'Small' }, { id: 'large' }], default: 'small' },
  modes: { items: [{ id: 'ask' }, { id: 'yolo', unguarded: true }], default: 'ask' },
  commands: [{ name: 'review', about: 'reviews' }, { name: 'rewind' }, { name: 'init' }],
}

describe('pickers', () => {
  it('name the default, and the reason where nothing is offered', () => {
    const lacks = [{ what: 'effort' as const, why: 'the agent offers no choice of effort', instead: 'leave it out' }]
    const [model, mode, effort] = pickers(offer, lacks, {}, {})
    expect(model).toMatchObject({ usual: 'Default (Small)', why: null })
    expect(mode?.unguarded).toBe(false)
    expect(effort?.why).toBe('The agent offers no choice of effort. Leave it out.')
  })
  it('show what holds below, and a mode without approvals', () => {
    const [model, mode] = pickers(offer, [], { mode: 'yolo' }, { model: 'large' })
    expect(model?.usual).toBe('Default (large)')
    expect(mode?.unguarded).toBe(true)
  })
  it('are greyed for an agent that offers nothing', () => {
    expect(pickers({}, [], {}, {}).every((picker) => picker.why !== null)).toBe(true)
    expect(pickers(null, null, {}, {}).every((picker) => picker.why !== null)).toBe(true)
  })
})

describe('commands', () => {
  const names = (typed: string): (string | undefined)[] => completed(offer.commands, typed).map((command) => command.name)
  it('are completed at the beginning of a message alone', () => {
    expect(names('/re')).toEqual(['review', 'rewind'])
    expect(names('/')).toEqual(['review', 'rewind', 'init'])
    expect(names('/review')).toEqual([])
    expect(names('/re view')).toEqual([])
    expect(names('a /re')).toEqual([])
    expect(completed(undefined, '/')).toEqual([])
  })
})
