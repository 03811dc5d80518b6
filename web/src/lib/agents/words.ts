// What agents can do, how they stand, and what helps where one does not work.
import type { AgentEntry, Capabilities, DriverKind, McpCheck, McpEntry } from '../api/types'
import { plural, words } from '../format'
import type { Tone } from '../states'
import { brief } from '../text/clean'

/** In the order they matter. */
export const FEATURES: readonly { key: keyof Capabilities; label: string; means: string }[] = [
  { key: 'load', label: 'load', means: 'It loads an earlier conversation and plays it back' },
  { key: 'resume', label: 'resume', means: 'It goes on with a conversation without playing it back' },
  { key: 'fork', label: 'fork', means: 'It copies a conversation' },
  { key: 'cancel', label: 'cancel', means: 'It ends a turn when asked' },
  { key: 'steer', label: 'steer', means: 'It takes words into a running turn' },
  { key: 'permissions', label: 'permissions', means: 'It asks before it does what needs permission' },
  { key: 'children', label: 'children', means: 'Its subagents show as sessions of their own' },
  { key: 'compact', label: 'compact', means: 'It compacts its context when asked' },
  { key: 'mcp_http', label: 'MCP http', means: 'It takes MCP servers by address' },
  { key: 'mcp_stdio', label: 'MCP stdio', means: 'It takes MCP servers as programs' },
  { key: 'mcp_sse', label: 'MCP sse', means: 'It takes MCP servers of the older kind' },
  { key: 'images', label: 'images', means: 'It takes pictures in a prompt' },
  { key: 'list', label: 'list', means: 'It lists its conversations' },
  { key: 'close', label: 'close', means: 'It closes a conversation' },
]

export const DRIVERS: Record<DriverKind, string> = {
  acp: 'Agent Client Protocol',
  opencode: 'OpenCode server',
  claude: 'Claude Code stream',
  codex: 'Codex app server',
  command: 'one command per turn',
}

interface Standing {
  label: string
  tone: Tone
}

export function standing(agent: AgentEntry): Standing {
  if (agent.found == null) return { label: 'not found', tone: 'bad' }
  if (!agent.configured) return { label: 'installed, not configured', tone: 'plain' }
  if (agent.checked == null) return { label: 'configured', tone: 'info' }
  return agent.checked.works ? { label: 'works', tone: 'ok' } : { label: 'does not work', tone: 'bad' }
}

/** As `lanyard agents check` says it. */
export function remedy(code: string): string {
  switch (code) {
    case 'agent_program_missing':
    case 'agent_not_executable':
      return "Install it, or correct its `command` in the config; the daemon's PATH counts."
    case 'handshake_timeout':
      return 'Start it by hand to see what it waits for, or raise `handshake_timeout_ms`.'
    default:
      return 'Start its command by hand to see what it says, and correct it in the config.'
  }
}

export function hint(agent: AgentEntry): string {
  if (agent.found == null) return remedy('agent_program_missing')
  return agent.configured ? '' : '`lanyard init` writes it into the config, so that sessions can be run with it.'
}

export function serverStanding(server: McpEntry): Standing {
  switch (server.state) {
    case 'up':
      return { label: 'up', tone: 'ok' }
    case 'down':
      return { label: 'down', tone: 'bad' }
    case 'not_started':
      return { label: 'not started yet', tone: 'plain' }
  }
}

export function about(server: McpEntry): string {
  const parts = [words(server.kind)]
  if (server.agent) parts.push(`only for ${server.agent}`)
  if (server.share && server.kind === 'stdio') parts.push('one process for all')
  parts.push(plural(server.calls, 'call'))
  if (server.processes > 0) parts.push(plural(server.processes, 'process', 'processes'))
  if (server.restarts > 0) parts.push(`started again ${plural(server.restarts, 'time')}`)
  return parts.join(' · ')
}

/** What a server said when it was greeted. */
export function greeted(check: McpCheck): string {
  const parts = [plural(check.tools ?? 0, 'tool')]
  if (check.server) parts.push(brief(`${check.server} ${check.version ?? ''}`, 60))
  if (check.protocol) parts.push(`MCP ${brief(check.protocol, 20)}`)
  return parts.join(' · ')
}
