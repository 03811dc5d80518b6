import { describe, expect, it } from 'vitest'

import { lack } from './lacks'

describe('what an agent cannot do', () => {
  it('is said with the reason of the daemon, and nothing else is', () => {
    const lacks = [{ what: 'steer' as const, why: 'gemini takes no message into a running turn', instead: 'send guidance' }]
    expect(lack(lacks, 'steer')).toBe('Gemini takes no message into a running turn. Send guidance.')
    expect(lack(lacks, 'compact')).toBeNull()
    expect(lack(undefined, 'steer')).toBeNull()
  })
})
