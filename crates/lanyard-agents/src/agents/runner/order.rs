//! What a runner is told to do: turns, cancels, stops, answers, words.

use lanyard_api::agents::settings::DriverKind;
use lanyard_core::budget::warn_at;
use lanyard_core::session::{
    ActiveTurn, Continuity, Effect, GateOption, GateStatus, InterruptCause, NoteStatus, OptionKind,
    PromptPart, Receipt, Session, Signal, SnapshotReason, StopLevel, StopScope,
};
use lanyard_core::{GateId, NoteId, SessionId, TurnId};
use tokio::time::{Duration, Instant};

use super::{Cancel, Runner, Turn};
use crate::agents::AgentWish;
use crate::agents::driver::Answer;
use crate::agents::given::{GivenPart, GivenPrompt, with_parts};
use crate::agents::shared::Opened;
use crate::agents::words::{self, Before};
use lanyard_base::failpoint;

/// How long an agent has to heed its own cancel when a stop is immediate.
const IMMEDIATE_GRACE: Duration = Duration::from_secs(1);

/// How long the answer that tells an agent of its end has to get out before the end.
const ANSWER_GRACE: Duration = Duration::from_secs(1);

/// How long a turn waits for the snapshot before it.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(20);
/// The same after a turn, when the next one may wait.
const TURN_END_WAIT: Duration = Duration::from_secs(5);

impl Runner {
    pub(super) async fn obey(&mut self, wish: AgentWish) {
        let (session, effect) = match wish {
            AgentWish::Effect { session, effect } => (session, effect),
            // Its caller was refused: the agent is not surprised with it.
            AgentWish::Compact { answer, .. } if answer.is_closed() => return,
            AgentWish::Compact { key, answer, .. } => {
                let mut taken = false;
                self.say(|driver, out| taken = driver.compact(&key, out));
                let _ = answer.try_send(taken);
                return;
            }
        };
        match effect {
            Effect::RunTurn { turn } if self.own_turns.contains(&turn) => {}
            Effect::RunTurn { turn } if session == self.session => self.turn_ordered(turn).await,
            Effect::RunTurn { turn } => self.child_turn(session, turn).await,
            Effect::CancelWork { turn, forced } => self.cancel_ordered(session, turn, forced).await,
            Effect::StopWork { level, scope, answered, .. } => {
                if answered {
                    tokio::time::sleep(ANSWER_GRACE).await;
                }
                self.stop_ordered(session, level, scope).await;
            }
            Effect::AnswerGate { gate } => self.answer_ordered(session, gate).await,
            Effect::Steer { note } => self.steer_ordered(session, note).await,
            Effect::EndRun { answered } => {
                if answered {
                    tokio::time::sleep(ANSWER_GRACE).await;
                }
                failpoint::hit("before_end");
                self.course.let_go();
                self.end_run("the session needs it no more").await;
            }
            Effect::Choose { seq } if session == self.session && self.course.takes_turns() => {
                if let Some(session) = self.shared.session(session).await {
                    self.choose(&format!("choice-{seq}"), &session);
                }
            }
            Effect::Choose { .. } | Effect::Revive { .. } | Effect::TellParent => {}
        }
    }

    async fn turn_ordered(&mut self, turn: TurnId) {
        if self.turn.as_ref().is_some_and(|running| running.id == turn) {
            return;
        }
        // An agent that is run once per turn had its turn: this one waits for the next run.
        if self.runs_once() || self.turn.is_some() || !self.course.takes_turns() {
            self.waiting = Some(turn);
            return;
        }
        self.begin_turn(turn).await;
    }

    /// Hands a prompt to the agent. Told twice, it is written once.
    pub(super) async fn begin_turn(&mut self, turn: TurnId) {
        let Some(session) = self.shared.session(self.session).await else { return };
        let Some(active) = session.turn.as_ref().filter(|active| active.prompt_id() == turn) else {
            return;
        };
        // Boxed, since it may lead to the end of the run.
        if active.is_waiting() || !Box::pin(self.account_serves(active)).await {
            return;
        }
        self.snapshot(&session, SnapshotReason::TurnStart, &turn.to_string()).await;
        if self.held_back.iter().any(AgentWish::ends) {
            // It may be this turn that is to end: the agent is not given it before that is known.
            self.waiting = Some(turn);
            return;
        }
        let Some((text, parts)) = self.whole_prompt(&session, active).await else {
            let reason = Some("its prompt cannot be read from the log".to_owned());
            let (cause, receipt) = (InterruptCause::Crash, Receipt::default());
            return self.shared.note(self.session, Signal::TurnLost { cause, reason, receipt }).await;
        };
        self.take_turn(active);
        self.mark_turn(turn);
        failpoint::hit("before_prompt");
        self.choose(&turn.to_string(), &session);
        self.chosen_for_turn = !active.choice.is_empty();
        self.say(|driver, out| driver.prompt(turn, None, GivenPrompt { text: &text, parts: &parts }, out));
        // Boxed, since carrying out may lead back here.
        Box::pin(self.carry_out()).await;
        failpoint::hit("after_prompt");
        self.given(turn, Some(Box::new(session))).await;
    }

    /// The agent has the prompt: from here on nobody can say that nothing was done. What waited to be said in the
    /// session the prompt was made from went along with it.
    pub(super) async fn handed_over(&self, turn: TurnId, from: Option<&Session>) {
        let mut signals = vec![Signal::TurnDelivered { turn }];
        let notes: Vec<NoteId> = from.map_or(Vec::new(), pending);
        if !notes.is_empty() {
            signals.push(Signal::GuidanceDelivered { notes, channel: "prompt".to_owned() });
        }
        if let Err(error) = self.shared.tell(self.session, None, signals).await {
            tracing::warn!(session = %self.session, %error, "that a prompt was handed over was not taken");
        }
    }

    /// The clock of a turn starts.
    pub(super) fn take_turn(&mut self, active: &ActiveTurn) {
        let now = Instant::now();
        let after = |ms: u64| (ms > 0).then(|| now + Duration::from_millis(ms));
        self.began = None;
        self.turn = Some(Turn {
            id: active.prompt_id(),
            of: active.id,
            deadline: after(self.settings.turn_timeout_ms),
            budget_at: after(self.settings.budget.time_ms),
            warn_at: after(warn_at(
                self.settings.budget.time_ms,
                self.shared.settings.rules().budgets.warn_percent,
            )),
            warned: false,
            // What it used before this daemon counts, too.
            tool_calls: active.calls,
            tokens: active.tokens,
            cost: active.cost_micros,
            from: self.position + self.unread.len() as u64,
            cancel: None,
            over: false,
            clearing: false,
        });
    }

    /// The words of a turn with everything that goes before them, made from the log alone, and the parts that the driver
    /// takes.
    pub(super) async fn whole_prompt(
        &mut self,
        session: &Session,
        active: &ActiveTurn,
    ) -> Option<(String, Vec<GivenPart>)> {
        let Opened { prompt, parts, anchors, governance } =
            self.shared.prompt(self.session, active.seq).await?;
        let run = session.run.as_ref()?;
        let first = run.turns <= 1;
        let fresh = run.opened != Some(Continuity::Native);
        let knows = !(first && fresh);
        // An agent that goes on after a limit has seen them.
        let parts = if active.worked && active.leg.is_some() && knows { Vec::new() } else { parts };
        let prompt = words::of_leg(active, prompt, knows);
        let (prompt, parts) = self.take_parts(&prompt, &parts).await;
        // A conversation that opens, and one whose context was compacted since the agent was told.
        let tell = (first && fresh) || governance;
        // An agent whose protocol has a place for its role was told there, and keeps it over compactions.
        let own_place = self.settings.driver == DriverKind::Codex;
        let before = Before {
            instructions: self.settings.instructions.as_deref().filter(|_| tell && !own_place),
            rules: session.governance.sentences().filter(|_| tell),
            past: self.past.as_ref().map(|(_, text)| text.as_str()).filter(|text| first && !text.is_empty()),
            anchors: &anchors,
            guidance: &session.guidance,
        };
        if self.is_command(session, &prompt).await {
            return Some((words::command(&prompt, &before), parts));
        }
        Some((words::prompt(&prompt, &before), parts))
    }

    /// The parts that the driver takes, and the text with all others named below it.
    async fn take_parts(&self, text: &str, parts: &[PromptPart]) -> (String, Vec<GivenPart>) {
        let given = self.shared.given(self.session, parts).await;
        let (taken, named): (Vec<_>, Vec<_>) = given.into_iter().partition(|part| self.driver.takes(part));
        (with_parts(text, &named), taken)
    }

    async fn child_turn(&mut self, session: SessionId, turn: TurnId) {
        let Some((native, held)) = self.child_of(session).await else { return };
        let seq = held.turn.as_ref().map_or(0, |active| active.seq);
        let Some(Opened { prompt, parts, .. }) = self.shared.prompt(session, seq).await else { return };
        let (text, parts) = self.take_parts(&prompt, &parts).await;
        if let Some(mirror) = self.children.get_mut(&native) {
            mirror.turn = Some(turn);
            mirror.done = false;
        }
        self.say(|driver, out| {
            driver.prompt(turn, Some(&native), GivenPrompt { text: &text, parts: &parts }, out);
        });
    }

    async fn child_of(&self, session: SessionId) -> Option<(String, Session)> {
        let (native, _) = self.children.iter().find(|(_, mirror)| mirror.session == session)?;
        let native = native.clone();
        Some((native, self.shared.session(session).await?))
    }

    async fn cancel_ordered(&mut self, session: SessionId, turn: TurnId, forced: bool) {
        failpoint::hit("before_cancel");
        if session != self.session {
            if let Some((native, held)) = self.child_of(session).await {
                self.end_child(&native, &held, turn).await;
            }
            return;
        }
        if self.turn.as_ref().is_none_or(|running| running.id != turn) {
            // The turn waits for the agent to be ready: it has not begun, and now it will not.
            if self.waiting.take_if(|waiting| *waiting == turn).is_some() {
                let channel = "the agent had not begun".to_owned();
                self.shared.note(self.session, Signal::WorkEnded { channel }).await;
            } else if self.turn.is_none() && self.is_given_up().await {
                let channel = "the turn waited for a limit".to_owned();
                self.shared.note(self.session, Signal::WorkEnded { channel }).await;
            }
            return;
        }
        if forced {
            return self.end_run("the cancel was forced").await;
        }
        self.ask_to_end(Duration::from_millis(self.settings.cancel_grace_ms)).await;
    }

    /// Whether the session's turn waits for a limit and was cancelled.
    async fn is_given_up(&self) -> bool {
        let held = self.shared.session(self.session).await.and_then(|held| held.turn);
        held.is_some_and(|turn| turn.is_waiting() && turn.cancel_requested)
    }

    /// Asks the agent to end its turn, and remembers until when it may take.
    pub(super) fn cancel_turn(&mut self, grace: Duration) {
        let now = Instant::now();
        let Some(turn) = &mut self.turn else { return };
        match &mut turn.cancel {
            Some(cancel) => cancel.until = cancel.until.min(now + grace),
            None => turn.cancel = Some(Cancel { since: now, until: now + grace, ignored: false }),
        }
        let id = turn.id;
        self.try_channel("agent");
        self.say(|driver, out| driver.cancel(id, None, out));
    }

    /// Asks the agent to end its turn; one that cannot be asked is ended.
    pub(super) async fn ask_to_end(&mut self, grace: Duration) {
        self.cancel_turn(grace);
        self.carry_out().await;
        failpoint::hit("after_cancel");
        if self.runs_once() {
            self.end_run("its turn was cancelled").await;
        }
    }

    async fn stop_ordered(&mut self, session: SessionId, level: StopLevel, scope: StopScope) {
        failpoint::hit("before_stop");
        // Whose calls come by is told in the answer to the next one, and has until the deadline to do what it is told.
        let can_be_told = session != self.session || self.turn.is_some();
        if level == StopLevel::Graceful && can_be_told && self.is_told(session).await {
            // Once its turn is over nothing is left to wait for.
            if session == self.session && scope != StopScope::Turn {
                self.course.stop();
            }
            return;
        }
        if session != self.session {
            let Some((native, held)) = self.child_of(session).await else { return };
            if let Some(turn) = held.turn.as_ref().map(|turn| turn.id) {
                return self.end_child(&native, &held, turn).await;
            }
            let channel = "nothing was running".to_owned();
            return self.shared.note(session, Signal::WorkEnded { channel }).await;
        }
        if scope == StopScope::Turn {
            return self.turn_stopped(level).await;
        }
        self.course.stop();
        self.waiting = None;
        match (level, self.turn.is_some()) {
            (StopLevel::Graceful, true) => {
                self.ask_to_end(Duration::from_millis(self.settings.cancel_grace_ms)).await;
            }
            (StopLevel::Immediate, true) => self.ask_to_end(IMMEDIATE_GRACE).await,
            (StopLevel::Terminated, _) => self.end_now("the session was terminated").await,
            (StopLevel::Graceful | StopLevel::Immediate, false) => {
                self.end_run("the session was stopped").await;
            }
        }
    }

    /// Ends the turn and leaves the agent to its next one, as far as it lets itself be stopped.
    async fn turn_stopped(&mut self, level: StopLevel) {
        match (level, self.turn.is_some()) {
            (StopLevel::Graceful, true) => {
                self.ask_to_end(Duration::from_millis(self.settings.cancel_grace_ms)).await;
            }
            (StopLevel::Immediate, true) => self.ask_to_end(IMMEDIATE_GRACE).await,
            (StopLevel::Terminated, _) => self.end_now("its turn was terminated").await,
            (StopLevel::Graceful | StopLevel::Immediate, false) => {
                self.waiting = None;
                let channel = "the agent had not begun".to_owned();
                self.shared.note(self.session, Signal::WorkEnded { channel }).await;
            }
        }
    }

    /// Whether the agent is at work and its calls come by.
    async fn is_told(&self, session: SessionId) -> bool {
        let due = self.shared.engine.may_be_told(session);
        let held = self.shared.session(session).await;
        held.is_some_and(|held| held.turn.is_some() && (held.hears || due))
    }

    async fn answer_ordered(&mut self, session: SessionId, gate: GateId) {
        let Some(held) = self.shared.session(session).await else { return };
        failpoint::hit("before_answer");
        self.pass_answers(&held, Some(gate));
        self.carry_out().await;
        failpoint::hit("after_answer");
    }

    /// Gives the agent the answers it waits for; those it has already are written once.
    pub(super) fn pass_answers(&mut self, session: &Session, only: Option<GateId>) {
        let gates = session.gates.iter().filter(|gate| gate.run == self.run);
        let gates: Vec<_> = gates.filter(|gate| only.is_none_or(|only| only == gate.id)).cloned().collect();
        for gate in gates {
            let answer = match &gate.status {
                GateStatus::Open => continue,
                GateStatus::Withdrawn { .. } => Answer::Void,
                GateStatus::Answered { option, message, .. } => {
                    let known = gate.question.options.iter().find(|known| known.id == *option).cloned();
                    let option = known.unwrap_or_else(|| GateOption {
                        id: option.clone(),
                        name: option.clone(),
                        kind: OptionKind::Other,
                    });
                    Answer::Chosen { option, message: message.clone() }
                }
            };
            self.say(|driver, out| driver.answer(&gate.question, &answer, out));
        }
    }

    /// Puts words into the running turn of the agent or of a subagent, where it can take them; otherwise they wait for
    /// the next channel.
    async fn steer_ordered(&mut self, session: SessionId, note: NoteId) {
        let native = if session == self.session {
            if self.turn.as_ref().is_none_or(|turn| turn.cancel.is_some()) {
                return;
            }
            None
        } else {
            let child = self.children.iter().find(|(_, mirror)| mirror.session == session && !mirror.done);
            let Some((native, _)) = child else { return };
            Some(native.clone())
        };
        let Some(held) = self.shared.session(session).await else { return };
        let message = held.inbox.iter().find(|waiting| waiting.note == Some(note));
        let parts = message.map_or(&[][..], |message| &message.parts);
        // The answer to a call that is under way reaches the model at the same moment, and shows when it was heard. It
        // carries text alone.
        if parts.is_empty() && self.shared.engine.answer_is_due(session) {
            return;
        }
        let words = held.guidance.iter().find(|held| held.id == note && held.status == NoteStatus::Pending);
        let Some(words) = words.cloned() else { return };
        let (text, parts) = self.take_parts(&words.text, parts).await;
        let mut taken = false;
        let key = format!("steer:{note}");
        let prompt = GivenPrompt { text: &text, parts: &parts };
        self.say(|driver, out| taken = driver.steer(&key, native.as_deref(), prompt, out));
        if taken {
            self.carry_out().await;
            let (notes, channel) = (vec![note], "steer".to_owned());
            self.shared.note(session, Signal::GuidanceDelivered { notes, channel }).await;
        }
    }

    /// A snapshot of the workspace, or why there is none. Never a reason not to go on.
    pub(super) async fn snapshot(&mut self, session: &Session, reason: SnapshotReason, name: &str) {
        let (workspace, owner, named) = (self.workspace.clone(), session.id.to_string(), name.to_owned());
        let message = format!("Lanyard: {owner}, {named}");
        let checkpoints = self.shared.checkpoints.clone();
        let taking =
            tokio::task::spawn_blocking(move || checkpoints.take(&workspace, &owner, &named, &message));
        let wait = if reason == SnapshotReason::TurnEnd { TURN_END_WAIT } else { SNAPSHOT_WAIT };
        let taking = tokio::time::timeout(wait, taking);
        // The run is over at a stop's snapshot: no order can end it any more.
        let taken = match reason {
            SnapshotReason::Stop => Some(taking.await),
            SnapshotReason::TurnStart
            | SnapshotReason::TurnEnd
            | SnapshotReason::Asked
            | SnapshotReason::Rollback => self.unless_ended(taking).await,
        };
        let Some(Ok(taken)) = taken else {
            let (code, why) = match taken {
                Some(_) => {
                    let seconds = wait.as_secs();
                    ("snapshot_slow", format!("it takes longer than {seconds} s; nobody waits for it"))
                }
                None => ("snapshot_cut", "an order to end came while it was taken".to_owned()),
            };
            let signal = Signal::SnapshotSkipped { code: code.to_owned(), why };
            return self.shared.note(self.session, signal).await;
        };
        let signal = match taken {
            Ok(Ok(taken)) => Signal::SnapshotTaken {
                name: name.to_owned(),
                commit: taken.commit,
                reason,
                files_changed: taken.files_changed,
            },
            Ok(Err(error)) => {
                Signal::SnapshotSkipped { code: error.code().to_owned(), why: error.to_string() }
            }
            Err(error) => Signal::SnapshotSkipped { code: "defect".to_owned(), why: error.to_string() },
        };
        self.shared.note(self.session, signal).await;
    }
}

fn pending(session: &Session) -> Vec<NoteId> {
    let pending = session.guidance.iter().filter(|note| note.status == NoteStatus::Pending);
    pending.map(|note| note.id).collect()
}
