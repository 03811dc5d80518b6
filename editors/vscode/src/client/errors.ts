// Failures of requests, with the daemon's stable code and advice.

export interface Refusal {
  status: number
  code: string
  what: string
  advice: string
}

export class DaemonError extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.what)
  }

  get status(): number {
    return this.refusal.status
  }

  get code(): string {
    return this.refusal.code
  }
}

export const unreachable = (why: string): DaemonError =>
  new DaemonError({ status: 0, code: 'unreachable', what: `The daemon does not answer (${why}).`, advice: 'Start it with `lanyard up`.' })

/** The refusal in the body of an answer; one made of the status where the body is none. */
export function refused(status: number, body: string): DaemonError {
  let problem: { code?: unknown; title?: unknown; advice?: unknown } = {}
  try {
    problem = JSON.parse(body) as typeof problem
  } catch {
    // Not a problem document, such as the page of a proxy.
  }
  const text = (value: unknown, otherwise: string): string => (typeof value === 'string' && value !== '' ? value : otherwise)
  return new DaemonError({
    status,
    code: text(problem?.code, `http_${status}`),
    what: sentence(text(problem?.title, `The daemon answered with status ${status}`)),
    advice: sentence(text(problem?.advice, '')),
  })
}

function sentence(text: string): string {
  return text === '' ? '' : (text[0] ?? '').toUpperCase() + text.slice(1) + (/[.!?`]$/.test(text) ? '' : '.')
}

/** One line for a message box. */
export function told(error: unknown): string {
  if (error instanceof DaemonError) return [error.refusal.what, error.refusal.advice].filter((part) => part !== '').join(' ')
  return error instanceof Error ? error.message : String(error)
}
