// Comments on changes as one message to the agent.

export interface ReviewComment {
  path: string
  /** From 1, in the file after the change. */
  line: number
  /** The line the comment is about. */
  quoted: string
  text: string
}

const QUOTED_CHARS_MAX = 200

/** Files in order, and in each the lines in order. */
export function reviewTurn(comments: readonly ReviewComment[]): string {
  const sorted = [...comments].sort((a, b) => a.path.localeCompare(b.path) || a.line - b.line)
  const parts = sorted.map(({ path, line, quoted, text }) => {
    const shown = [...quoted.trim()].slice(0, QUOTED_CHARS_MAX).join('')
    return [`${path}:${line}`, ...(shown === '' ? [] : [`> ${shown}`]), text.trim()].join('\n')
  })
  return [`Review of your changes: ${comments.length === 1 ? 'one comment' : `${comments.length} comments`}. Address each.`, ...parts].join('\n\n')
}

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
