// Ids of sessions and tasks in what a link or a person gives.

export interface Named {
  kind: 'session' | 'task'
  id: string
}

/** Ids are lower-case letters and digits behind their prefix. Null where there is none, or more than one. */
export function idOf(text: string): Named | null {
  const found = [...text.matchAll(/(?<![a-z0-9_])(sess|task)_[a-z0-9]{1,40}(?![a-zA-Z0-9_])/g)]
  const [one] = found
  if (one === undefined || found.length > 1) return null
  return { kind: one[1] === 'sess' ? 'session' : 'task', id: one[0] }
}
