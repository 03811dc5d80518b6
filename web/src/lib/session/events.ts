// Events of a log and frames of a stream, as unions one can switch over. The document describes both as compositions,
// which the generated types lose.
import type {
  Actor,
  ChangeEvent,
  Connected,
  ContextEvent,
  ControlEvent,
  Damage,
  GateEvent,
  InboxEvent,
  PresenceList,
  PreviewKind,
  ReviewEvent,
  RunEvent,
  TranscriptEvent,
  TurnEvent,
  WriterEvent,
} from '../api/types'

interface Stamp {
  seq: number
  session: string
  at: string
  actor: Actor
  cause?: unknown
}

type Happened =
  | ChangeEvent
  | TurnEvent
  | InboxEvent
  | ContextEvent
  | ControlEvent
  | TranscriptEvent
  | RunEvent
  | GateEvent
  | WriterEvent
  | ReviewEvent
  /** One that could not be read. */
  | { type: 'record.damaged'; data: Damage }

export type Event = Happened & Stamp
export type EventOf<T extends Event['type']> = Extract<Event, { type: T }>

export type Frame =
  | ({ type: 'connected' } & Connected)
  | { type: 'preview'; kind: PreviewKind; text: string; message_id?: string | null }
  | ({ type: 'presence' } & PresenceList)
  | { type: 'resync'; after: number; head: number }
  | { type: 'reply'; ref?: string | null; status: number; body: unknown }
  | { type: 'error'; code: string; what: string; advice: string; ref?: string | null }
  | { type: 'heartbeat' }
  | { type: 'goodbye'; why: string }
