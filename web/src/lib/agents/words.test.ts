import { describe, expect, it } from 'vitest'

import type { AgentEntry } from '../api/types'
import { FEATURES, about, greeted, hint, remedy, standing } from './words'

const agent = (more: Partial<AgentEntry>): AgentEntry => ({ name: 'a', driver: 'acp', command: ['a'], configured: true, found: '/a', ...more })

describe('how an agent stands', () => {
  it.each([
    [agent({}), 'configured'],
    [agent({ found: null }), 'not found'],
    [agent({ configured: false }), 'installed, not configured'],
    [agent({ checked: { name: 'a', works: true } }), 'works'],
    [agent({ checked: { name: 'a', works: false } }), 'does not work'],
  ])('%o', (one, label) => expect(standing(one).label).toBe(label))

  it('says what helps', () => {
    expect(remedy('handshake_timeout')).toContain('handshake_timeout_ms')
    expect(remedy('whatever')).toContain('by hand')
    expect(hint(agent({ configured: false }))).toContain('lanyard init')
    expect(hint(agent({}))).toBe('')
  })

  it('names each capability once', () => expect(new Set(FEATURES.map((one) => one.key)).size).toBe(FEATURES.length))
})

it('tells of a server in a line', () => {
  const server = { name: 'files', kind: 'stdio', share: true, state: 'up', processes: 1, restarts: 2, calls: 3 } as const
  expect(about(server)).toBe('stdio · one process for all · 3 calls · 1 process · started again 2 times')
  expect(greeted({ name: 'files', ok: true, tools: 7, server: 'files', version: '1', protocol: '2025-11-25' })).toBe('7 tools · files 1 · MCP 2025-11-25')
})
