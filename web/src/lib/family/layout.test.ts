import { describe, expect, test } from 'vitest'

import type { TreeNode } from '../api/types'
import { DRAWN, find, inSight, isTruncated, layout, members, quiet } from './layout'

function node(id: string, level: number, children: TreeNode[] = [], truncated?: boolean): TreeNode {
  return { id, level, children, truncated } as TreeNode
}
const none = new Set<string>()
const rows = (root: TreeNode, folded = none, listed = false): string[] =>
  layout(root, folded, listed).boxes.map((box) => `${box.key} ${box.depth} ${box.y / DRAWN.down}${box.hidden > 0 ? ` -${box.hidden}` : ''}`)

const small = node('a', 1, [node('b', 2, [node('d', 3), node('e', 3)]), node('c', 2)])

describe('layout', () => {
  test.each<[string, TreeNode, Set<string>, string[]]>([
    ['one', node('a', 1), none, ['a 0 0']],
    ['a family', small, none, ['a 0 1.25', 'b 1 0.5', 'd 2 0', 'e 2 1', 'c 1 2']],
    ['one that is folded', small, new Set(['b']), ['a 0 0.5', 'b 1 0 -2', 'c 1 1']],
    ['the first folded', small, new Set(['a']), ['a 0 0 -4']],
    ['one without children folded', small, new Set(['c']), ['a 0 1.25', 'b 1 0.5', 'd 2 0', 'e 2 1', 'c 1 2']],
    ['some left out', node('a', 1, [node('b', 2)], true), none, ['a 0 0.5', 'b 1 0', 'a/more 1 1']],
    ['all left out', node('a', 1, [], true), none, ['a 0 0', 'a/more 1 0']],
  ])('%s', (_, root, folded, shown) => {
    // Halves are rounded to whole pixels.
    expect(rows(root, folded).map((text) => text.replace(/ 1\.2[45]\d*/, ' 1.25'))).toEqual(shown)
  })

  test('columns are named by the levels in them', () => {
    expect(layout(small, none).columns.map((column) => column.label)).toEqual(['Level 1', 'Level 2', 'Level 3'])
    expect(layout(node('a', 1, [node('b', 2), node('c', 3)]), none).columns.map((column) => column.label)).toEqual(['Level 1', 'Levels 2, 3'])
  })

  test('a line runs beside the children of each parent', () => {
    const { spines } = inSight(layout(small, none), 0, 1_000)
    expect(spines.map((spine) => [spine.key, (spine.from - 42) / DRAWN.down, (spine.to - 42) / DRAWN.down])).toEqual([['a', 0.5, 2], ['b', 0, 1]])
  })

  test('a list has a row for each', () => {
    expect(layout(small, none, true).boxes.map((box) => `${box.key}${box.depth}`)).toEqual(['a0', 'b1', 'd2', 'e2', 'c1'])
    expect(layout(small, none, true).columns).toEqual([])
  })

  test('a thousand children are laid out, and a few of them drawn', () => {
    const wide = node('root', 1, Array.from({ length: 1_000 }, (_, at) => node(`n${at}`, 2)))
    const all = layout(wide, none)
    expect(all.boxes.length).toBe(1_001)
    expect(new Set(all.boxes.map((box) => box.key)).size).toBe(1_001)
    expect(all.boxes.slice(1).every((box, at) => box.y === at * DRAWN.down)).toBe(true)
    const seen = inSight(all, 20_000, 20_800)
    expect(seen.boxes.length).toBeLessThan(30)
    expect(seen.spines.length).toBe(1)
  })

  test('parents come along with those in sight', () => {
    const family = node('root', 1, ['a', 'b'].map((id) => node(id, 2, Array.from({ length: 100 }, (_, at) => node(`${id}${at}`, 3)))))
    const all = layout(family, none)
    const seen = (top: number): string[] =>
      inSight(all, top, top + 600, 0).boxes.filter(({ box }) => box.depth < 2).map(({ box, y }) => `${box.key} ${y / DRAWN.down}`)
    expect(seen(0).map((text) => text.split(' ')[0])).toEqual(['root', 'a'])
    expect(seen(50 * DRAWN.down).slice(1)).toEqual(['a 50'])
    // Where one family ends and the next begins, both are there, one below the other.
    const [a, b] = ['a', 'b'].map((key) => inSight(all, 98 * DRAWN.down, 98 * DRAWN.down + 600).boxes.find(({ box }) => box.key === key)?.y ?? 0)
    expect((b ?? 0) - (a ?? 0)).toBeGreaterThanOrEqual(DRAWN.down)
  })

  test('ten thousand generations do not overflow', () => {
    let deep = node('n0', 3)
    for (let at = 1; at < 10_000; at++) deep = node(`n${at}`, 2, [deep])
    const all = layout(deep, none)
    expect(all.boxes.length).toBe(10_000)
    expect(all.boxes.every((box) => box.y === 0)).toBe(true)
    expect(layout(deep, new Set(['n9999'])).boxes[0]?.hidden).toBe(9_999)
  })
})

describe('members', () => {
  test('are found', () => {
    expect(members(small).map((one) => one.id)).toEqual(['a', 'b', 'd', 'e', 'c'])
    expect(find(small, 'e')?.level).toBe(3)
    expect(find(small, 'x')).toBe(null)
    expect(isTruncated(small)).toBe(false)
    expect(isTruncated(node('a', 1, [node('b', 2, [], true)]))).toBe(true)
  })

  test.each<[string, string[], string[]]>([
    ['nobody works', [], ['a', 'b']],
    ['a grandchild works', ['e'], []],
    ['a child works and those below it do not', ['b'], ['b']],
    ['only the first works', ['a'], ['a', 'b']],
  ])('quiet ones: %s', (_, live, folded) => {
    expect([...quiet(small, (one) => live.includes(one.id))].sort()).toEqual(folded)
  })
})
