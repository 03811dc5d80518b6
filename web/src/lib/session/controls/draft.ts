// What is typed and not sent yet, kept in the tab: a reload or a restart of the daemon loses nothing.

import { held as heldAttachments, type Draft as Attachment } from '../parts/parts'

export interface Draft {
  text: string
  guide: string
  /** What is attached to it and has arrived. */
  attached: readonly Attachment[]
  /** The name of this very message once it was tried to send: the same name again is the same turn. */
  turn: string | null
}

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>

const name = (session: string): string => `lanyard.draft.${session}`

export function load(session: string, store: Store): Draft {
  const empty: Draft = { text: '', guide: '', attached: [], turn: null }
  try {
    const held: unknown = JSON.parse(store.getItem(name(session)) ?? '{}')
    const { text, guide, attached, turn } = held as Partial<Record<keyof Draft, unknown>>
    return {
      text: typeof text === 'string' ? text : '',
      guide: typeof guide === 'string' ? guide : '',
      attached: heldAttachments(attached),
      turn: typeof turn === 'string' ? turn : null,
    }
  } catch {
    return empty
  }
}

export function save(session: string, draft: Draft, store: Store): void {
  try {
    const attached = draft.attached.filter((one) => one.id !== null).map((one) => ({ ...one, preview: null }))
    if (draft.text === '' && draft.guide === '' && attached.length === 0) store.removeItem(name(session))
    else store.setItem(name(session), JSON.stringify({ ...draft, attached }))
  } catch {
    // A store that is full or forbidden: what is typed is still on the screen.
  }
}
