//! Carrying out what the driver wants and has seen.

use lanyard_api::agents::settings::Judgement;
use lanyard_core::session::{
    Command, Continuity, InterruptCause, NewSession, Question, Receipt, Role, RunReady, Session, Signal,
    TurnOutcome,
};
use lanyard_core::text::{one_line, without_escapes};
use lanyard_core::{Actor, Address, Cause, GateId, SessionId, TurnId};
use tokio::time::{Duration, Instant};

use super::budget::TurnUse;
use super::{Mirror, Runner};
use crate::agents::driver::{Action, Answer, Call, CallError, Child, Opened, Readiness, TextKind, TurnEnd};
use crate::agents::engine::{AgentAsk, AgentRequest, AskFailure, LiveText};
use crate::agents::judge::judge;
use crate::agents::kept_images::left_out;
use crate::agents::pen::{Report, Unfinished};
use crate::agents::shared::once;
use crate::runs::Sent;
use lanyard_base::failpoint;

/// How long text may wait for more of it before it is reported.
const TEXT_WAIT: Duration = Duration::from_millis(200);
/// How long text that may end in the middle of a secret waits for its rest. A model that pauses longer in the middle of
/// a key is not expected; a message that ends so would not be in the log before its turn ends.
const HELD_MAX: Duration = Duration::from_secs(10);
/// A conversation that was taken up again counts as played back when nothing came for this long.
pub(super) const SETTLE_QUIET: Duration = Duration::from_millis(300);
/// How long to wait for any sign that the agent knows the conversation.
const SETTLE_MAX: Duration = Duration::from_secs(5);
/// Oddities of one run that are logged.
const ODD_MAX: u32 = 20;
/// Work this long after a cancel shows that the agent does not heed it.
const HEED_MAX: Duration = Duration::from_millis(500);
/// A subagent without words of its own.
const NO_PROMPT: &str = "(the agent gave no words)";
/// Characters of a subagent's title or name.
const CHILD_NAME_CHARS_MAX: usize = 200;

impl Runner {
    pub(super) async fn carry_out(&mut self) {
        while let Some((at, action)) = self.actions.pop_front() {
            self.here = self.here.max(at);
            self.act(at, action).await;
            // As with reports: in the middle of a line it would hide the rest after a crash.
            if self.unmeasured && self.actions.front().is_none_or(|(next, _)| *next > at) {
                self.compare_budgets().await;
            }
            // Never in the middle of a line: what was told of it would hide the rest after a crash.
            if self.pen.is_full() && self.actions.front().is_none_or(|(next, _)| *next > at) {
                self.report_safe().await;
            }
        }
        self.preview();
        if !self.pen.is_empty() && self.report_at.is_none() {
            self.report_at = Some(Instant::now() + TEXT_WAIT);
        }
    }

    /// Shows the text that waits to whoever is attached.
    fn preview(&self) {
        let Some(Unfinished { session, kind, text, message }) = self.pen.unfinished() else { return };
        let kind = match kind {
            TextKind::Message => "message",
            TextKind::Thought => "thought",
            TextKind::User => return,
        };
        let turn = self.turn.as_ref().filter(|_| session == self.session).map(|turn| turn.of);
        self.shared.engine.preview(session, LiveText { kind, text, message_id: message, turn });
    }

    async fn act(&mut self, at: u64, action: Action) {
        match action {
            Action::Send { key, line } => self.send(&key, line).await,
            Action::Ready(readiness) => self.greeted(*readiness).await,
            Action::Replayed(messages) => self.heard_replay(messages),
            Action::Text { native, kind, text, message } => {
                if kind == TextKind::Message {
                    self.saw_work();
                }
                if let Some(session) = self.target(native.as_deref(), at) {
                    self.pen.text(session, kind, message, &text, at);
                }
            }
            Action::Image { native, data, message } => self.shown(at, native.as_deref(), data, message).await,
            Action::Saw { native, signal } => self.saw(at, native.as_deref(), signal).await,
            Action::Asked { native, question } => self.asked(at, native.as_deref(), *question).await,
            Action::Unasked { request, why } => {
                for session in self.sessions() {
                    let signal = Signal::GateWithdrawn { request: request.clone(), why: why.clone() };
                    self.pen.signal(session, signal, at);
                }
            }
            Action::Child(child) => self.child(at, *child).await,
            Action::Finished { native: None, turn, end } => self.finished(at, turn, end).await,
            Action::Finished { native: Some(native), end, .. } => self.child_finished(at, &native, end),
            Action::Call { request, call } => self.call(request, call).await,
            Action::Broken { code, what } => self.break_with(code, what),
            Action::Odd { what } => {
                self.odd += 1;
                if self.odd <= ODD_MAX {
                    tracing::warn!(session = %self.session, run = %self.run, what, "the agent did something odd");
                }
            }
        }
    }

    async fn send(&mut self, key: &str, mut line: String) {
        line.push('\n');
        if let Err(error) = self.link.send(key, line.as_bytes()).await {
            // An agent that is gone says so itself, by its end.
            tracing::debug!(run = %self.run, key, %error, "a line did not reach the agent");
            if matches!(error, crate::runs::LinkError::InputFull | crate::runs::LinkError::TooLong) {
                self.break_with("input_full", format!("it does not read what it is told: {error}"));
            }
        }
    }

    /// Begins what the agent asks of its client, unless an earlier daemon did. The answer comes by itself.
    async fn call(&mut self, request: String, call: Call) {
        let first = self.link.send(&format!("call:{request}"), b"").await;
        let begun = match first {
            Ok(Sent::Repeated) if call.changes() => {
                let message = "the daemon ended while it did this; it may be done or not".to_owned();
                Err(CallError { message, missing: false })
            }
            Ok(Sent::First | Sent::Repeated) | Err(_) => self.calls.begin(&request, call),
        };
        if let Err(error) = begun {
            self.say(|driver, out| driver.called(&request, Err(error), out));
        }
    }

    /// The session an action belongs to, unless it was reported before.
    fn target(&self, native: Option<&str>, at: u64) -> Option<SessionId> {
        let Some(native) = native else { return Some(self.session) };
        match self.children.get(native) {
            Some(mirror) if at > mirror.cursor => Some(mirror.session),
            Some(_) => None,
            // A conversation nobody announced: better in its parent's log than nowhere.
            None => Some(self.session),
        }
    }

    pub(super) fn sessions(&self) -> Vec<SessionId> {
        let mut all = vec![self.session];
        all.extend(self.children.values().filter(|mirror| !mirror.done).map(|mirror| mirror.session));
        all
    }

    /// An image of a message. One that cannot be kept is named in its place.
    async fn shown(&mut self, at: u64, native: Option<&str>, data: String, message_id: Option<String>) {
        self.saw_work();
        let Some(session) = self.target(native, at) else { return };
        let (text, parts) = match self.shared.keep_image(session, data).await {
            Ok(part) => (String::new(), vec![part]),
            Err(why) => (left_out(&why), Vec::new()),
        };
        let signal = Signal::Said { role: Role::Agent, text, message_id, parts };
        self.pen.signal(session, signal, at);
    }

    async fn saw(&mut self, at: u64, native: Option<&str>, mut signal: Signal) {
        if let (Signal::ToolReturned { content, .. }, Some(session)) = (&mut signal, self.target(native, at))
        {
            self.shared.keep_images(session, content).await;
        }
        if let Signal::Offered(offer) = &signal {
            let now = self.shared.clock.now();
            self.shared.offers.note(&self.agent, &self.settings, offer, now);
        }
        let mut used = TurnUse::default();
        if let Signal::ToolCalled { .. } = &signal {
            self.saw_work();
            used.tool_calls = 1;
        } else if let Signal::UsageReported { input_tokens, output_tokens, cost_micros, .. } = &signal {
            used.tokens = input_tokens.saturating_add(*output_tokens);
            used.cost = *cost_micros;
        }
        if let Some(session) = self.target(native, at) {
            self.pen.signal(session, signal, at);
        }
        self.measure(used).await;
    }

    /// Work after a cancel is evidence that it is not heeded: there is less time left.
    fn saw_work(&mut self) {
        let grace = Duration::from_millis(self.settings.cancel_grace_ms);
        let cancel = self.turn.as_mut().and_then(|turn| turn.cancel.as_mut());
        if let Some(cancel) = cancel.filter(|cancel| !cancel.ignored && cancel.since.elapsed() > HEED_MAX) {
            cancel.ignored = true;
            cancel.until = cancel.until.min(Instant::now() + grace / 4);
        }
    }

    async fn asked(&mut self, at: u64, native: Option<&str>, question: Question) {
        let Some(session) = self.target(native, at) else { return };
        let gate = GateId::mint(self.shared.clock.now(), self.shared.clock.random());
        let signal = Signal::GateAsked { gate, run: self.run, question: Box::new(question.clone()) };
        self.pen.signal(session, signal, at);
        self.report().await;
        failpoint::hit("after_gate");
        let Some(held) = self.shared.session(session).await else { return };
        let held =
            held.gates.iter().find(|held| held.run == self.run && held.question.request == question.request);
        match held {
            Some(held) => self.judge_gate(session, held.id, &question).await,
            // It came at a wrong time, or one too many: nobody will ever answer it.
            None => self.say(|driver, out| driver.answer(&question, &Answer::Void, out)),
        }
    }

    /// Answers a question where the rules do; otherwise a person will.
    pub(super) async fn judge_gate(&mut self, session: SessionId, gate: GateId, question: &Question) {
        let (permissions, workspace) = (self.settings.permissions.clone(), self.workspace.clone());
        let judging = async move { judge(&permissions, &workspace, question).await };
        let word = match self.unless_ended(judging).await {
            Some(Judgement::Allow) => "allow",
            Some(Judgement::Deny) => "deny",
            Some(Judgement::Ask) | None => return,
        };
        if question.choose(word).is_some() {
            let command = Command::AnswerGate { gate, option: word.to_owned(), message: None };
            let judged = self.shared.command(session, command, Actor::system("policy"), None).await;
            if let Err(error) = judged {
                tracing::warn!(%session, %gate, %error, "the rules' answer was not taken; a person is asked");
            }
        }
    }

    fn heard_replay(&mut self, messages: u64) {
        if !self.course.count_replayed(messages, Instant::now() + SETTLE_QUIET) {
            self.replayed += messages;
        }
    }

    async fn greeted(&mut self, readiness: Readiness) {
        if readiness.how == Opened::Resumed && self.has_past {
            let now = Instant::now();
            self.course.settle(readiness, self.replayed, now + SETTLE_QUIET, now + SETTLE_MAX);
            return;
        }
        self.ready(&readiness, None).await;
    }

    /// The agent takes prompts: the log learns how the conversation came over, and a turn that waited begins.
    pub(super) async fn ready(&mut self, readiness: &Readiness, history: Option<u64>) {
        let continuity = match readiness.how {
            Opened::New => self.past.as_ref().map(|(how, _)| *how),
            Opened::Resumed | Opened::Believed => Some(Continuity::Native),
        };
        self.course.greeted();
        self.idle_since = Instant::now();
        let ready = RunReady {
            run: self.run,
            native: readiness.native.clone(),
            info: readiness.info.clone(),
            capabilities: readiness.capabilities,
            continuity,
            history,
        };
        self.pen.signal(self.session, Signal::RunReady(Box::new(ready)), self.here);
        self.report().await;
        failpoint::hit("after_ready");
        self.begin_waiting().await;
    }

    async fn child(&mut self, at: u64, child: Child) {
        match self.children.get(&child.native) {
            // Set to work again, or told of again after a crash.
            Some(mirror) if mirror.done && at > mirror.cursor => {
                let session = mirror.session;
                return self.child_begins(at, session, child).await;
            }
            Some(_) => return,
            None => {}
        }
        // What was seen before the child belongs before it.
        self.report().await;
        let parent = child.parent.as_deref().and_then(|native| self.children.get(native));
        let parent = parent.map_or(self.session, |mirror| mirror.session);
        let id = SessionId::mint(self.shared.clock.now(), self.shared.clock.random());
        // One without a name of its own goes by the first words it was given.
        let title = child.title.clone().or_else(|| child.prompt.lines().next().map(str::to_owned));
        let title = title.filter(|title| !title.trim().is_empty());
        let new = NewSession {
            title: title.map(|title| one_line(&title, CHILD_NAME_CHARS_MAX)),
            agent: child.agent.clone().map(|agent| one_line(&agent, CHILD_NAME_CHARS_MAX)),
            source: Some("subagent".to_owned()),
            workspace: Some(self.workspace.display().to_string()),
            aliases: std::iter::once(&child.native).chain(&child.also).cloned().collect(),
            observed: true,
            ..NewSession::default()
        };
        let session = match self.create(id, new, parent, &child).await {
            Ok(session) => session,
            Err(error) => {
                let what = format!("its subagent has no session of its own: {error}");
                tracing::warn!(session = %self.session, what);
                return;
            }
        };
        failpoint::hit("after_child");
        self.shared.mirror(session, self.session);
        let started = Signal::RunStarted {
            run: self.run,
            agent: child.agent.clone().unwrap_or_default(),
            driver: self.settings.driver.as_str().to_owned(),
            mirrored: true,
            steers: self.settings.driver.steers_subagents(),
            // It works in its parent's process.
            sandbox: self.shared.session(self.session).await.and_then(|held| held.run?.sandbox),
            account: None,
        };
        self.shared.note(session, started).await;
        self.child_begins(at, session, child).await;
    }

    /// A subagent is at work.
    async fn child_begins(&mut self, at: u64, session: SessionId, child: Child) {
        let turn = TurnId::mint(self.shared.clock.now(), self.shared.clock.random());
        let prompt = if child.prompt.trim().is_empty() { NO_PROMPT.to_owned() } else { child.prompt };
        self.own_turns.insert(turn);
        let command = Command::StartTurn { turn, client_turn_id: None, prompt };
        let once = Some(once(self.run, &format!("turn {} {at}", child.native)));
        let started = self.shared.command(session, command, Actor::system("agents"), once).await;
        failpoint::hit("after_child_turn");
        let turn = started.ok().and_then(|outcome| outcome.turn);
        let cursor = match self.shared.session(session).await {
            Some(held) => held.run.map_or(0, |run| run.cursor),
            None => 0,
        };
        self.own_turns.extend(turn);
        let cursor = cursor.max(at);
        let mirror = Mirror { session, turn, cursor, done: false, cancelled: false };
        self.children.insert(child.native, mirror);
    }

    async fn create(
        &self,
        id: SessionId,
        mut new: NewSession,
        parent: SessionId,
        child: &Child,
    ) -> Result<SessionId, AskFailure> {
        loop {
            if let Some(known) = self.made_known(parent, child).await {
                return Ok(known);
            }
            let request = AgentRequest {
                ask: AgentAsk::Create { id, new: Box::new(new.clone()), parent },
                actor: Actor::system("agents"),
                cause: Some(Cause::Signal("child".to_owned())),
                once: Some(once(self.run, &format!("child {}", child.native))),
            };
            match self.shared.insist(request).await {
                Ok(outcome) => return Ok(outcome.session),
                // Its name is taken elsewhere, or is none: it can do without.
                Err(AskFailure::Alias(_)) if !new.aliases.is_empty() => {
                    new.aliases.clear();
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The session a hook has made for this subagent, which then shows it.
    async fn made_known(&self, parent: SessionId, child: &Child) -> Option<SessionId> {
        for alias in std::iter::once(&child.native).chain(&child.also) {
            let address = Address { session: alias.clone(), workspace: None, plan: None };
            let found = self.shared.on_disk(move |store| store.find(&address)).await.ok()?;
            for found in found.into_iter().filter(|found| !found.deleted) {
                let held = self.shared.session(found.session).await;
                let fits = |held: &Session| held.parent == Some(parent) && held.run.is_none();
                if let Some(held) = held.filter(|held| fits(held) && !held.state.is_ended()) {
                    self.name_child(&held, child).await;
                    return Some(held.id);
                }
            }
        }
        None
    }

    /// The driver finds the session of a subagent by the agent's own id.
    async fn name_child(&self, held: &Session, child: &Child) {
        if held.aliases.contains(&child.native) {
            return;
        }
        let command = Command::AddAlias { alias: child.native.clone() };
        let once = Some(once(self.run, &format!("alias {}", child.native)));
        if let Err(error) = self.shared.command(held.id, command, Actor::system("agents"), once).await {
            tracing::warn!(session = %held.id, %error, "a subagent has no name of its own");
        }
    }

    fn child_finished(&mut self, at: u64, native: &str, end: TurnEnd) {
        let Some(mirror) = self.children.get_mut(native).filter(|mirror| !mirror.done && at > mirror.cursor)
        else {
            return;
        };
        mirror.done = true;
        let (session, turn) = (mirror.session, mirror.turn.take());
        if std::mem::take(&mut mirror.cancelled) {
            return self.clear_child(at, native, (session, turn), end);
        }
        self.pen.signal(session, end_of(turn, end, Receipt::default()), at);
    }

    /// Puts what was seen into the log, in order. Text that may end in the middle of a secret waits for its rest, for a
    /// while.
    pub(super) async fn report_safe(&mut self) {
        if self.held_since.is_some_and(|since| since.elapsed() >= HELD_MAX) {
            return self.report().await;
        }
        let reports = self.pen.take_safe();
        let some = !reports.is_empty();
        self.tell_all(reports).await;
        self.report_at = None;
        if self.pen.is_empty() {
            self.held_since = None;
        } else {
            let now = Instant::now();
            self.held_since = self.held_since.filter(|_| !some).or(Some(now));
            self.report_at = Some(now + TEXT_WAIT);
        }
    }

    /// Puts everything that was seen into the log, in order.
    pub(super) async fn report(&mut self) {
        (self.report_at, self.held_since) = (None, None);
        let reports = self.pen.take();
        self.tell_all(reports).await;
    }

    async fn tell_all(&mut self, reports: Vec<Report>) {
        for report in reports {
            let before = self.told.get(&report.session).copied();
            // With a place in the output that was told of before it would pass for a repeat.
            let fresh = before.is_none_or(|before| before < report.to);
            let cause = fresh.then_some(Cause::Output { run: self.run, to: report.to });
            self.told.insert(report.session, report.to.max(before.unwrap_or(0)));
            failpoint::hit("before_report");
            let told = self.shared.tell(report.session, cause, report.signals).await;
            failpoint::hit("after_report");
            match told {
                Ok(_) => self.reported = self.reported.max(report.to),
                Err(AskFailure::Closing) => return,
                Err(error) => {
                    tracing::warn!(session = %report.session, %error, "what the agent did was not taken");
                }
            }
        }
        // A daemon that comes after looks for requests nobody answered: they must not be given up.
        if !self.calls.is_waited_for()
            && let Some(to) = self.spent.give_up(self.reported)
        {
            self.link.consumed(to);
        }
    }
}

/// The end of a turn, as a signal.
pub(super) fn end_of(turn: Option<TurnId>, end: TurnEnd, receipt: Receipt) -> Signal {
    let killed = !(receipt.processes.is_empty() && receipt.left.is_empty());
    match end {
        // Its commands were ended: whatever it says itself, the turn was cut off.
        TurnEnd::Done(_) | TurnEnd::Noted(..) | TurnEnd::Failed(_) | TurnEnd::Limited(_) if killed => {
            cancelled(receipt)
        }
        TurnEnd::Done(outcome) => Signal::TurnFinished { turn, outcome, reason: None },
        TurnEnd::Noted(outcome, note) => Signal::TurnFinished { turn, outcome, reason: Some(note) },
        TurnEnd::Failed(reason) => {
            let reason = Some(without_escapes(&reason));
            Signal::TurnFinished { turn, outcome: TurnOutcome::Failed, reason }
        }
        // Of a subagent: what becomes of it its parent decides.
        TurnEnd::Limited(limit) => {
            let reason = Some(without_escapes(&limit.text));
            Signal::TurnFinished { turn, outcome: TurnOutcome::Failed, reason }
        }
        TurnEnd::Cancelled => cancelled(receipt),
        TurnEnd::Limit(reason) => {
            let reason = Some(without_escapes(&reason));
            Signal::TurnLost { cause: InterruptCause::Limit, reason, receipt }
        }
    }
}

fn cancelled(receipt: Receipt) -> Signal {
    Signal::TurnLost { cause: InterruptCause::User, reason: Some("cancelled".to_owned()), receipt }
}
