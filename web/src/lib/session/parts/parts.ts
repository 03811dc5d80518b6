// Parts of a message beside its text: images, files and links.
import { path, send } from '../../api/client'
import type { AttachedContent, NewPart, UploadedAttachment } from '../../api/types'

/** A part of a message, as a union one can switch over: the generated type loses which is which. */
export type Part = (AttachedContent & { kind: 'image' | 'file' }) | { kind: 'link'; uri: string; name?: string | null }

/** The parts of an event. */
export function partsOf(given: readonly unknown[] | null | undefined): readonly Part[] {
  return (given ?? []) as readonly Part[]
}

/** Parts that one message may have. */
export const PARTS_MAX = 16
/** Bytes of an image that is shown before it is sent. */
const PREVIEW_MAX = 8 << 20

/** Where the content of a part is. */
export function address(session: string, part: Pick<AttachedContent, 'id' | 'name'>): string {
  return path(`/sessions/${encodeURIComponent(session)}/attachments/${part.id}`, { name: part.name })
}

/** What stands for a part in a text: `[image shot.png]`. */
export function label(part: Part): string {
  switch (part.kind) {
    case 'image':
    case 'file':
      return `[${part.kind} ${part.name ?? part.media_type}]`
    case 'link':
      return part.name ? `[link ${part.name}: ${part.uri}]` : `[link ${part.uri}]`
  }
}

/** Only what a browser may open; anything else is a text. */
export function opens(uri: string): boolean {
  return /^https?:\/\//i.test(uri)
}

/** The attachments among the blocks of a tool's answer. */
export function partsIn(content: unknown): Part[] {
  if (!Array.isArray(content)) return []
  const found = content.filter((block): block is Part => {
    if (typeof block !== 'object' || block === null) return false
    const { type, kind, id } = block as Record<string, unknown>
    return type === 'attachment' && (kind === 'image' || kind === 'file') && typeof id === 'string'
  })
  return found
}

/** Something that is to go with the next message. */
export interface Draft {
  key: string
  name: string
  bytes: number
  image: boolean
  /** The image as it looks, for as long as the page lives. */
  preview: string | null
  /** The daemon has it under this id. */
  id: string | null
  error: string | null
}

export async function upload(file: File): Promise<UploadedAttachment> {
  return send<UploadedAttachment>('/attachments', file, { name: file.name })
}

/** The image as an address of its own; nothing for a file that is none, or is large. */
export function preview(file: File): Promise<string | null> {
  if (!/^image\/(?:png|jpeg|gif|webp)$/.test(file.type) || file.size > PREVIEW_MAX) return Promise.resolve(null)
  return new Promise((done) => {
    const reader = new FileReader()
    reader.onload = () => done(typeof reader.result === 'string' ? reader.result : null)
    reader.onerror = () => done(null)
    reader.readAsDataURL(file)
  })
}

/** The parts of a message whose attachments have arrived. */
export function asParts(drafts: readonly Draft[]): NewPart[] {
  return drafts.flatMap((draft) => (draft.id === null ? [] : [{ kind: 'attachment' as const, id: draft.id, name: draft.name }]))
}

/** The files of something that was pasted or dropped. */
export function filesIn(data: DataTransfer | null): File[] {
  return data === null ? [] : [...data.files]
}

/** Attachments that a draft of an earlier page had, as far as they can be told. */
export function held(value: unknown): Draft[] {
  if (!Array.isArray(value)) return []
  return value.slice(0, PARTS_MAX).flatMap((one: unknown) => {
    const { key, name, bytes, image, id } = (one ?? {}) as Partial<Record<keyof Draft, unknown>>
    if (typeof key !== 'string' || typeof name !== 'string' || typeof id !== 'string') return []
    return [{ key, name, bytes: typeof bytes === 'number' ? bytes : 0, image: image === true, preview: null, id, error: null }]
  })
}
