// A flow with an author and a reviewer that do what is written into files before, one file for each prompt.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

import type { Daemon } from './daemon'

const PROGRAM = process.env.LANYARD_BIN ?? resolve(import.meta.dirname, '../../../target/debug/lanyard')
const PATIENCE_MS = 30_000

/** What an author says that is done, and one that needs a person. */
const DONE = '{"status":"complete"}'
const HELP = '{"status":"needs_human","reason":"Which greeting?","notes":"The page says Hello, the tests say Good day."}'
const READY = '{"readiness":"ready","score":95,"summary":"Polite and short."}'

/** For `test.use({ config: flowConfig() })`. Agents begin in the workspace, and find their scripts beside it. */
export function flowConfig(settings = 'rules.phase_gate = "auto"'): string {
  const agent = (role: string): string => {
    const command = [PROGRAM, 'scripted-agent', '--state', `../${role}-state`, '--scripts', `../${role}`, '--otherwise', '/error -32000 no script is left']
    return `[agents.${role}]\ndriver = "acp"\ncommand = ${JSON.stringify(command)}\nkill_grace_ms = 400\n`
  }
  return `[flow]\nauthor.agent = "author"\nreviewer.agent = "reviewer"\n${settings}\n${agent('author')}${agent('reviewer')}`
}

interface Asked {
  flow: string
  stage: FlowStage
}

export class FlowStage {
  #written = 0

  constructor(readonly daemon: Daemon) {
    for (const role of ['author', 'reviewer']) mkdirSync(join(daemon.folder, role), { recursive: true })
  }

  /** What an agent does on its next prompt that has no script yet. */
  script(role: 'author' | 'reviewer', text: string): void {
    const whole = join(this.daemon.folder, 'script')
    writeFileSync(whole, text)
    // Whole at once: an agent may look at any time.
    renameSync(whole, join(this.daemon.folder, role, String(this.#written++).padStart(4, '0')))
  }

  /** A piece of work, and what its author says of it; a flow asks for that in a second prompt. */
  author(steps: string, says = DONE): void {
    this.script('author', steps)
    this.script('author', `/say! ${says}`)
  }

  reviewer(steps: string, says = READY): void {
    this.script('reviewer', steps)
    this.script('reviewer', `/say! ${says}`)
  }

  /** Writes a plan with these phases and begins a flow through it. */
  async begin(title: string, phases: readonly string[], more: Record<string, unknown> = {}): Promise<string> {
    const plan = join(this.daemon.workspace, 'PLAN.md')
    const parts = phases.map((phase, at) => `## Phase ${at + 1}: ${phase}\n\n- [ ] ${phase} somebody\n`)
    writeFileSync(plan, [`# ${title}\n\nWhy we do this.\n`, ...parts].join('\n'))
    const made = await this.daemon.api<{ id: string }>('POST', '/flows', { kind: 'phases', plan, ...more })
    return made.id
  }

  /** Waits until the flow is as it should be. */
  async until<T = Record<string, unknown>>(flow: string, is: (view: T) => boolean): Promise<T> {
    const end = Date.now() + PATIENCE_MS
    for (;;) {
      const view = await this.daemon.api<T>('GET', `/flows/${flow}`)
      if (is(view)) return view
      if (Date.now() > end) throw new Error(`the flow did not get there:\n${JSON.stringify(view, null, 2)}\n${this.daemon.log()}`)
      await new Promise((done) => setTimeout(done, 50))
    }
  }
}

/** A flow "Greetings 1.0" whose author needs a person in its first phase, and is done when it was told more. */
export async function flowThatAsks(daemon: Daemon): Promise<Asked> {
  const stage = new FlowStage(daemon)
  stage.author('/say I looked at the page and at the tests.\n/tool grep {"pattern":"Hello"}', HELP)
  stage.author('/say Then the page it is.')
  stage.reviewer('/say It reads well.')
  const flow = await stage.begin('Greetings 1.0', ['Greet'])
  await stage.until<{ gate?: unknown }>(flow, (view) => view.gate != null)
  return { flow, stage }
}
