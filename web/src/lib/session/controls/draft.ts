// What is typed and not sent yet, kept in the tab: a reload or a restart of the daemon loses nothing.

export interface Draft {
  text: string
  guide: string
  /** The name of this very message once it was tried to send: the same name again is the same turn. */
  turn: string | null
}

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>

const name = (session: string): string => `lanyard.draft.${session}`

export function load(session: string, store: Store): Draft {
  const empty: Draft = { text: '', guide: '', turn: null }
  try {
    const held: unknown = JSON.parse(store.getItem(name(session)) ?? '{}')
    const { text, guide, turn } = held as Partial<Record<keyof Draft, unknown>>
    return {
      text: typeof text === 'string' ? text : '',
      guide: typeof guide === 'string' ? guide : '',
      turn: typeof turn === 'string' ? turn : null,
    }
  } catch {
    return empty
  }
}

export function save(session: string, draft: Draft, store: Store): void {
  try {
    if (draft.text === '' && draft.guide === '') store.removeItem(name(session))
    else store.setItem(name(session), JSON.stringify(draft))
  } catch {
    // A store that is full or forbidden: what is typed is still on the screen.
  }
}
