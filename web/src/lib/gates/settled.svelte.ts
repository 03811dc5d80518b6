// Gates that were settled while somebody looked: answered here, by somebody else, or not needed any more.
import { get } from '../api/client'
import type { FlowGateEntry, GateEntry, GateList, GateStatus } from '../api/types'

export interface Settled {
  id: string
  title: string
  to: string
  from: string
  /** Null while it is asked for, and where it is not told. */
  status: GateStatus | null
  /** The words of the option that was chosen. */
  option: string | null
}

type Open = Map<string, { entry: GateEntry } | { flow: FlowGateEntry }>

const MOST = 8

export class SettledGates {
  list: readonly Settled[] = $state.raw([])
  #open: Open = new Map()

  /** To be told each list that was asked for. */
  see(now: GateList): void {
    const open: Open = new Map()
    for (const entry of now.gates) open.set(entry.id, { entry })
    for (const flow of now.flows) open.set(flow.gate.id, { flow })
    for (const [id, was] of this.#open) {
      if (open.has(id)) continue
      if ('entry' in was) this.#session(was.entry)
      else {
        const { flow } = was
        this.#add({ id, title: flow.gate.reason, to: `/flows/${encodeURIComponent(flow.flow)}`, from: flow.title, status: null, option: null })
      }
    }
    this.#open = open
  }

  #session(entry: GateEntry): void {
    const route = `/sessions/${encodeURIComponent(entry.session)}`
    this.#add({ id: entry.id, title: entry.title, to: route, from: entry.agent ?? 'agent', status: null, option: null })
    get<GateList>(`${route}/gates`)
      .then((list) => {
        const found = list.gates.find((gate) => gate.id === entry.id)
        if (found === undefined) return
        const status = found.status
        const option = status.name === 'answered' ? (entry.options.find((one) => one.id === status.option)?.name ?? status.option) : null
        this.list = this.list.map((one) => (one.id === entry.id ? { ...one, status, option } : one))
      })
      // How it ended is a nicety; that it ended is told already.
      .catch(() => undefined)
  }

  #add(one: Settled): void {
    this.list = [one, ...this.list.filter((other) => other.id !== one.id)].slice(0, MOST)
  }
}
