// What a flow did about it before it asked.
import type { FlowView } from '../api/types'
import { plural } from '../format'

type Story = Pick<FlowView, 'auto_retries' | 'quality_retries' | 'iteration' | 'stall' | 'sessions'>

export function tried(flow: Story): string[] {
  const said: string[] = []
  if (flow.iteration > 0) said.push(plural(flow.iteration, 'review'))
  if (flow.quality_retries > 0) said.push(`${plural(flow.quality_retries, 'try', 'tries')} to pass the checks`)
  if (flow.auto_retries > 0) said.push(`${plural(flow.auto_retries, 'lost turn')} gone on with`)
  const stall = flow.stall
  if (stall && stall.issue_repeats > 1) said.push(`the same issues ${stall.issue_repeats} times`)
  if (stall && stall.error_repeats > 1) said.push(`the same error ${stall.error_repeats} times`)
  const scores = stall?.scores ?? []
  if (scores.length > 1) said.push(`scores ${scores.slice(-5).join(', ')}`)
  const sessions = flow.sessions?.length ?? 0
  if (sessions > 0) said.push(`${plural(sessions, 'session')} worked at it`)
  return said
}
