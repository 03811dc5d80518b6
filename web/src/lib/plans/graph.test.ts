import { describe, expect, it } from 'vitest'

import { BOX, draw, type Item } from './graph'

const item = (id: string, ...after: string[]): Item => ({ id, after })

/** Tasks in layers, each after some of the layer before. */
function layered(tasks: number, wide: number): Item[] {
  return Array.from({ length: tasks }, (_, at) => {
    const before = at < wide ? [] : [0, 1].map((more) => `t${at - wide - ((at % wide) + more >= wide ? 1 : 0) + more}`)
    return item(`t${at}`, ...before)
  })
}

describe('the drawing of a plan', () => {
  it.each<[string, Item[], Record<string, number>]>([
    ['nothing', [], {}],
    ['one', [item('a')], { a: 0 }],
    ['a chain', [item('c', 'b'), item('b', 'a'), item('a')], { a: 0, b: 1, c: 2 }],
    ['a diamond', [item('a'), item('b', 'a'), item('c', 'a'), item('d', 'b', 'c')], { a: 0, b: 1, c: 1, d: 2 }],
    ['a long way round', [item('a'), item('b', 'a'), item('c', 'b'), item('d', 'a', 'c')], { a: 0, b: 1, c: 2, d: 3 }],
    ['what is unknown', [item('a', 'nobody', 'a')], { a: 0 }],
    ['a dependency twice', [item('a'), item('b', 'a', 'a')], { a: 0, b: 1 }],
    ['a part', [item('a'), { id: 'b', after: [], part: 'a' }], { a: 0, b: 1 }],
    ['a circle', [item('a', 'b'), item('b', 'a'), item('c', 'b')], { a: 0, b: 1, c: 2 }],
    ['the same id twice', [item('a'), item('a')], { a: 0 }],
  ])('%s', (_, items, columns) => {
    const drawing = draw(items)
    expect(Object.fromEntries(drawing.boxes.map((box) => [box.id, box.column]))).toEqual(columns)
    expect(drawing.boxes.every((box) => Number.isFinite(box.x) && Number.isFinite(box.y) && box.y >= 0)).toBe(true)
    expect(drawing.edges.every((edge) => !edge.path.includes('NaN'))).toBe(true)
  })

  it.each([
    ['in layers', layered(500, 20)],
    ['in one column', Array.from({ length: 500 }, (_, at) => item(`t${at}`))],
    ['in a chain', Array.from({ length: 500 }, (_, at) => item(`t${at}`, ...(at ? [`t${at - 1}`] : [])))],
    ['all after all', Array.from({ length: 500 }, (_, at) => item(`t${at}`, ...Array.from({ length: Math.min(at, 200) }, (_, n) => `t${at - n - 1}`)))],
    ['in one circle', Array.from({ length: 500 }, (_, at) => item(`t${at}`, `t${(at + 1) % 500}`))],
  ])('500 tasks %s are drawn in good time and do not cover each other', (_, items) => {
    const { boxes, width, height } = draw(items)
    expect(boxes).toHaveLength(500)
    for (const place of new Set(boxes.map((box) => box.column))) {
      const tops = boxes.filter((box) => box.column === place).map((box) => box.y).sort((a, b) => a - b)
      tops.slice(1).forEach((top, at) => expect(top - (tops[at] ?? 0)).toBeGreaterThanOrEqual(BOX.height))
    }
    expect(boxes.every((box) => box.x + BOX.width <= width && box.y + BOX.height <= height)).toBe(true)
  })
})
