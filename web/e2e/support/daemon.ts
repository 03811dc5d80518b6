// A real daemon in a folder of its own, with the scripted agent. Everything it starts ends with it.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const PROGRAM = process.env.LANYARD_BIN ?? resolve(import.meta.dirname, '../../../target/debug/lanyard')
const PAGES = process.env.LANYARD_DASHBOARD_DIR ?? resolve(import.meta.dirname, '../../dist')
const PATIENCE_MS = 30_000

interface Made {
  session: string
  seq: number
}

export class Daemon {
  readonly folder = mkdtempSync('/tmp/lyw')
  readonly workspace = join(this.folder, 'workspace')
  address = ''
  #child: ChildProcess | null = null
  #port = 0

  constructor(config = '') {
    mkdirSync(this.workspace)
    writeFileSync(join(this.folder, 'config.toml'), config)
  }

  get home(): string {
    return join(this.folder, 'home')
  }

  /** The address of a page. */
  at(path: string): string {
    return `http://${this.address}${path}`
  }

  /** Makes a file in the workspace: what a `/wait-file` of a script waits for. */
  touch(name: string): void {
    writeFileSync(join(this.workspace, name), '')
  }

  /** Starts it and waits until it answers; again under the same address after `kill9`. */
  async start(): Promise<void> {
    const log = openSync(join(this.folder, 'log'), 'a')
    this.#child = spawn(PROGRAM, ['up', '--listen', `127.0.0.1:${this.#port}`], { env: this.#env(), stdio: ['ignore', 'ignore', log] })
    const until = Date.now() + PATIENCE_MS
    for (;;) {
      const status = this.#try(['status', '--json'])
      if (status.ok) {
        this.address = (JSON.parse(status.out) as { address: string }).address
        this.#port = Number(this.address.split(':').at(-1))
        return
      }
      if (this.#child.exitCode !== null || Date.now() > until) throw new Error(`the daemon did not start:\n${this.log()}`)
      await new Promise((done) => setTimeout(done, 25))
    }
  }

  async kill9(): Promise<void> {
    const child = this.#child
    if (child === null || child.exitCode !== null) return
    const gone = new Promise((done) => child.once('exit', done))
    child.kill('SIGKILL')
    await gone
  }

  /** Ends it, its agents and its folder. */
  async end(): Promise<void> {
    await this.kill9()
    // Agents live on under their shims, which is the point of them; here they end by what they were started with.
    spawnSync('pkill', ['-9', '-f', this.folder])
    rmSync(this.folder, { recursive: true, force: true })
  }

  log(): string {
    return readFileSync(join(this.folder, 'log'), 'utf8')
  }

  /** What a command prints; an error when it fails. */
  run(...args: string[]): string {
    const done = this.#try(args)
    if (!done.ok) throw new Error(`lanyard ${args.join(' ')}:\n${done.err}`)
    return done.out
  }

  json<T>(...args: string[]): T {
    return JSON.parse(this.run(...args, '--json')) as T
  }

  /** A session of the scripted agent that does these steps; answers its id at once. */
  script(title: string, steps: string, ...more: string[]): string {
    const made = this.json<Made>('run', '--agent', 'demo', '--title', title, '--cwd', this.workspace, '--detach', ...more, steps)
    return made.session
  }

  /** A further scripted agent with these flags, taken up while the daemon runs. */
  offer(name: string, flags: readonly string[]): void {
    const command = [PROGRAM, 'scripted-agent', '--state', join(this.folder, name), ...flags]
    appendFileSync(join(this.folder, 'config.toml'), `\n[agents.${name}]\ndriver = "acp"\ncommand = ${JSON.stringify(command)}\n`)
    this.run('reload')
  }

  /** The one-time link; it works once. */
  link(observer = false): string {
    return this.json<{ url: string }>('open', '--print', ...(observer ? ['--observer'] : [])).url
  }

  /** The operator's token. */
  token(): string {
    return readFileSync(join(this.home, 'token'), 'utf8').trim()
  }

  /** A request to the API as the operator. */
  async api<T>(method: string, route: string, body?: unknown): Promise<T> {
    const token = this.token()
    const response = await fetch(`http://${this.address}/api/v1${route}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${text}`)
    return (text === '' ? undefined : JSON.parse(text)) as T
  }

  #try(args: string[]): { ok: boolean; out: string; err: string } {
    const done = spawnSync(PROGRAM, args, { env: this.#env(), encoding: 'utf8', cwd: this.workspace })
    return { ok: done.status === 0, out: done.stdout, err: done.stderr }
  }

  #env(): NodeJS.ProcessEnv {
    return {
      ...process.env,
      LANYARD_DATA_DIR: this.home,
      LANYARD_CONFIG: join(this.folder, 'config.toml'),
      LANYARD_DASHBOARD_DIR: PAGES,
      LANYARD_NO_START: '1',
      LANYARD_LOG: 'info',
      XDG_STATE_HOME: join(this.folder, 'state'),
    }
  }
}
