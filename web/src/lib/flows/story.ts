// A flow's log as a story: phases, and in each what was done in order. Pure; the log is told from its first event on.
import type {
  Choice, CheckResult, Conclusion, FlowEnvelope, FlowGate, FlowRole, FlowState, GateAnswered, PhaseState, Spent, Stage,
} from '../api/types'

interface Entry {
  /** The event it began with. */
  seq: number
  at: string
}

export interface Turn extends Entry {
  kind: 'turn'
  step: number
  state: FlowState
  role: FlowRole
  session: string
  continues: boolean
  forkOf: string | null
  guidance: string | null
  stage: Stage
  fault: string | null
  conclusion: Conclusion | null
  spent: Spent | null
  /** Nobody waits for it any more. */
  over: boolean
}

interface Round extends Entry {
  kind: 'checks'
  results: CheckResult[]
  /** The place of the command that is being run. */
  place: number | null
}

export interface Asked extends Entry {
  kind: 'gate'
  gate: FlowGate
  answer: { by: string; choice: Choice; guidance: string | null; at: string } | null
  withdrawn: string | null
}

interface Note extends Entry {
  kind: 'note'
  tone: 'plain' | 'ok' | 'warn' | 'bad'
  text: string
  session: string | null
}

export type Part = Turn | Round | Asked | Note

interface PhaseStory {
  title: string
  state: PhaseState
  parts: Part[]
}

export interface Story {
  /** One without a title for a plan review. */
  phases: PhaseStory[]
}

export class Teller {
  #phases: PhaseStory[] = []
  #phase = 0
  #state: FlowState = 'execute'
  #last = 0

  /** Takes events that follow; one that was told before changes nothing. */
  take(events: readonly FlowEnvelope[]): Story {
    for (const event of events) {
      if (event.seq <= this.#last) continue
      this.#last = event.seq
      this.#tell(event)
    }
    // New objects for what may have changed, so that a page sees it.
    return { phases: this.#phases.map((phase) => ({ ...phase, parts: phase.parts.map((part) => ({ ...part })) })) }
  }

  get last(): number {
    return this.#last
  }

  #tell(event: FlowEnvelope): void {
    const entry: Entry = { seq: event.seq, at: event.at }
    switch (event.type) {
      case 'flow.created': {
        const { kind, phases } = event.data
        this.#phases = kind === 'plan_review' ? [{ title: '', state: 'active', parts: [] }] : phases.map(({ title, state }) => ({ title, state, parts: [] }))
        this.#state = kind === 'plan_review' ? 'review' : 'execute'
        this.#phase = Math.max(0, this.#phases.findIndex((phase) => phase.state === 'open' || phase.state === 'active'))
        this.#begin()
        break
      }
      case 'flow.leased':
        if (event.data.from) this.#note(entry, 'warn', `Taken over from ${event.data.from}, which did not let go`)
        break
      case 'flow.tree_made':
        this.#note(entry, 'plain', `Works on branch ${event.data.tree.branch}`)
        break
      case 'flow.invoked': {
        const { step, role, session, continues, fork_of, guidance } = event.data
        this.#add({
          ...entry, kind: 'turn', step, role, session, state: this.#state, continues: continues ?? false, forkOf: fork_of ?? null, guidance: guidance ?? null,
          stage: 'work', fault: null, conclusion: null, spent: null, over: false,
        })
        break
      }
      case 'flow.asked': {
        const turn = this.#turn()
        if (turn) [turn.stage, turn.fault] = [event.data.stage, event.data.fault ?? null]
        break
      }
      case 'flow.concluded': {
        const turn = this.#turn()
        if (turn) [turn.conclusion, turn.spent, turn.over] = [event.data.conclusion, event.data.spent, true]
        break
      }
      case 'flow.check_begun': {
        const open = this.#parts().at(-1)
        if (open?.kind === 'checks' && event.data.place > 0) open.place = event.data.place
        else this.#add({ ...entry, kind: 'checks', results: [], place: event.data.place })
        break
      }
      case 'flow.check_ended': {
        const round = this.#parts().findLast((part) => part.kind === 'checks')
        if (round) {
          round.results.push(event.data.result)
          round.place = null
        }
        break
      }
      case 'flow.moved':
        this.#moved(event.data.to)
        break
      case 'flow.retried': {
        const turn = this.#turn()
        if (turn) turn.over = true
        this.#note(entry, 'warn', `Goes on by itself: ${event.data.reason}`)
        break
      }
      case 'flow.phase_ended': {
        const phase = this.#phases[event.data.phase]
        if (phase) phase.state = event.data.state
        break
      }
      case 'flow.gate_opened':
        this.#add({ ...entry, kind: 'gate', gate: event.data.gate, answer: null, withdrawn: null })
        break
      case 'flow.gate_answered': {
        const gate = this.#gate(event.data.gate)
        const { by, choice, guidance, at } = event.data as GateAnswered
        if (gate) gate.answer = { by: by.name, choice, guidance: guidance ?? null, at }
        break
      }
      case 'flow.continuation_withdrawn': {
        const gate = this.#gate(event.data.gate)
        if (gate) gate.withdrawn = event.data.why
        break
      }
      case 'flow.session_preserved':
        this.#note(entry, 'warn', 'A session goes on although nobody waits for it', event.data.preserved.session)
        break
      case 'flow.session_released':
        this.#note(entry, 'plain', `A session is let go: ${event.data.why}`, event.data.session)
        break
      case 'flow.ended': {
        const turn = this.#turn()
        if (turn) turn.over = true
        const { state, reason } = event.data
        this.#note(entry, state === 'aborted' ? 'bad' : 'ok', `${state === 'aborted' ? 'Aborted' : state === 'approved' ? 'Approved' : 'Completed'}${reason ? `: ${reason}` : ''}`)
        break
      }
      case 'flow.settled': {
        const { captured, failed, tree_removed } = event.data
        if (captured) this.#note(entry, 'plain', `What was not committed is captured in ${captured.commit.slice(0, 10)}`)
        if (failed) this.#note(entry, 'warn', `The worktree stays: ${failed}`)
        else if (tree_removed) this.#note(entry, 'plain', 'The worktree is taken away, the branch stays')
        break
      }
      case 'flow.resumed':
        this.#note(entry, 'ok', 'Taken up again')
        break
      case 'flow.hooked':
        for (const failed of event.data.failed ?? []) this.#note(entry, 'warn', `A hook failed: ${failed}`)
        break
      default:
        break
    }
  }

  #moved(to: FlowState): void {
    if (this.#state === 'phase_complete' && to === 'execute') {
      this.#phase += 1
      while (this.#phases[this.#phase] && this.#phases[this.#phase]?.state !== 'open') this.#phase += 1
      this.#begin()
    }
    // What the gate led back to is where it was.
    if (to !== 'escalate') this.#state = to
  }

  #begin(): void {
    const phase = this.#phases[this.#phase]
    if (phase?.state === 'open') phase.state = 'active'
  }

  /** What happens after the last phase belongs to it. */
  #parts(): Part[] {
    return (this.#phases[this.#phase] ?? this.#phases.at(-1))?.parts ?? []
  }

  #add(part: Part): void {
    this.#parts().push(part)
  }

  #note(entry: Entry, tone: Note['tone'], text: string, session: string | null = null): void {
    this.#add({ ...entry, kind: 'note', tone, text, session })
  }

  #turn(): Turn | undefined {
    return this.#parts().findLast((part) => part.kind === 'turn')
  }

  #gate(id: string): Asked | undefined {
    return this.#parts().findLast((part): part is Asked => part.kind === 'gate' && part.gate.id === id)
  }
}
