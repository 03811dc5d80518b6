// All that the views show, kept as the daemon's streams say. Lists are asked for again when a stream says they changed.
import * as vscode from 'vscode'

import type { DirectoryFrame, GateList, Notification, NotificationPage, PlanList, PlanRow, SessionRow, TaskPage, TaskView, WorkerList, WorkerRow } from '../api/schema.gen'
import type { Connection } from '../client/connection'
import { told } from '../client/errors'
import { needsOf, type Need } from './needs'

/** Changes that come together are asked for once. */
const GATHER_MS = 150
const NOTIFICATIONS = 100
const TASKS = 500

type Part = 'sessions' | 'needs' | 'plans'
type List = 'gates' | 'notifications' | 'plans'

export class Store implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<Part>()
  readonly onChange = this.#changed.event
  readonly rows = new Map<string, SessionRow>()
  gates: GateList | null = null
  notifications: readonly Notification[] = []
  plans: readonly PlanRow[] = []
  tasks: readonly TaskView[] = []
  workers: readonly WorkerRow[] = []
  /** Sessions of the connection before that were not shown again yet. */
  #stale: Set<string> | null = null
  #waiting = new Set<List | 'sessions'>()
  #timer: ReturnType<typeof setTimeout> | null = null
  #asked = ''

  constructor(
    private readonly connection: () => Connection,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  get needs(): Need[] {
    return needsOf(this.gates, this.notifications, Date.now())
  }

  dispose(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#changed.dispose()
  }

  /** For another daemon: nothing of the one before is shown. */
  clear(): void {
    this.rows.clear()
    this.gates = null
    this.notifications = this.plans = this.tasks = this.workers = []
    for (const part of ['sessions', 'needs', 'plans'] as const) this.#changed.fire(part)
  }

  refresh(): void {
    this.#soon('gates', 'notifications', 'plans')
  }

  directory(frame: DirectoryFrame | null): void {
    switch (frame?.type) {
      case 'connected':
        this.#stale = new Set(this.rows.keys())
        this.refresh()
        break
      case 'row':
        this.#stale?.delete(frame.row.id)
        this.rows.set(frame.row.id, frame.row)
        this.#soon('sessions')
        break
      case 'gone':
        this.rows.delete(frame.session)
        this.#soon('sessions')
        break
      case 'ready':
        for (const id of this.#stale ?? []) this.rows.delete(id)
        this.#stale = null
        this.#soon('sessions')
        break
      default:
        break
    }
  }

  record(frame: { type?: unknown; kind?: unknown } | null): void {
    if (frame?.type === 'connected') this.refresh()
    else if (frame?.kind === 'notification') this.#soon('notifications')
    else if (frame?.kind === 'flow') this.#soon('gates')
    else if (frame?.kind === 'task' || frame?.kind === 'plan') this.#soon('plans')
  }

  #soon(...lists: (List | 'sessions')[]): void {
    for (const list of lists) this.#waiting.add(list)
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      const all = this.#waiting
      this.#waiting = new Set()
      if (all.has('sessions')) this.#sessions(all)
      for (const list of all) if (list !== 'sessions') void this.#ask(list)
    }, GATHER_MS)
  }

  #sessions(all: Set<List | 'sessions'>): void {
    this.#changed.fire('sessions')
    const asking = [...this.rows.values()].filter((row) => row.pending.gates > 0).map((row) => `${row.id}${row.pending.gates}${row.last_seq}`).join()
    if (asking !== this.#asked) all.add('gates')
    this.#asked = asking
    if ([...this.rows.values()].some((row) => row.plan != null)) all.add('plans')
  }

  async #ask(list: List): Promise<void> {
    const { http } = this.connection()
    try {
      if (list === 'gates') this.gates = await http.get<GateList>('/gates')
      else if (list === 'notifications') this.notifications = (await http.get<NotificationPage>('/notifications', { open: true, limit: NOTIFICATIONS })).notifications
      else {
        const [plans, tasks, workers] = await Promise.all([http.get<PlanList>('/plans'), http.get<TaskPage>('/tasks', { limit: TASKS }), http.get<WorkerList>('/workers', { all: true })])
        this.plans = plans.plans
        this.tasks = tasks.tasks
        this.workers = workers.workers
      }
      // Of another daemon meanwhile.
      if (http === this.connection().http) this.#changed.fire(list === 'plans' ? 'plans' : 'needs')
    } catch (error) {
      this.log.info(`${list}: ${told(error)}`)
    }
  }
}
