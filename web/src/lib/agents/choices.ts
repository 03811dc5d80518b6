// What can be chosen of an agent, as pickers; and its own commands while one is typed.
import type { AgentChoice, AgentLack, AgentOffer, OfferedCommand, OfferItem } from '../api/types'
import { lack } from './lacks'

export type Kind = 'model' | 'mode' | 'effort'

export interface Picker {
  kind: Kind
  label: string
  items: readonly OfferItem[]
  /** The words for no choice. */
  usual: string
  /** Why nothing can be chosen. */
  why: string | null
  /** The chosen mode asks for no approvals. */
  unguarded: boolean
}

const KINDS: readonly { kind: Kind; label: string; menu: 'models' | 'modes' | 'efforts' }[] = [
  { kind: 'model', label: 'Model', menu: 'models' },
  { kind: 'mode', label: 'Mode', menu: 'modes' },
  { kind: 'effort', label: 'Effort', menu: 'efforts' },
]

/** One for each kind, with the daemon's reason where it cannot be chosen. */
export function pickers(offer: AgentOffer | null | undefined, lacks: readonly AgentLack[] | null | undefined, value: AgentChoice, below: AgentChoice): Picker[] {
  return KINDS.map(({ kind, label, menu: name }) => {
    const menu = offer?.[name]
    const items = menu?.items ?? []
    const held = below[kind] ?? menu?.default
    const usual = items.find((item) => item.id === held)?.name ?? held
    const why = lack(lacks, kind) ?? (items.length > 0 ? null : 'Any name can be given, with `lanyard model`.')
    const unguarded = items.some((item) => item.id === (value[kind] ?? held) && item.unguarded === true)
    return { kind, label, items, usual: usual ? `Default (${usual})` : 'Default', why, unguarded }
  })
}

/** How many commands are shown at a time. */
const MOST = 8

/** The commands that what is typed begins, while it is the name of one and nothing more. */
export function completed(commands: readonly OfferedCommand[] | undefined, typed: string): OfferedCommand[] {
  const name = /^\/(\S*)$/.exec(typed)?.[1]
  if (name === undefined) return []
  const lower = name.toLowerCase()
  const fit = (commands ?? []).filter((command) => command.name?.toLowerCase().startsWith(lower))
  return fit.length === 1 && fit[0]?.name === name ? [] : fit.slice(0, MOST)
}
