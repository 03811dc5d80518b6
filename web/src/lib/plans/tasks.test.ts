import { describe, expect, it } from 'vitest'

import type { TaskEnvelope, TaskState, TaskView } from '../api/types'
import { can, faultLine, note, progress, tell, type Verb } from './tasks'

const task = (state: TaskState, more: Partial<TaskView> = {}): TaskView => ({ id: 'task_1', state, title: 'x', ...more }) as TaskView
const VERBS: Verb[] = ['deploy', 'pause', 'resume', 'cancel', 'complete', 'fail', 'retry', 'merge', 'discard']
const tree = { branch: 'b', base: 'c', path: '/p', repository: '/r' }

describe('tasks', () => {
  it.each<[string, TaskView, Verb[]]>([
    ['pending', task('pending'), ['deploy', 'pause', 'cancel', 'complete', 'fail']],
    ['deploying', task('deploying'), ['cancel', 'complete', 'fail']],
    ['running', task('running', { tree }), ['pause', 'cancel', 'complete', 'fail']],
    ['running, cancelling', task('running', { ending: { how: 'cancel' } }), ['cancel', 'complete', 'fail']],
    ['paused', task('paused'), ['resume', 'cancel', 'complete', 'fail']],
    ['interrupted', task('interrupted'), ['pause', 'resume', 'cancel', 'complete', 'fail']],
    ['completed', task('completed', { tree }), ['retry', 'merge', 'discard']],
    ['merged', task('completed', { tree, merged: 'abc' }), ['retry', 'discard']],
    ['FND-D17: completed without commits', task('completed', { tree, commits: 0 }), ['retry', 'discard']],
    ['completed with commits', task('completed', { tree, commits: 2 }), ['retry', 'merge', 'discard']],
    ['FND-N3: held by a conflict', task('pending', { conflict: { branch: 'b', with: ['c'], files: ['f'] } }), ['deploy', 'pause', 'cancel', 'complete', 'fail', 'retry']],
    ['failed without a branch', task('failed'), ['retry']],
  ])('%s can be asked for', (_, view, verbs) => expect(VERBS.filter((verb) => can(view, verb))).toEqual(verbs))

  it('say what matters most', () => {
    expect(note(task('running', { ending: { how: 'cancel' }, reason: 'wrong branch' }))).toBe('is to be cancelled')
    expect(note(task('failed', { reason: 'no\nway' }))).toBe('no way')
    expect(note(task('running', { condition: 'error_streak' }))).toBe('error streak')
    expect(note(task('pending', { held: 'its plan is draft' }))).toBe('its plan is draft')
    const id = `task_${'0'.repeat(26)}`
    expect(note(task('pending', { held: `it waits for ${id}, which is running` }), new Map([[id, 'api']]))).toBe('it waits for “api”, which is running')
    expect(note(task('completed', { result: { summary: 'All there.' } }))).toBe('All there.')
  })

  it('are counted in one order', () => {
    const shown = progress([{ state: 'pending', tasks: 2 }, { state: 'completed', tasks: 3 }])
    expect(shown).toEqual({ parts: [{ state: 'completed', tasks: 3 }, { state: 'pending', tasks: 2 }], all: 5, done: 3 })
  })

  it('are told of, also where an event is new', () => {
    const event = (type: string, data: unknown): TaskEnvelope => ({ seq: 1, type, data }) as unknown as TaskEnvelope
    expect(tell(event('task.ended', { state: 'failed', reason: 'no' }))).toBe('failed: no')
    expect(tell(event('task.adopted', {}))).toBe('reports to nobody from here on')
    expect(tell(event('task.sung_to', {}))).toBe('task sung to')
  })

  it.each([['Line 12: there is no task.', 12], ['the plan has no title', null]])('%s', (what, at) => expect(faultLine(what)).toBe(at))
})
