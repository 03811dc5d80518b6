//! The fold: the only place where a session changes, the same when running and when replaying. It is fallible, so a
//! bad event is never written and a damaged log is found.

use crate::session::calls::{Channel, IN_FLIGHT_AFTER_MS, is_spawn};
use crate::session::carrier::SeenCalls;
use crate::session::choice::AgentChoice;
use crate::session::driven::DrivenBy;
use crate::session::event::{
    ChangeEvent, CheckpointReason, ContextEvent, ControlEvent, Created, Ending, Envelope, Event, Role,
    TranscriptEvent, TurnEvent,
};
use crate::session::governance::{FirstTool, Governance};
use crate::session::limit::LimitWait;
use crate::session::record::{
    ActiveTurn, Checkpoint, Compaction, Handoff, LastToolCall, Session, StateChange, Usage, remember,
};
use crate::session::review::ReviewBook;
use crate::session::run::{Continuity, Run, RunEvent, RunPhase};
use crate::session::stall::Stall;
use crate::session::state::{InterruptCause, State, StateName};
use crate::session::stop::StoppedRun;
use crate::session::weight::text_bytes;
use crate::time::Timestamp;

/// An event that does not follow from the log before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("event {found} follows event {last}")]
    Gap { last: u64, found: u64 },
    #[error("the event belongs to another session")]
    Foreign,
    #[error("the log does not begin with `session.created`")]
    NotCreated,
    #[error("`session.created` in the middle of a log")]
    CreatedAgain,
    #[error("a session cannot begin as {0}")]
    BadBirth(StateName),
    #[error("event {seq} cannot happen while the session is {state}")]
    Illegal { seq: u64, state: StateName },
}

/// Folds a whole log. An empty log is no session.
pub fn replay<'a>(log: impl IntoIterator<Item = &'a Envelope>) -> Result<Option<Session>, ApplyError> {
    let mut session: Option<Session> = None;
    for envelope in log {
        match &mut session {
            Some(session) => session.apply(envelope)?,
            None => session = Some(Session::born(envelope)?),
        }
    }
    Ok(session)
}

impl Session {
    /// The session its first event makes.
    pub fn born(envelope: &Envelope) -> Result<Self, ApplyError> {
        let Event::Change(ChangeEvent::Created(created)) = &envelope.event else {
            return Err(ApplyError::NotCreated);
        };
        if envelope.seq != 1 {
            return Err(ApplyError::Gap { last: 0, found: envelope.seq });
        }
        let state = match created.state {
            StateName::Beginning => State::Beginning,
            StateName::Custom => State::Custom,
            other @ (StateName::Executing
            | StateName::BetweenTurn
            | StateName::Compacted
            | StateName::Interrupted
            | StateName::Idle
            | StateName::Stale
            | StateName::Completed
            | StateName::Failed
            | StateName::Stopped) => return Err(ApplyError::BadBirth(other)),
        };
        Ok(newborn(envelope, created, state))
    }

    /// Makes the event true. After an error the session is part-changed and must be thrown away.
    pub fn apply(&mut self, envelope: &Envelope) -> Result<(), ApplyError> {
        if envelope.session != self.id {
            return Err(ApplyError::Foreign);
        }
        if envelope.seq != self.seq + 1 {
            return Err(ApplyError::Gap { last: self.seq, found: envelope.seq });
        }
        let before = self.state.name();
        let open = !self.deleted || is_noise(&envelope.event);
        let legal = match &envelope.event {
            Event::Change(event) => self.change(event, envelope)?,
            Event::Turn(event) => self.turn(event, envelope),
            Event::Inbox(event) => self.inbox(event, envelope),
            Event::Context(event) => self.context(event, envelope.at),
            Event::Control(event) => self.control(event, envelope),
            Event::Transcript(event) => self.transcript(event, envelope.at),
            Event::Run(event) => self.run(event, envelope.seq),
            Event::Gate(event) => self.gate(event, envelope),
            Event::Writer(event) => self.writing(event, envelope),
            Event::Review(event) => self.reviewing(event, envelope),
        };
        if !(open && legal) {
            return Err(ApplyError::Illegal { seq: envelope.seq, state: before });
        }
        self.seq = envelope.seq;
        self.log_bytes = self.log_bytes.saturating_add(text_bytes(&envelope.event));
        self.read_output(envelope.cause.as_ref());
        if is_activity(&envelope.event) {
            self.last_activity_at = self.last_activity_at.max(envelope.at);
        }
        let noise = is_noise(&envelope.event) || is_repeat(&envelope.event, before.is_ended());
        self.refused_in_row = if noise { self.refused_in_row.saturating_add(1) } else { 0 };
        Ok(())
    }

    fn enter(&mut self, state: State, at: Timestamp) {
        if state.name() != self.state.name() {
            remember(&mut self.history, StateChange { state: state.name(), at });
            self.since = at;
        }
        self.state = state;
    }

    fn change(&mut self, event: &ChangeEvent, envelope: &Envelope) -> Result<bool, ApplyError> {
        let at = envelope.at;
        let alive = !self.state.is_ended();
        let resting = self.turn.is_none();
        Ok(match event {
            ChangeEvent::Created(_) => return Err(ApplyError::CreatedAgain),
            ChangeEvent::Linked { parent, previous } => {
                let fits = *previous == self.parent;
                self.parent = Some(*parent);
                alive && fits
            }
            ChangeEvent::ChildLinked { .. } | ChangeEvent::ChildUnlinked { .. } => true,
            ChangeEvent::Migrated { from, to, reason, continuity } => {
                let fits = *from == self.hands;
                let handoff = Handoff { at, from: from.clone(), to: to.clone(), reason: reason.clone() };
                self.migrate(handoff, *continuity);
                alive && fits
            }
            ChangeEvent::Driven { by } => {
                self.driven_by = Some(*by);
                alive && resting
            }
            ChangeEvent::AliasAdded { .. } | ChangeEvent::Renamed { .. } => self.named(event),
            ChangeEvent::Imported(_) => {
                self.enter(State::BetweenTurn, at);
                alive && resting
            }
            ChangeEvent::PlanJoined { plan } => self.join_plan(plan) && alive,
            ChangeEvent::MemorySet { policy } => {
                self.policy.memory.clone_from(policy);
                true
            }
            ChangeEvent::ChoiceSet { choice } => {
                self.choice.clone_from(choice);
                true
            }
            ChangeEvent::Seen { seq } => {
                self.saw(&envelope.actor, *seq, at);
                *seq <= self.seq
            }
            ChangeEvent::Archived {} => {
                self.writer = None;
                self.run_wanted = None;
                resting && !std::mem::replace(&mut self.archived, true)
            }
            ChangeEvent::Unarchived {} => std::mem::replace(&mut self.archived, false),
            ChangeEvent::Reset { .. } => {
                let legal = alive && resting && self.stop.is_none();
                self.start_over(at);
                legal
            }
            ChangeEvent::Deleted { .. } => {
                self.deleted = true;
                resting
            }
            ChangeEvent::WentIdle { .. } => self.went_quiet(State::Idle, at),
            ChangeEvent::WentStale { .. } => self.went_quiet(State::Stale, at),
            ChangeEvent::Resumed { notify } => {
                let legal = self.state == State::Stopped && resting && !self.archived;
                self.notice_due = *notify;
                self.resumed(at);
                legal
            }
            ChangeEvent::Ended { how, reason } => {
                self.ended(*how, reason.as_deref(), at);
                alive && resting
            }
        })
    }

    /// Another title or a further name, also after the end.
    fn named(&mut self, event: &ChangeEvent) -> bool {
        if let ChangeEvent::Renamed { title } = event {
            self.title = Some(title.clone());
        } else if let ChangeEvent::AliasAdded { alias } = event {
            self.aliases.push(alias.clone());
        }
        true
    }

    fn migrate(&mut self, handoff: Handoff, continuity: Option<Continuity>) {
        if handoff.from.agent != handoff.to.agent {
            // Another agent knows nothing of this one's conversation, unless it can load the same.
            self.native = self.native.take().filter(|_| continuity == Some(Continuity::Native));
            self.carries = continuity;
            self.governance.injected = false;
            // Names of one agent's models mean nothing to another.
            self.choice = AgentChoice::default();
            self.in_force = AgentChoice::default();
            self.offered = None;
        }
        self.hands = handoff.to.clone();
        remember(&mut self.handoffs, handoff);
    }

    /// Whether that was legal: a session that was made for a plan stays with it.
    fn join_plan(&mut self, plan: &str) -> bool {
        let free = self.plan.is_none() || self.plan_joined;
        self.plan = Some(plan.to_owned());
        self.plan_joined = true;
        free
    }

    fn went_quiet(&mut self, into: State, at: Timestamp) -> bool {
        let legal = match self.state {
            State::Compacted | State::Interrupted { .. } => true,
            // Logs in which calls of a host's agent did not count yet go from there to stale.
            State::BetweenTurn => true,
            State::Idle => into == State::Stale,
            State::Executing => into == State::Stale && self.turn.is_none(),
            State::Beginning
            | State::Custom
            | State::Stale
            | State::Completed
            | State::Failed
            | State::Stopped => false,
        };
        self.calls_in_flight = 0;
        self.enter(into, at);
        legal
    }

    fn ended(&mut self, how: Ending, reason: Option<&str>, at: Timestamp) {
        self.end_reason = reason.map(str::to_owned);
        self.writer = None;
        self.run_wanted = None;
        // A stop stays with the session it ended, whether it was obeyed or enforced: calls that come after are answered
        // with it, and the parent is told. What becomes of a task is told by mail.
        self.notice_due = self.stop.is_some() && self.parent.is_some() && self.task.is_none();
        let state = match how {
            Ending::Completed => State::Completed,
            Ending::Failed => State::Failed,
            Ending::Stopped => State::Stopped,
        };
        self.enter(state, at);
    }

    fn forget_calls(&mut self) {
        self.open_calls.clear();
        self.open_spawns.clear();
        self.calls_in_flight = 0;
    }

    /// Live again, with nothing of the stop but the fence around the run it ended. A conversation that had begun was
    /// interrupted by a person; one that had not begins.
    fn resumed(&mut self, at: Timestamp) {
        let run = self.run.as_ref().map(|run| run.id);
        if let Some(stop) = self.stop.take()
            && (run.is_some() || self.driver() == DrivenBy::Host)
        {
            remember(&mut self.stopped_runs, StoppedRun { run, scope: stop.scope, reason: stop.reason });
        }
        // A subagent's process was its parent's; the next run is the session's own.
        if let Some(run) = self.run.as_mut().filter(|run| run.mirrored) {
            run.phase = RunPhase::Ended;
        }
        let begins = match self.previous_state() {
            Some(StateName::Beginning) => Some(State::Beginning),
            Some(StateName::Custom) => Some(State::Custom),
            Some(
                StateName::Executing
                | StateName::BetweenTurn
                | StateName::Compacted
                | StateName::Interrupted
                | StateName::Idle
                | StateName::Stale
                | StateName::Completed
                | StateName::Failed
                | StateName::Stopped,
            )
            | None => None,
        };
        self.enter(begins.unwrap_or(State::Interrupted { cause: InterruptCause::User }), at);
        self.end_reason = None;
        self.notice_unheard = false;
        self.hears = false;
        self.seen_calls = SeenCalls::default();
        self.forget_calls();
        // Words that went to the old run are acknowledged by no call of a new one.
        for note in std::mem::take(&mut self.guidance) {
            remember(&mut self.guidance_settled, note);
        }
    }

    fn start_over(&mut self, at: Timestamp) {
        self.enter(State::Beginning, at);
        self.native = None;
        self.carries = None;
        self.governance.injected = false;
        self.anchors_due.clear();
        self.compactions = 0;
        self.compaction_history.clear();
        self.stall = Stall::default();
    }

    fn turn(&mut self, event: &TurnEvent, envelope: &Envelope) -> bool {
        let at = envelope.at;
        let running = self.turn.as_ref().map(|turn| turn.id);
        self.turn_ended(event, envelope.seq, at);
        match event {
            TurnEvent::Started { turn, queued, .. } => {
                let known = self.take_waiting(*turn).is_some() == *queued;
                let free = !self.archived && self.stop.is_none();
                let legal = running.is_none() && !self.state.is_ended() && free && known;
                self.turn = begun(event, envelope);
                self.turns += 1;
                self.review.turn_began(*turn, self.turns);
                self.run_is_prompted();
                self.forget_calls();
                self.anchors_due.clear();
                self.enter(State::Executing, at);
                legal
            }
            TurnEvent::CancelRequested { turn, .. } => {
                if let Some(active) = &mut self.turn {
                    active.cancel_requested = true;
                }
                running == Some(*turn)
            }
            TurnEvent::Waiting { turn, limit, leg, until, asks, again } => {
                let wait =
                    LimitWait { limit: limit.clone(), since: at, until: *until, asks: *asks, leg: *leg };
                let waits = self.turn.as_mut().is_some_and(|active| active.begin_wait(wait, *again));
                self.forget_calls();
                waits && running == Some(*turn)
            }
            TurnEvent::Continued { turn, leg, asked } => {
                let on = self.turn.as_mut().is_some_and(|active| active.end_wait(*leg, *asked, at));
                self.run_is_prompted();
                on && running == Some(*turn) && self.stop.is_none()
            }
            TurnEvent::Finished { turn, .. } => {
                self.prompt_arrived();
                self.turn = None;
                self.forget_notes();
                self.forget_calls();
                self.enter(State::BetweenTurn, at);
                running == Some(*turn)
            }
            TurnEvent::Interrupted { turn, cause, .. } => {
                self.turn = None;
                self.forget_notes();
                self.forget_calls();
                self.enter(State::Interrupted { cause: *cause }, at);
                running == Some(*turn)
            }
        }
    }

    fn run_is_prompted(&mut self) {
        if let Some(run) = self.run.as_mut().filter(|run| run.is_live()) {
            run.turns += 1;
        }
    }

    fn context(&mut self, event: &ContextEvent, at: Timestamp) -> bool {
        let alive = !self.state.is_ended();
        match event {
            ContextEvent::AnchorsSet { anchors } => {
                self.anchors.clone_from(anchors);
                self.anchors_due.retain(|due| anchors.contains(due));
            }
            ContextEvent::Compacted {
                size_before,
                size_after,
                anchors_survived,
                anchors_lost,
                checkpoint,
                ..
            } => {
                self.compactions += 1;
                // A compaction is its own checkpoint: it names the last place before it.
                let reason = CheckpointReason::Compaction;
                remember(&mut self.checkpoints, Checkpoint { position: *checkpoint, at, reason });
                remember(
                    &mut self.compaction_history,
                    Compaction {
                        at,
                        size_before: *size_before,
                        size_after: *size_after,
                        anchors_survived: anchors_survived.clone(),
                    },
                );
                self.anchors_due.clone_from(anchors_lost);
                self.governance.injected = false;
                if self.turn.is_none() && alive {
                    self.enter(State::Compacted, at);
                }
                return alive && *checkpoint <= self.seq;
            }
            ContextEvent::Checkpoint { position, reason } => {
                remember(&mut self.checkpoints, Checkpoint { position: *position, at, reason: *reason });
                return alive && *position <= self.seq;
            }
            ContextEvent::Snapshot { .. } => {
                self.snapshots += 1;
                self.snapshot_skipped = None;
                return true;
            }
            ContextEvent::SnapshotSkipped { code, .. } => {
                self.snapshot_skipped = Some(code.clone());
                return true;
            }
            ContextEvent::RolledBack { .. } | ContextEvent::BranchMerged { .. } => return true,
            ContextEvent::BranchDiscarded { branch, .. } => {
                if let Some(tree) = self.tree.as_mut().filter(|tree| tree.branch == *branch) {
                    tree.removed = true;
                }
                return true;
            }
            ContextEvent::IssueSeen { hash, score } => self.stall.saw_issue(hash, *score),
            ContextEvent::ErrorSeen { hash, .. } => self.stall.saw_error(hash),
            ContextEvent::Stalled { .. } => self.stall.stalls += 1,
        }
        alive
    }

    /// The agent has the prompt of its turn, and with it the instructions that stand before it. Said again in the same
    /// turn it says nothing: a compaction may have come in between.
    pub(super) fn prompt_arrived(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        if let Some(leg) = &mut turn.leg {
            leg.delivered = true;
        }
        if !turn.delivered {
            turn.delivered = true;
            self.governance.injected = true;
        }
    }

    fn used(&mut self, tool: &str, at: Timestamp) {
        let count = self.last_tool_call.as_ref().map_or(0, |call| call.count);
        if count == 0 {
            self.first_tool = Some(FirstTool { name: tool.to_owned(), at });
        }
        self.last_tool_call = Some(LastToolCall { tool: tool.to_owned(), at, count: count + 1 });
    }

    fn relayed(&mut self, tool: &str, channel: Channel, took_ms: u64, at: Timestamp) {
        self.hears = true;
        if let Some(turn) = &mut self.turn {
            turn.worked = true;
        }
        match channel {
            Channel::Hook => self.seen_calls.hook = true,
            Channel::Mcp => self.seen_calls.mcp = true,
        }
        // An agent that Lanyard runs tells of the call itself.
        if !self.run.as_ref().is_some_and(Run::is_live) {
            self.used(tool, at);
        }
        // A short call was not counted.
        if took_ms >= IN_FLIGHT_AFTER_MS {
            self.calls_in_flight = self.calls_in_flight.saturating_sub(1);
        }
        self.follow_host(at);
    }

    /// Follows an agent that its own host runs: no turns are reported, so its calls show whether it works.
    fn follow_host(&mut self, at: Timestamp) {
        if self.driver() != DrivenBy::Host || self.turn.is_some() || self.state.is_ended() {
            return;
        }
        let state = if self.calls_in_flight > 0 { State::Executing } else { State::BetweenTurn };
        self.enter(state, at);
    }

    fn transcript(&mut self, event: &TranscriptEvent, at: Timestamp) -> bool {
        // Who answers has the question.
        let answers = matches!(
            event,
            TranscriptEvent::Message { role: Role::Agent, .. }
                | TranscriptEvent::Thought { .. }
                | TranscriptEvent::ToolCalled { .. }
        );
        if answers {
            self.prompt_arrived();
        }
        match event {
            TranscriptEvent::Message { .. }
            | TranscriptEvent::Thought { .. }
            | TranscriptEvent::Planned { .. }
            | TranscriptEvent::FileChanged { .. } => {}
            // It may be a subagent's, and says nothing of the session.
            TranscriptEvent::ToolRelayed { uncertain: true, .. } => {}
            TranscriptEvent::ToolRelayed { tool, channel, took_ms, .. } => {
                self.relayed(tool, *channel, *took_ms, at);
            }
            TranscriptEvent::InFlight { calls } => {
                self.calls_in_flight = *calls;
                self.follow_host(at);
            }
            TranscriptEvent::ToolReturned { call, is_error, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.calls_failed += u64::from(*is_error);
                }
                self.open_calls.retain(|open| open != call);
                self.open_spawns.retain(|open| open != call);
            }
            TranscriptEvent::ToolCalled { call, tool, arguments } => {
                if let Some(turn) = &mut self.turn {
                    turn.worked = true;
                    turn.calls += 1;
                    remember(&mut self.open_calls, call.clone());
                    if is_spawn(call, tool, arguments) {
                        remember(&mut self.open_spawns, call.clone());
                    }
                }
                self.used(tool, at);
            }
            TranscriptEvent::UsageReported { input_tokens, output_tokens, context_tokens, cost_micros } => {
                if let Some(turn) = &mut self.turn {
                    let tokens = input_tokens.saturating_add(*output_tokens);
                    turn.tokens = turn.tokens.saturating_add(tokens);
                    turn.cost_micros = turn.cost_micros.saturating_add(*cost_micros);
                }
                self.usage = Usage {
                    input_tokens: self.usage.input_tokens.saturating_add(*input_tokens),
                    output_tokens: self.usage.output_tokens.saturating_add(*output_tokens),
                    context_tokens: context_tokens.or(self.usage.context_tokens),
                    cost_micros: self.usage.cost_micros.saturating_add(*cost_micros),
                };
            }
        }
        !self.state.is_ended()
    }
}

/// A turn as it begins.
fn begun(event: &TurnEvent, envelope: &Envelope) -> Option<ActiveTurn> {
    let TurnEvent::Started { turn, client_turn_id, prompt_hash, by, memory, choice, forced, .. } = event
    else {
        return None;
    };
    Some(ActiveTurn {
        id: *turn,
        client_turn_id: client_turn_id.clone(),
        prompt_hash: prompt_hash.clone(),
        seq: envelope.seq,
        started_at: envelope.at,
        by: Some(by.as_ref().unwrap_or(&envelope.actor).clone()),
        delivered: false,
        cancel_requested: false,
        wait: None,
        leg: None,
        waits: 0,
        retries: 0,
        worked: false,
        memory: memory.clone(),
        choice: choice.clone(),
        forced: *forced,
        calls: 0,
        calls_failed: 0,
        tokens: 0,
        cost_micros: 0,
    })
}

/// The party that runs the agent of a new session; older logs do not name it.
fn born_to(created: &Created) -> DrivenBy {
    let derived = DrivenBy::at_birth(&created.source, created.agent.as_deref(), false);
    created.driven_by.unwrap_or(derived)
}

fn hands_at_birth(created: &Created) -> crate::session::event::Hands {
    let (agent, owner) = (created.agent.clone(), created.owner.clone());
    crate::session::event::Hands { agent, worker: created.worker, owner }
}

#[expect(clippy::too_many_lines, reason = "a line for each field")]
fn newborn(envelope: &Envelope, created: &Created, state: State) -> Session {
    let at = envelope.at;
    Session {
        id: envelope.session,
        seq: 1,
        state,
        since: at,
        history: [StateChange { state: state.name(), at }].into(),
        created_at: at,
        last_activity_at: at,
        title: created.title.clone(),
        hands: hands_at_birth(created),
        handoffs: [].into(),
        source: created.source.clone(),
        driven_by: created.driven_by,
        workspace: created.workspace.clone(),
        tree: created.tree.clone(),
        plan: created.plan.clone(),
        plan_joined: false,
        phase: created.phase.clone(),
        purpose: created.purpose.clone(),
        task: created.task,
        parent: created.parent,
        forked_from: created.forked_from,
        comparison: created.comparison,
        aliases: created.aliases.clone(),
        policy: created.policy.clone(),
        governance: Governance::new(created.governance_level.clone(), created.language.clone()),
        turn: None,
        turns: 0,
        last_turn: None,
        seen: Vec::new(),
        inbox: Vec::new(),
        inbox_paused: None,
        review: ReviewBook::default(),
        stop: None,
        guidance: Vec::new(),
        guidance_settled: [].into(),
        // Nobody else would tell of a session that was made outside; its calls are all there is of it.
        hears: born_to(created) == DrivenBy::Host,
        seen_calls: SeenCalls::default(),
        stopped_runs: [].into(),
        notice_due: false,
        notice_unheard: false,
        writer: None,
        writer_epoch: 0,
        choice: created.choice.clone(),
        in_force: AgentChoice::default(),
        offered: None,
        run: None,
        run_wanted: None,
        native: created.native.clone(),
        terminal: created.terminal.clone(),
        carries: None,
        gates: Vec::new(),
        snapshots: 0,
        snapshot_skipped: None,
        first_tool: None,
        last_tool_call: None,
        open_calls: [].into(),
        calls_in_flight: 0,
        open_spawns: [].into(),
        usage: Usage::default(),
        anchors: created.anchors.clone(),
        anchors_due: Vec::new(),
        compactions: 0,
        compaction_history: [].into(),
        checkpoints: [].into(),
        stall: Stall::default(),
        archived: false,
        deleted: false,
        end_reason: None,
        refused_in_row: 0,
        log_bytes: 0,
    }
}

/// Whether the event shows that somebody or something is at work: timers and refusals do not. Who is attached, who
/// writes, who reviews, who has seen what and whose child it is is not what the session does. Neither is what a
/// daemon finds of a process when it starts.
fn is_activity(event: &Event) -> bool {
    let passive = matches!(
        event,
        Event::Change(
            ChangeEvent::WentIdle { .. }
                | ChangeEvent::WentStale { .. }
                | ChangeEvent::Seen { .. }
                | ChangeEvent::Linked { .. }
                | ChangeEvent::ChildLinked { .. }
                | ChangeEvent::ChildUnlinked { .. }
        ) | Event::Run(
            RunEvent::Adopted { .. }
                | RunEvent::Ended { .. }
                | RunEvent::ToolsMissing { .. }
                | RunEvent::BoundMet { .. }
                | RunEvent::Offered(_)
                | RunEvent::InForce(_)
        )
    );
    !is_noise(event) && !matches!(event, Event::Writer(_) | Event::Review(_)) && !passive
}

fn is_noise(event: &Event) -> bool {
    matches!(
        event,
        Event::Control(ControlEvent::CommandRefused { .. } | ControlEvent::SignalUnexpected { .. })
    )
}

/// A call of a session that has ended is answered again and again; the log need not tell of each.
fn is_repeat(event: &Event, ended: bool) -> bool {
    ended && matches!(event, Event::Control(ControlEvent::StopApplied { .. }))
}
