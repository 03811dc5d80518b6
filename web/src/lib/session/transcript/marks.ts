// What happened besides talk and tools, each in a line of plain words.
import type { Continuity, RunEnd } from '../../api/types'
import { plural, span, words } from '../../format'
import { STOP_LEVELS, type Tone } from '../../states'
import type { Event } from '../events'
import type { Line } from './items'

/** How much of what was before an agent knows. */
export const CONTINUITY: Record<Continuity, { label: string; tone: Tone; means: string }> = {
  exact: { label: 'same process', tone: 'ok', means: 'The same process goes on; nothing was lost.' },
  native: { label: 'resumed by the agent', tone: 'ok', means: 'The agent took its own conversation up again.' },
  replayed: { label: 'replayed', tone: 'info', means: 'The transcript was given back to the agent.' },
  preamble: { label: 'from a summary', tone: 'warn', means: 'The agent knows only a summary of what was before.' },
  lost: { label: 'conversation lost', tone: 'bad', means: 'The agent knows nothing of what was before.' },
}

const because = (reason: string | null | undefined): string => (reason ? `: ${reason}` : '')
const excerpt = (text: string): string => (text.length > 90 ? `${text.slice(0, 88)}…` : text)
const level = (one: number): string => `level ${one}, ${STOP_LEVELS[one]?.label ?? ''}`
/** A checkpoint of a turn bears the turn's id. */
const checkpoint = (name: string): string => (!name.startsWith('turn_') ? name : name.endsWith('-end') ? 'at the end of a turn' : 'at the start of a turn')
const line = (icon: Line['icon'], text: string, tone: Tone = 'plain', more: Partial<Line> = {}): Line => ({ icon, text, tone, ...more })
const quiet = (icon: Line['icon'], text: string): Line => line(icon, text, 'plain', { quiet: true })

/** `null`: it is part of something else that is shown, or says nothing to a person. */
export function mark(event: Event): Line | null {
  const by = event.actor.name
  // Who has read how far says nothing of the work.
  if ((event.type as string) === 'session.seen') return null
  switch (event.type) {
    case 'session.created': {
      const { forked_from: fork, parent, source } = event.data
      if (fork) return line('fork', `Forked at event ${fork.seq} from`, 'info', { session: fork.session })
      if (parent) return line('tree', `Begun by ${words(source)} under`, 'info', { session: parent })
      return quiet('flag', `Begun by ${by}, ${words(source)}`)
    }
    case 'session.linked':
      return line('tree', 'Now under', 'info', { session: event.data.parent })
    case 'session.child_linked':
      return line('tree', `Child ${event.data.agent ?? 'session'} began:`, 'info', { session: event.data.child })
    case 'session.child_unlinked':
      return line('tree', 'Child went elsewhere:', 'plain', { session: event.data.child })
    case 'session.migrated':
      return line('fork', `Given over from ${event.data.from.owner} to ${event.data.to.owner}${because(event.data.reason)}`, 'violet')
    case 'session.alias_added':
      return quiet('link', `Alias ${event.data.alias}`)
    case 'session.imported':
      return line('link', `Imported from ${event.data.from}: ${plural(event.data.messages, 'message')}`, 'info')
    case 'session.plan_joined':
      return quiet('plans', `Works on plan ${event.data.plan}`)
    case 'session.memory_set':
      return quiet('memory', `Memory: ${words(event.data.policy.mode)}`)
    case 'session.archived':
      return line('archive', `Archived by ${by}`)
    case 'session.unarchived':
      return line('archive', `Taken out of the archive by ${by}`)
    case 'session.reset':
      return line('reset', `Reset by ${by}${because(event.data.reason)}`, 'warn')
    case 'session.deleted':
      return line('trash', `Deleted by ${by}${because(event.data.reason)}`, 'bad')
    case 'session.resumed':
      return line('play', `Resumed by ${by} after a stop`, 'info')
    case 'session.idle':
      return quiet('clock', `Idle after ${span(event.data.quiet_ms)}`)
    case 'session.stale':
      return line('clock', `Stale: nothing for ${span(event.data.quiet_ms)}`, 'warn')
    case 'session.ended':
      return line('flag', `Session ${event.data.how}${because(event.data.reason)}`, event.data.how === 'failed' ? 'bad' : 'ok')
    case 'turn.cancel_requested':
      return line('stop', `Cancel ${event.data.forced ? 'forced' : 'asked'} by ${by}${because(event.data.reason)}`, 'warn')
    case 'turn.waiting': {
      const { limit, until } = event.data
      const account = limit.account ? ` of ${limit.account}` : ''
      const when = until ? `until ${new Date(until).toLocaleString()}` : 'until someone sends it on'
      return line('clock', `Waits for a ${words(limit.kind)} limit${account} ${when}: ${excerpt(limit.text)}`, 'warn')
    }
    case 'turn.continued':
      return event.data.asked ? line('play', `Sent on by ${by}`, 'info') : line('play', 'Goes on after the limit', 'info')
    case 'turn.queued':
      return quiet('pause', `Queued by ${by}: ${excerpt(event.data.prompt)}`)
    case 'turn.edited':
      return quiet('pen', `Queued message changed by ${by}`)
    case 'turn.withdrawn':
      return quiet('close', `Queued message withdrawn${because(event.data.reason)}`)
    case 'turn.promoted':
      return quiet('up', `Queued message moved ${event.data.to === 'front' ? 'to the front' : `to ${words(event.data.to)}`}`)
    case 'turn.steered':
      return quiet('guide', `A queued message went into this turn, by ${words(event.data.channel)}`)
    case 'inbox.reordered':
      return quiet('menu', `Queue reordered by ${by}`)
    case 'inbox.paused':
      return line('pause', `Queue paused: ${words(event.data.reason)}`, 'warn')
    case 'inbox.resumed':
      return quiet('play', 'Queue goes on')
    case 'context.anchors_set':
      return quiet('flag', `${plural(event.data.anchors.length, 'anchor')} set`)
    case 'context.checkpoint':
      return quiet('flag', `Checkpoint at ${event.data.position}, ${words(event.data.reason)}`)
    case 'context.snapshot':
      return quiet('archive', `Checkpoint ${checkpoint(event.data.name)}, ${plural(event.data.files_changed, 'file')} changed`)
    case 'context.snapshot_skipped':
      return quiet('archive', `No checkpoint: ${words(event.data.code)}`)
    case 'context.rolled_back':
      return line('archive', `Workspace rolled back to the checkpoint ${checkpoint(event.data.to)} by ${by}; the checkpoint ${checkpoint(event.data.from)} has what was there before`, 'warn')
    case 'context.branch_merged':
      return line('merge', `Branch ${event.data.branch} merged into ${event.data.into} by ${by}`, 'ok')
    case 'context.branch_discarded':
      return line('trash', `Branch ${event.data.branch} discarded by ${by}; git keeps it as ${event.data.reference}`, 'warn')
    case 'session.renamed':
      return quiet('pen', `Renamed to ${excerpt(event.data.title)} by ${by}`)
    case 'context.issue_seen':
    case 'context.error_seen':
    case 'turn.delivered':
    case 'writer.asked':
    case 'notice.sent':
      return null
    case 'context.stalled':
      return line('warn', `Going in circles: the same ${event.data.kind} ${event.data.repeats} times`, 'warn')
    case 'stop.requested': {
      const whole = event.data.scope === 'subtree' ? ' for the whole subtree' : event.data.scope === 'turn' ? ' for this turn' : ''
      const text = `Stop asked by ${by}${whole} (${level(event.data.level)})${because(event.data.reason)}`
      return event.data.inherited ? line('stop', `${text}, inherited from`, 'bad', { session: event.data.inherited }) : line('stop', text, 'bad')
    }
    case 'stop.applied':
      return line('stop', `Stop told in the answer of ${event.data.tool} (${level(event.data.level)})${event.data.refused ? '; the call was refused' : ''}`, 'bad')
    case 'stop.raised':
      return line('stop', `Stop raised to ${level(event.data.to)}, by ${by}${because(event.data.reason)}`, 'bad')
    case 'stop.complied':
      return line('stop', `The agent complies: ${words(event.data.how)}`, 'ok')
    case 'stop.settled':
      return line('stop', 'Stop carried out', 'ok')
    case 'end.blocked':
      return line('stop', event.data.why, 'warn')
    case 'stop.withdrawn':
      return line('stop', `Stop withdrawn by ${by}${because(event.data.reason)}`, 'plain')
    case 'agent.introduced':
      return quiet('agents', `${event.data.agent} introduced itself`)
    case 'agent.handed_off':
      return line('fork', `Handed off from ${event.data.from} to ${event.data.to}${because(event.data.reason)}`, 'violet')
    case 'command.refused':
      return line('warn', `${words(event.data.command)} refused: ${words(event.data.code)}`, 'warn')
    case 'signal.unexpected':
      return quiet('warn', `Unexpected: ${words(event.data.signal)}`)
    case 'run.ended':
      return line('stop', `Run ended: ${ending(event.data.how)}${because(event.data.reason)}`, calm(event.data.how) ? 'plain' : 'warn')
    case 'run.tools_missing': {
      const servers = event.data.servers ?? []
      return servers.length === 0
        ? quiet('continuity', 'The agent has reached all its MCP servers')
        : line('warn', `Without MCP servers: ${servers.join(', ')}`, 'warn')
    }
    case 'run.bound_met':
      return line('warn', `Bound met: ${words(event.data.what)} ${event.data.limit}${event.data.times > 1 ? `, ${event.data.times} times` : ''}`, 'warn')
    case 'run.wanted':
      return quiet('play', 'Wanted to go on')
    case 'writer.granted':
      return quiet('pen', `${event.data.pen.actor.name}${event.data.pen.client ? ` (${event.data.pen.client})` : ''} writes`)
    case 'writer.denied':
      return quiet('pen', 'Writing not given up')
    case 'writer.released':
      return quiet('pen', `Writing ${words(event.data.why)}`)
    case 'file.changed':
      return quiet('audit', `${event.data.path}${event.data.added == null ? '' : ` +${event.data.added} −${event.data.removed ?? 0}`}`)
    case 'usage.reported':
      return quiet('continuity', `${event.data.input_tokens} tokens in, ${event.data.output_tokens} out`)
    case 'record.damaged':
      return line('warn', `Events ${event.data.first_seq} to ${event.data.last_seq} cannot be read: ${event.data.what}`, 'bad')
    case 'review.sent':
      return line('eye', `${by} sent a review with ${plural(event.data.comments.length, 'comment')}`, 'info')
    case 'review.drafted':
    case 'review.edited':
    case 'review.removed':
    case 'review.viewed':
      return null
    default:
      // Of a daemon that is newer than this page.
      return quiet('more', words(String((event as { type?: unknown }).type ?? 'something')))
  }
}

function ending(how: RunEnd): string {
  switch (how.kind) {
    case 'exited':
      return how.code === 0 ? 'it left by itself' : `it left with code ${how.code}`
    case 'signalled':
      return `by signal ${how.signal}`
    case 'not_started':
      return `it did not start, ${words(how.code)}`
    default:
      return words(how.kind)
  }
}

const calm = (how: RunEnd): boolean => how.kind === 'exited' && how.code === 0
