// What an agent cannot do. The daemon gives the reasons; a page only says them.
import type { AgentAbility, AgentLack } from '../api/types'

type Lacks = readonly AgentLack[] | null | undefined

/** The reason why it cannot do one thing, as a sentence and what to do instead; null where nothing speaks against it. */
export function lack(lacks: Lacks, what: AgentAbility): string | null {
  const found = lacks?.find((one) => one.what === what)
  return found ? `${capital(found.why)}. ${capital(found.instead)}.` : null
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
