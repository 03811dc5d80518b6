import { describe, expect, it } from 'vitest'

import type { FlowGateEntry, GateEntry } from '../api/types'
import { arranged, type Asked, type Card } from './board.svelte'
import { Rest, REST_MS, same, type Place } from './guard.svelte'

const place = (top: number): Place => ({ left: 10, top, width: 200, height: 30 })

describe('FND-D1 rest', () => {
  it('takes answers only after a card was at its place for long enough', () => {
    const rest = new Rest()
    expect(rest.at(place(0), 1_000)).toBe(false)
    expect(rest.at(place(0), 1_000 + REST_MS - 1)).toBe(false)
    expect(rest.at(place(0), 1_000 + REST_MS)).toBe(true)
    expect(rest.at(place(1), 1_000 + REST_MS)).toBe(true)
    expect(rest.at(place(40), 2_000)).toBe(false)
    expect(rest.at(place(40), 2_000 + REST_MS)).toBe(true)
  })

  it('begins anew when the card comes into sight', () => {
    const rest = new Rest()
    rest.at(place(0), 0)
    expect(rest.at(null, 5_000)).toBe(false)
    expect(rest.at(null, 9_000)).toBe(false)
    expect(rest.at(place(0), 9_100)).toBe(false)
    expect(rest.at(place(0), 9_100 + REST_MS)).toBe(true)
  })

  it('counts a change of size as a move', () => {
    expect(same(place(0), { ...place(0), height: 34 })).toBe(false)
    expect(same(place(0), { ...place(0), width: 201 })).toBe(true)
    expect(same(null, null)).toBe(false)
  })
})

describe('FND-D1 the places of cards', () => {
  const gate = (id: string): [string, Asked] => [id, { entry: { id } as GateEntry }]
  const flow = (id: string): [string, Asked] => [id, { flow: { gate: { id } } as FlowGateEntry }]
  const shown = (cards: readonly Card[]): string => cards.map((card) => (card.settled === null ? card.key : `(${card.key})`)).join(' ')
  const steps = (most: number, lists: readonly [string, Asked][][]): string[] => {
    let cards: Card[] = []
    return lists.map((list) => {
      cards = arranged(cards, new Map(list), new Set(), most)
      return shown(cards)
    })
  }

  it('keeps settled cards where they are and puts new ones last', () => {
    expect(steps(9, [[gate('a'), gate('b')], [gate('b')], [flow('f'), gate('b')], [flow('f')]])).toEqual(['a b', '(a) b', '(a) b f', '(a) (b) f'])
  })

  it('fills up from what waits, and never shows what was settled unseen', () => {
    expect(steps(1, [[gate('a'), gate('b'), gate('c')], [gate('c')], [gate('c'), gate('d')]])).toEqual(['a', '(a) c', '(a) c'])
  })

  it('opens a gate again that is listed again', () => {
    expect(steps(2, [[gate('a')], [], [gate('a')]])).toEqual(['a', '(a)', 'a'])
  })
})
