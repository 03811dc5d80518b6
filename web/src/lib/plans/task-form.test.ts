import { describe, expect, it } from 'vitest'

import type { TaskView } from '../api/types'
import { after, changes, fresh } from './task-form'

const task = (id: string, more: Partial<TaskView> = {}): TaskView => ({ id, title: id, prompt: 'do it', depends_on: [], files: ['a.md'], priority: 'normal', ...more }) as TaskView

describe('the form of a task', () => {
  const one = task('one', { agent: 'demo', depends_on: ['x', 'y'] })
  it.each([
    ['nothing is sent when nothing changed', one, {}, {}],
    ['a title without blanks around it', one, { title: ' new ' }, { title: 'new' }],
    ['what it is told can become empty', one, { prompt: '' }, { prompt: '' }],
    ['another order of prerequisites is no change', one, { depends_on: ['y', 'x'] }, {}],
    ['prerequisites as a whole', one, { depends_on: ['y'] }, { depends_on: ['y'] }],
    ['files, one a line', one, { files: 'a.md\n\n  b.md ' }, { files: ['a.md', 'b.md'] }],
    ['an agent is not unnamed', one, { agent: '' }, {}],
    ['a key belongs to a new one', one, { key: 'k' }, {}],
    ['a new one', null, { title: 'new', key: 'k', priority: 'high' as const }, { title: 'new', key: 'k', priority: 'high' }],
  ])('%s', (_, of, filled, sent) => expect(changes(of, { ...fresh(of), ...filled })).toEqual(sent))

  it('waits for none that waits for it', () => {
    const all = [task('a'), task('b', { depends_on: ['a'] }), task('c', { depends_on: ['b'] }), task('d')]
    expect(after(all[0] ?? null, all).map((one) => one.id)).toEqual(['d'])
    expect(after(all[2] ?? null, all).map((one) => one.id)).toEqual(['a', 'b', 'd'])
    expect(after(null, all)).toHaveLength(4)
  })
})
