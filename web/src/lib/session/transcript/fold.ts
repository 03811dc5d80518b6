// Events to items, one after the other. What was folded stays: an event touches the end, or the one item it belongs to.
import type { Actor, GateEntry, NoteKind } from '../../api/types'
import { words } from '../../format'
import type { Tone } from '../../states'
import type { Event, EventOf } from '../events'
import type { EndItem, Item, ItemOf, Line, NoteItem, ToolItem } from './items'
import { partsOf, type Part } from '../parts/parts'
import { mark } from './marks'

/** A message longer than this goes on in another item, so that one that grows and grows is not drawn again as a whole. */
const LONG = 6_000
const LONGEST = 48_000
/** Quiet lines that share one. */
const TOGETHER = 6
/** How far back the call is looked for that came by here. */
const NEAR = 16

type Fresh = Item extends infer I ? (I extends Item ? Omit<I, 'key' | 'seq' | 'last' | 'at' | 'sum'> : never) : never

export class Folder {
  first = 0
  last = 0
  /** With holes where something moved on. */
  #items: (Item | null)[] = []
  #calls = new Map<string, number>()
  #notes = new Map<string, number>()
  #gates = new Map<string, number>()
  #runs = new Map<string, number>()
  #turns = new Map<string, string>()
  /** Messages on their way into a turn, by note. They stand in the queue until they arrive. */
  #steers = new Map<string, { text: string; parts?: readonly Part[]; by: Actor; turn: string | null }>()
  /** Calls that are not back yet, in order. */
  #running: string[] = []
  #plan = -1
  #usage: EndItem['tokens'] = null
  #cost = 0
  /** The message that began the running turn, and what the turn did so far. */
  #opening = -1
  #made = 0
  #failed = 0
  #files = new Set<string>()
  #inTurn = false

  get items(): Item[] {
    return this.#items.filter((item) => item !== null)
  }

  push(event: Event): void {
    if (this.first === 0) this.first = event.seq
    if (event.seq <= this.last) return
    this.last = event.seq
    this.#take(event)
  }

  #take(event: Event): void {
    switch (event.type) {
      case 'message':
        if (event.data.role === 'user') this.#add(event, { kind: 'user', text: event.data.text, parts: partsOf(event.data.parts), by: null, tags: [] })
        else this.#say(event)
        break
      case 'thought': {
        const open = this.#items.at(-1)
        if (open?.kind === 'thought' && open.text.length < LONGEST) this.#change(this.#items.length - 1, event, { ...open, text: open.text + event.data.text })
        else this.#add(event, { kind: 'thought', text: event.data.text })
        break
      }
      case 'tool.called':
      case 'tool.returned':
      case 'tool.relayed':
        this.#tool(event)
        break
      case 'file.changed':
        if (!this.#file(event)) this.#mark(event)
        break
      case 'turn.started':
        this.#begin(event)
        break
      case 'turn.queued':
        if (event.data.note == null) this.#mark(event)
        else this.#steers.set(event.data.note, { text: event.data.prompt, parts: partsOf(event.data.parts), by: event.actor, turn: event.data.turn })
        break
      case 'turn.withdrawn':
        if (!this.#unsteered(event)) this.#mark(event)
        break
      case 'turn.promoted':
        if (event.data.to !== 'steer') this.#mark(event)
        break
      case 'turn.steered':
        break
      case 'turn.finished':
      case 'turn.interrupted':
        this.#end(event)
        break
      case 'usage.reported':
        if (this.#inTurn) {
          this.#usage = { input: event.data.input_tokens, output: event.data.output_tokens }
          this.#cost += event.data.cost_micros ?? 0
        } else this.#mark(event)
        break
      case 'plan.updated': {
        const old = this.#items[this.#plan]
        if (old?.kind === 'plan') this.#change(this.#plan, event, { ...old, old: true })
        this.#plan = this.#add(event, { kind: 'plan', entries: event.data.entries, old: false })
        break
      }
      case 'guidance.queued':
      case 'guidance.delivered':
      case 'guidance.returned':
      case 'guidance.settled':
        this.#guidance(event)
        break
      case 'gate.opened':
      case 'gate.answered':
      case 'gate.withdrawn':
        this.#gate(event)
        break
      case 'run.started':
      case 'run.ready':
      case 'run.adopted':
        this.#run(event)
        break
      case 'context.compacted': {
        const { size_before: before, size_after: after, nth, anchors_lost: lost, anchors_survived: kept } = event.data
        this.#add(event, { kind: 'compacted', before, after, nth, lost, kept: kept.length })
        break
      }
      default:
        this.#mark(event)
    }
  }

  #add(event: Event, item: Fresh): number {
    const made = { ...item, key: `${item.kind}${event.seq}`, seq: event.seq, last: event.seq, at: event.at, sum: event.seq } as Item
    return this.#items.push(made) - 1
  }

  #change(index: number, event: Event, item: Item): void {
    this.#items[index] = { ...item, last: Math.max(item.last, event.seq), sum: item.sum + event.seq }
  }

  #find<K extends Item['kind']>(kind: K, index: number | undefined): ItemOf<K> | null {
    const item = index === undefined ? null : this.#items[index]
    return item?.kind === kind ? (item as ItemOf<K>) : null
  }

  #say(event: EventOf<'message'>): void {
    const open = this.#items.at(-1)
    const { text } = event.data
    const parts = partsOf(event.data.parts)
    const message = (event.data as { message_id?: string | null }).message_id ?? null
    if (open?.kind !== 'agent') {
      this.#add(event, { kind: 'agent', text, parts, rest: false, message })
      return
    }
    // Text behind an image is below it.
    if (text !== '' && (open.parts?.length ?? 0) > 0) {
      this.#add(event, { kind: 'agent', text, parts, rest: true, message })
      return
    }
    if (parts.length > 0) {
      this.#change(this.#items.length - 1, event, { ...open, text: open.text + text, parts: [...(open.parts ?? []), ...parts] })
      return
    }
    // Pieces with one id are one message; another id begins another.
    if (message !== null && open.message != null && message !== open.message) {
      this.#add(event, { kind: 'agent', text, rest: true, message })
      return
    }
    const all = open.text + text
    const at = all.length > LONG ? seam(all) : -1
    if (at < 0) {
      this.#change(this.#items.length - 1, event, { ...open, text: all, message: message ?? open.message ?? null })
      return
    }
    this.#change(this.#items.length - 1, event, { ...open, text: all.slice(0, at) })
    this.#add(event, { kind: 'agent', text: all.slice(at), rest: true, message: message ?? open.message ?? null })
  }

  #tool(event: EventOf<'tool.called' | 'tool.returned' | 'tool.relayed'>): void {
    const { call } = event.data
    const index = this.#calls.get(call)
    const known = this.#find('tool', index)
    const fresh: Omit<ToolItem, 'key' | 'seq' | 'last' | 'at' | 'sum'> = {
      kind: 'tool', call, tool: 'tool', arguments: undefined, content: undefined, state: 'running', ms: null, relayed: null, files: [],
    }
    const put = (item: Partial<ToolItem>): void => {
      if (known !== null && index !== undefined) this.#change(index, event, { ...known, ...item })
      else this.#calls.set(call, this.#add(event, { ...fresh, ...item }))
    }
    switch (event.type) {
      case 'tool.called':
        this.#made += 1
        // Ids begin anew with each conversation: one that is back is another call.
        if (known !== null && (known.relayed === null || known.arguments !== undefined)) this.#calls.set(call, this.#add(event, { ...fresh, tool: event.data.tool, arguments: event.data.arguments }))
        else put({ tool: event.data.tool, arguments: event.data.arguments })
        this.#running.push(call)
        break
      case 'tool.returned': {
        const ms = known?.ms ?? (known === null ? null : Date.parse(event.at) - Date.parse(known.at))
        put({ content: event.data.content, state: event.data.is_error ? 'error' : 'ok', ms })
        if (event.data.is_error) this.#failed += 1
        this.#running = this.#running.filter((one) => one !== call)
        break
      }
      case 'tool.relayed': {
        const { server, channel, bytes, took_ms: ms, is_error: bad, tool } = event.data
        const told = known === null ? this.#told(tool) : null
        if (told !== null) {
          this.#change(told.index, event, { ...told.item, relayed: { server: server ?? null, channel, bytes } })
          break
        }
        const state = known === null || known.arguments === undefined ? (bad ? 'error' : 'ok') : known.state
        put({ relayed: { server: server ?? null, channel, bytes }, ms, state, tool: known?.tool ?? tool })
        break
      }
    }
  }

  /**
   * The call an agent told of that came by here under another id: agents and gateway number calls each for themselves.
   * Its name may have the server's in front.
   */
  #told(tool: string): { index: number; item: ToolItem } | null {
    for (let index = this.#items.length - 1; index >= Math.max(0, this.#items.length - NEAR); index--) {
      const item = this.#items[index]
      if (item?.kind !== 'tool' || item.relayed !== null || item.arguments === undefined) continue
      if (item.tool === tool || (item.tool.endsWith(tool) && /[^\p{L}\p{N}]$/u.test(item.tool.slice(0, -tool.length)))) return { index, item }
    }
    return null
  }

  /** A file that changes while a tool is at work was changed by it. */
  #file(event: EventOf<'file.changed'>): boolean {
    this.#files.add(event.data.path)
    const call = this.#running.at(-1)
    const index = call === undefined ? undefined : this.#calls.get(call)
    const tool = this.#find('tool', index)
    if (tool === null || index === undefined) return false
    const { path, added, removed } = event.data
    this.#change(index, event, { ...tool, files: [...tool.files, { path, added: added ?? null, removed: removed ?? null }] })
    return true
  }

  #begin(event: EventOf<'turn.started'>): void {
    const { prompt, turn, opening, queued, delivery, by, anchors } = event.data
    const tags: string[] = []
    if (queued) tags.push('was queued')
    if (delivery === 'steer') tags.push('did not get into the turn before')
    if (delivery === 'interrupt') tags.push('interrupted the turn before')
    if (opening.kind === 'returned') tags.push('after a pause')
    if (anchors?.length) tags.push(`with ${anchors.length} ${anchors.length === 1 ? 'anchor' : 'anchors'}`)
    this.#turns.set(turn, event.at)
    this.#inTurn = true
    this.#plan = -1
    this.#usage = null
    this.#cost = this.#made = this.#failed = 0
    this.#files.clear()
    this.#opening = this.#add(event, { kind: 'user', text: prompt, parts: partsOf(event.data.parts), by: by ?? event.actor, tags, begins: turn })
  }

  #end(event: EventOf<'turn.finished' | 'turn.interrupted'>): void {
    const began = this.#turns.get(event.data.turn)
    // What did not come back with its turn never will.
    for (const call of this.#running) {
      const index = this.#calls.get(call)
      const tool = this.#find('tool', index)
      if (tool !== null && index !== undefined) this.#change(index, event, { ...tool, state: 'open' })
    }
    this.#running = []
    let title = 'Turn over'
    let tone: Tone = 'plain'
    let uncertain = false
    if (event.type === 'turn.finished') {
      title = { completed: 'Completed', failed: 'Failed', refused: 'Refused by the agent' }[event.data.outcome] ?? words(event.data.outcome)
      tone = event.data.outcome === 'completed' ? 'ok' : 'bad'
    } else {
      title = event.data.cause === 'user' ? 'Cancelled' : `Interrupted: ${words(event.data.cause)}`
      tone = 'warn'
      uncertain = event.data.uncertain ?? false
    }
    const ms = began === undefined ? null : Date.parse(event.at) - Date.parse(began)
    const cost = this.#cost > 0 ? this.#cost : null
    this.#sumUp(event, ms, cost)
    this.#add(event, { kind: 'end', ends: event.data.turn, title, tone, reason: event.data.reason ?? null, ms, tokens: this.#usage, cost, uncertain })
    this.#inTurn = false
    this.#usage = null
  }

  /** The turn in numbers, at the message that began it. */
  #sumUp(event: Event, ms: number | null, cost: number | null): void {
    const opening = this.#find('user', this.#opening)
    if (opening === null) return
    const tokens = this.#usage === null ? null : this.#usage.input + this.#usage.output
    this.#change(this.#opening, event, { ...opening, turn: { ms, tokens, cost, calls: this.#made, failed: this.#failed, files: this.#files.size } })
    this.#opening = -1
  }

  #guidance(event: EventOf<'guidance.queued' | 'guidance.delivered' | 'guidance.returned' | 'guidance.settled'>): void {
    if (event.type === 'guidance.queued') {
      const { note, text, kind } = event.data
      if (kind === 'steer') {
        const { turn = null, parts } = this.#steers.get(note) ?? {}
        this.#steers.set(note, { text, parts, by: event.actor, turn })
        return
      }
      this.#notes.set(note, this.#add(event, { kind: 'note', note, what: kind ?? 'guidance', text, by: event.actor, state: 'queued', channel: null, call: null }))
      return
    }
    event.data.notes.forEach((note, at) => {
      const index = this.#notes.get(note)
      const known = this.#find('note', index)
      const steer = this.#steers.get(note)
      const blank = { note, what: (steer ? 'steer' : 'guidance') as NoteKind, text: steer?.text ?? '', parts: steer?.parts, by: steer?.by ?? null, channel: null, call: null }
      if (event.type === 'guidance.settled') {
        if (known !== null && index !== undefined) this.#change(index, event, { ...known, state: event.data.how })
        return
      }
      // It stands where it was told, not where it was asked for.
      if (index !== undefined) this.#items[index] = null
      const told: Partial<NoteItem> =
        event.type === 'guidance.delivered'
          ? { state: 'delivered', channel: event.data.channel, call: event.data.call ?? null, text: known?.text ?? steer?.text ?? event.data.preview ?? '' }
          : { state: 'returned', channel: null }
      const made = { ...blank, ...known, ...told, kind: 'note', key: `note${event.seq}.${at}`, seq: event.seq, last: event.seq, at: event.at, sum: event.seq + (known?.sum ?? 0) }
      this.#notes.set(note, this.#items.push(made as NoteItem) - 1)
    })
  }

  /** A message that was taken back on its way into a turn. */
  #unsteered(event: EventOf<'turn.withdrawn'>): boolean {
    const found = [...this.#steers].find(([, steer]) => steer.turn === event.data.turn)
    if (found === undefined) return false
    const [note, { text, parts, by }] = found
    this.#steers.delete(note)
    this.#notes.set(note, this.#add(event, { kind: 'note', note, what: 'steer', text, parts, by, state: 'withdrawn', channel: null, call: null }))
    return true
  }

  #gate(event: EventOf<'gate.opened' | 'gate.answered' | 'gate.withdrawn'>): void {
    if (event.type === 'gate.opened') {
      const { gate: id, ...rest } = event.data
      const entry: GateEntry = { ...rest, id, session: event.session, opened_at: event.at, status: { name: 'open' } }
      this.#gates.set(id, this.#add(event, { kind: 'gate', entry }))
      return
    }
    const index = this.#gates.get(event.data.gate)
    const known = this.#find('gate', index)
    if (known === null || index === undefined) return
    const status: GateEntry['status'] =
      event.type === 'gate.answered'
        ? { name: 'answered', at: event.at, by: event.actor, option: event.data.option, message: event.data.message }
        : { name: 'withdrawn', at: event.at, why: event.data.why }
    this.#change(index, event, { ...known, entry: { ...known.entry, status } })
  }

  #run(event: EventOf<'run.started' | 'run.ready' | 'run.adopted'>): void {
    const { run } = event.data
    if (event.type === 'run.started') {
      const { agent, number, mirrored } = event.data
      this.#runs.set(run, this.#add(event, { kind: 'run', run, agent, number, mirrored: mirrored ?? false, about: null, state: 'starting', continuity: null, history: null }))
      return
    }
    const index = this.#runs.get(run)
    const known = this.#find('run', index)
    const blank = { kind: 'run' as const, run, agent: 'agent', number: null, mirrored: false, about: null, continuity: null, history: null }
    if (event.type === 'run.adopted') {
      // The daemon went away and came back in between: that is worth a line where it happened.
      const { agent, number, about, mirrored } = known ?? blank
      this.#runs.set(run, this.#add(event, { ...blank, agent, number, about, mirrored, state: 'adopted', continuity: 'exact' }))
      return
    }
    const { info, continuity, history } = event.data
    const ready = { about: `${info.name}${info.version ? ` ${info.version}` : ''}, ${info.protocol}`, state: 'ready' as const, continuity: continuity ?? null, history: history ?? null }
    if (known !== null && index !== undefined) this.#change(index, event, { ...known, ...ready })
    else this.#runs.set(run, this.#add(event, { ...blank, ...ready }))
  }

  #mark(event: Event): void {
    const found: Line | null = mark(event)
    if (found === null) return
    const open = this.#items.at(-1)
    if (found.quiet && open?.kind === 'mark' && open.lines.length < TOGETHER && open.lines.every((line) => line.quiet)) {
      this.#change(this.#items.length - 1, event, { ...open, lines: [...open.lines, found] })
    } else {
      this.#add(event, { kind: 'mark', lines: [found] })
    }
  }
}

/** Where a long message is parted: between paragraphs outside of code; anywhere when it gets too long. */
function seam(text: string): number {
  const at = text.lastIndexOf('\n\n')
  if (at > LONG / 2 && (text.slice(0, at).match(/^\s*```/gm)?.length ?? 0) % 2 === 0) return at + 2
  if (text.length < LONGEST) return -1
  const line = text.lastIndexOf('\n')
  return line > LONG ? line + 1 : LONGEST
}

/** Items of a log that grows at its end, and now and then at its beginning. */
export class Folded {
  #folder = new Folder()
  #items: Item[] = []

  of(events: readonly Event[]): readonly Item[] {
    const first = events[0]?.seq ?? 0
    if (first !== this.#folder.first) {
      const kept = new Map(this.#items.map((item) => [item.key, item]))
      this.#folder = new Folder()
      for (const event of events) this.#folder.push(event)
      this.#items = this.#folder.items.map((item) => {
        const old = kept.get(item.key)
        return old?.sum === item.sum ? old : item
      })
      return this.#items
    }
    if ((events.at(-1)?.seq ?? 0) === this.#folder.last) return this.#items
    let from = events.length
    while (from > 0 && (events[from - 1]?.seq ?? 0) > this.#folder.last) from -= 1
    for (const event of events.slice(from)) this.#folder.push(event)
    this.#items = this.#folder.items
    return this.#items
  }
}
