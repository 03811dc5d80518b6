import { expect, test } from 'vitest'

import type { FlowGateEntry, GateEntry, Notification, PlanRow, SessionRow, TaskView, WorkerRow } from '../api/schema.gen'
import { families, type Member } from './family'
import { allowOf, denyOf, flowOffers, isYesNo, needsOf } from './needs'
import { planTree } from './plan-tree'
import { elapsed, oneLine } from './words'

const made = (id: string, more: Partial<SessionRow> = {}): SessionRow => ({ id, operator_state: 'idle', lifecycle: 'idle', archived: false, created_at: `2026-01-01T00:00:0${id.slice(-1)}Z`, ...more }) as SessionRow
const drawn = (members: readonly Member[]): string => members.map((one) => `${one.row.id}${one.children.length > 0 ? `(${drawn(one.children)})` : ''}`).join(' ')

// S0-51, S0-52: the panel lists active sessions; a family is one tree.
test('sessions are a tree by family, newest first, and ended ones are left out', () => {
  const rows = [made('s1'), made('s2', { parent: 's1' }), made('s3', { parent: 's1', operator_state: 'needs_answer' }), made('s4', { parent: 's2' }), made('s5', { lifecycle: 'terminal', operator_state: 'done' }), made('s6', { archived: true })]
  const all = families(rows, false)
  expect(drawn(all)).toBe('s1(s3 s2(s4))')
  expect(all[0]).toMatchObject({ below: 3, worst: 'needs_answer' })
  expect(drawn(families(rows, true))).toBe('s5 s1(s3 s2(s4))')
})

test('no session is lost: not below an ended one, an unknown one, or in a circle', () => {
  expect(drawn(families([made('s1', { lifecycle: 'terminal' }), made('s2', { parent: 's1' })], false))).toBe('s1(s2)')
  expect(drawn(families([made('s2', { parent: 'gone' })], false))).toBe('s2')
  expect(drawn(families([made('s1', { parent: 's2' }), made('s2', { parent: 's1' })], false))).toBe('s2 s1')
})

const gate = (id: string, kinds: readonly string[], at: string): GateEntry => ({ id, title: `may ${id}?`, session: 'sess_abcdef', opened_at: at, options: kinds.map((kind) => ({ id: kind, kind, name: kind })) }) as GateEntry
const told = (id: string, more: Partial<Notification>): Notification => ({ id, kind: 'turn_failed', severity: 'warning', title: id, status: 'new', raised_at: '2026-01-01T00:00:00Z', ...more }) as Notification

test('what needs a person: approvals by age, then new notifications that are no approval', () => {
  const flow = { flow: 'flow_1', title: 'Release', state: 'x', gate: { id: 'gate_2', kind: 'phase', reason: 'phase 1', opened_at: '2026-01-01T00:00:01Z' } } as unknown as FlowGateEntry
  const gates = { gates: [gate('gate_3', [], '2026-01-01T00:00:02Z'), gate('gate_1', [], '2026-01-01T00:00:00Z')], flows: [flow] }
  const needs = needsOf(gates, [told('ntf_1', { kind: 'gate_waiting' }), told('ntf_2', {}), told('ntf_3', { status: 'read' }), told('ntf_4', { kind: 'flow_waiting' })], Date.parse('2026-01-01T00:05:00Z'))
  expect(needs.map((need) => need.id)).toEqual(['gate_1', 'gate_2', 'gate_3', 'ntf_2'])
  expect(needs[0]?.about).toBe('session abcdef · 5 min')
  expect(flowOffers(flow).map((offer) => offer.choice)).toEqual(['continue', 'approve', 'abort'])
  expect(needsOf(null, [], 0)).toEqual([])
})

test('allow and deny are the mildest of what the agent offers', () => {
  const { options } = gate('g', ['allow_always', 'allow_once', 'reject_always', 'reject_once'], '')
  expect([allowOf(options)?.id, denyOf(options)?.id, isYesNo(options)]).toEqual(['allow_once', 'reject_once', true])
  expect(isYesNo(gate('g', ['other', 'allow_once'], '').options)).toBe(false)
})

// S4-13, S4-14, S4-15: a worker keeps its id over its runs; a subtask stays below its parent.
test('plans show tasks, workers and runs under ids that stay', () => {
  const plan = { id: 'plan_1', title: 'Release', status: 'running', progress: { done: 1, total: 2 }, workspace: '/w' } as unknown as PlanRow
  const tasks = [
    { id: 'task_1', plan: 'plan_1', title: 'api', state: 'running', worker: 'worker_aaaaaa', run: 2, runs: [{ number: 1, session: 'sess_1' }, { number: 2, session: 'sess_2' }], session: 'sess_2', uri: 'orchestrator:/task_1' },
    { id: 'task_2', plan: 'plan_1', parent: 'task_1', title: 'sub', state: 'pending', uri: '' },
    { id: 'task_3', title: 'loose', state: 'failed', uri: '' },
  ] as unknown as TaskView[]
  const workers = [{ worker: 'worker_aaaaaa', task: 'task_1', kind: 'background', live: true, condition: 'error_streak' }] as unknown as WorkerRow[]
  const tree = planTree([plan], tasks, workers)
  const lines = (nodes: typeof tree, depth = 0): string[] => nodes.flatMap((node) => [`${'  '.repeat(depth)}${node.label} [${node.about}]`, ...lines(node.children, depth + 1)])
  expect(lines(tree)).toEqual([
    'Release [running · 1 of 2]',
    '  api [running]',
    '    Worker aaaaaa [background · live · error streak]',
    '      Run 1 [earlier · session sess_1]',
    '      Run 2 [current · session sess_2]',
    '    sub [pending]',
    'Tasks without a plan [1 task]',
    '  loose [failed]',
  ])
  const keys = JSON.stringify(tree).match(/"key":"[^"]+"/g) ?? []
  expect(new Set(keys).size).toBe(keys.length)
})

test('text of agents is one line and moves nothing', () => {
  expect(oneLine('a\n\tb\u202e c\u0007', 20)).toBe('a b c')
  expect(oneLine('😀'.repeat(5), 4)).toBe('😀😀😀…')
  expect(elapsed('2026-01-01T00:00:00Z', Date.parse('2026-01-03T01:00:00Z'))).toBe('2 d')
  expect(elapsed('2026-01-01T00:00:01Z', Date.parse('2026-01-01T00:00:00Z'))).toBe('0 s')
})
