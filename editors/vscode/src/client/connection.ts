// The one connection to the daemon: where it is, whose token is used, the two streams that all views live on.
import { spawn } from 'node:child_process'

import * as vscode from 'vscode'

import type { Me } from '../api/schema.gen'
import { DaemonError, told } from './errors'
import { follow, type FollowState } from './follow'
import { API, DaemonHttp, withQuery } from './http'
import type { SseEvent } from './sse'
import { targetOf, type Target } from './target'

export type Link = 'connecting' | 'live' | 'away' | 'refused'

const SECRET = 'lanyard.token'
/** Sessions the directory is asked for; the daemon may show fewer. */
const DIRECTORY_ROWS = 2_000
/** No second start of the daemon within this. */
const START_AGAIN_MS = 10_000

export interface Frames {
  directory: (frame: unknown) => void
  record: (frame: unknown) => void
  /** What was shown belongs to another daemon or to a token that is not valid any more. */
  reset: () => void
}

export class Connection implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>()
  /** After `link` or `me` changed. */
  readonly onChange = this.#changed.event
  link: Link = 'connecting'
  me: Me | null = null
  http: DaemonHttp
  #stops: (() => void)[] = []
  /** Position of the last record frame; null before the first connection. */
  #position: number | null = null
  #started = 0
  #offered = false

  constructor(
    private readonly secrets: vscode.SecretStorage,
    private readonly frames: Frames,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.http = this.#http(this.#target())
  }

  /** Observers look and change nothing; the daemon refuses their changes too. */
  get operator(): boolean {
    return this.me?.role === 'operator'
  }

  get target(): Target {
    return this.http.target
  }

  /** Opens the streams anew, such as after a change of settings. */
  open(): void {
    this.#close()
    this.http = this.#http(this.#target())
    this.me = null
    this.#position = null
    this.frames.reset()
    this.#turn('connecting')
    this.#stops = [
      follow(this.http, {
        where: () => withQuery(`${API}/directory/stream`, { limit: DIRECTORY_ROWS }),
        event: (event) => this.frames.directory(parsed(event)),
        state: (state, error) => this.#state(state, error),
      }),
      follow(this.http, {
        where: () => withQuery(`${API}/records/stream`, { after: this.#position }),
        event: (event) => this.#record(event),
        state: (_state, error) => {
          // The journal was replaced: positions of the one before mean nothing.
          if (error?.code === 'seq_in_future') this.#position = null
        },
      }),
    ]
  }

  dispose(): void {
    this.#close()
    this.#changed.dispose()
  }

  async setToken(): Promise<void> {
    const token = await vscode.window.showInputBox({ title: 'Token of the daemon', prompt: 'Kept in the secret storage of this editor. `lanyard token` makes one.', password: true, ignoreFocusOut: true })
    if (token === undefined || token.trim() === '') return
    await this.secrets.store(SECRET, token.trim())
    this.open()
  }

  async forgetToken(): Promise<void> {
    await this.secrets.delete(SECRET)
    this.open()
  }

  /** Starts the daemon of the data folder; the streams notice it by themselves. */
  start(): void {
    if (this.target.kind !== 'socket') {
      void vscode.window.showInformationMessage('The daemon at "lanyard.address" is started on its own machine.')
      return
    }
    if (!vscode.workspace.isTrusted || Date.now() - this.#started < START_AGAIN_MS) return
    this.#started = Date.now()
    const program = settings().get('program', 'lanyard')
    this.log.info(`starting ${program} up`)
    const child = spawn(program, ['up', '--data-dir', this.target.folder], { detached: true, stdio: 'ignore' })
    child.once('error', (error) => void vscode.window.showErrorMessage(`Lanyard could not be started: ${error.message}. Set "lanyard.program" to where it is.`))
    child.unref()
  }

  #target(): Target {
    const wanted = { address: settings().get('address', ''), dataFolder: settings().get('dataFolder', '') }
    const target = targetOf(wanted, process.env)
    if (target !== null) return target
    void vscode.window.showErrorMessage(`"lanyard.address" is no address that a token may be sent to: ${wanted.address}. Use https, or http on this machine.`)
    return { kind: 'address', base: 'http://127.0.0.1:9' }
  }

  #http(target: Target): DaemonHttp {
    return new DaemonHttp(target, async () => this.secrets.get(SECRET))
  }

  #close(): void {
    for (const stop of this.#stops) stop()
    this.#stops = []
  }

  #state(state: FollowState, error: DaemonError | null): void {
    if (error !== null) this.log.info(`directory: ${told(error)}`)
    if (state === 'live') void this.#known()
    else {
      if (state === 'refused') {
        this.me = null
        this.frames.reset()
      }
      this.#turn(state)
    }
    if (state === 'away' && error?.status === 0) this.#away()
  }

  async #known(): Promise<void> {
    try {
      this.me = await this.http.get<Me>('/me')
      this.#turn('live')
    } catch (error) {
      this.log.warn(told(error))
    }
  }

  #away(): void {
    if (this.target.kind !== 'socket') return
    const wanted = settings().get<string>('start', 'ask')
    if (wanted === 'always') this.start()
    else if (wanted === 'ask' && !this.#offered) {
      this.#offered = true
      void vscode.window.showInformationMessage('No Lanyard daemon answers.', 'Start it').then((choice) => choice !== undefined && this.start())
    }
  }

  #record(event: SseEvent): void {
    const frame = parsed(event) as { position?: unknown; type?: unknown; last?: unknown } | null
    // Where the stream begins counts too: what changes before the first frame must not be missed after a break.
    if (frame?.type === 'connected' && this.#position === null && typeof frame.last === 'number') this.#position = frame.last
    if (typeof frame?.position === 'number') this.#position = frame.position
    this.frames.record(frame)
  }

  #turn(link: Link): void {
    this.link = link
    void vscode.commands.executeCommand('setContext', 'lanyard.link', link)
    void vscode.commands.executeCommand('setContext', 'lanyard.operator', this.operator)
    this.#changed.fire()
  }
}

export const settings = (): vscode.WorkspaceConfiguration => vscode.workspace.getConfiguration('lanyard')

function parsed(event: SseEvent): unknown {
  try {
    return JSON.parse(event.data)
  } catch {
    return null
  }
}
