// Selected lines of an editor as a message to the agent.

export interface Selection {
  path: string
  /** From 1. */
  first: number
  last: number
  text: string
}

/** A request about selected lines. The fence is longer than any in the text, so the text cannot end it. */
export function selectionTurn(request: string, { path, first, last, text }: Selection): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${request.trim()}\n\n${path}:${first}${last > first ? `-${last}` : ''}\n${fence}\n${text.replace(/\n$/, '')}\n${fence}`
}
