import { expect, test } from 'vitest'

import type { Mail } from '../api/types'
import { boxes, ofFamily } from './mail'

const letter = (id: string, to: string, from: Partial<Mail['from']> = {}): Mail => ({ id, to, from: { name: 'x', ...from } }) as Mail

test('the boxes of a family are those of its sessions and of their tasks', () => {
  const found = boxes(new Set(['sess_1', 'sess_2']), [{ task: 'task_1', session: 'sess_2' }, { task: 'task_2', session: 'sess_9' }, { task: 'task_3' }])
  expect([...found].sort()).toEqual(['sess_1', 'sess_2', 'task_1'])
})

test('mail is of a family by its box or by who sent it', () => {
  const found = new Set(['sess_1', 'task_1'])
  const mail = [
    letter('m1', 'task_1'),
    letter('m2', 'task_9'),
    letter('m3', 'task_9', { session: 'sess_1' }),
    letter('m4', 'sess_9', { task: 'task_1' }),
    letter('m5', 'sess_1', { operator: true }),
  ]
  expect(ofFamily(mail, found).map((one) => one.id)).toEqual(['m1', 'm3', 'm4', 'm5'])
})
