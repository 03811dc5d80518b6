//! The harness of the core's tests: a session with a past, one input, and what came of it as short text.
//!
//! Ids and times are fixed: `turn#1` in a text is the turn made by `turn_id(1)`, and the session was created at
//! [`START_MS`], its events following one second apart.

mod review;
mod runs;

use std::fmt::Write as _;

use expect_test::Expect;
use serde_json::Value;

use crate::actor::{Actor, ActorKind, Cause};
use crate::id::{CommentId, ConnectionId, GateId, NoteId, RunId, SessionId, TurnId, WorkerId};
use crate::memory::MemoryAsk;
use crate::policy::{MemoryMode, Rules};
use crate::session::calls::{
    Call, CallerProof, Channel, Compliance, Directive, Lead, Passage, Returned, Told,
};
use crate::session::event::{
    ChangeEvent, ContextEvent, ControlEvent, Ending, Envelope, Event, Opening, Role, TurnEvent, TurnOutcome,
};
use crate::session::family::NewSession;
use crate::session::state::InterruptCause;
use crate::session::writer::{Pen, WriterCommand};
use crate::session::{
    AgentChoice, ApplyError, Command, Delivery, Effect, InboxChange, Message, NoteKind, Promotion, Refusal,
    Session, Signal, StateName, StopLevel, StopScope, call_begins, call_ends, create, decide, observe, react,
};
use crate::text::content_hash;
use crate::time::Timestamp;

pub(super) use review::*;
pub(super) use runs::*;

/// 2026-11-15T08:00:00Z.
pub(super) const START_MS: i64 = 1_794_729_600_000;
pub(super) const MINUTE: u64 = 60_000;
pub(super) const HOUR: u64 = 60 * MINUTE;
const STEP_MS: u64 = 1_000;

/// Checks what one input does to a session with the given past.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a test says `expect![[…]]` and no more")]
pub(super) fn check(mut given: Given, when: impl Into<Input>, expect: Expect) {
    expect.assert_eq(&given.told(&when.into()));
}

/// Checks what several inputs do, one after the other.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a test says `expect![[…]]` and no more")]
pub(super) fn story(mut given: Given, inputs: impl IntoIterator<Item = Input>, expect: Expect) {
    let mut text = String::new();
    for input in inputs {
        writeln!(text, "> {}", input.name()).unwrap();
        text += &given.told(&input);
    }
    expect.assert_eq(&text);
}

/// A session with a past, the time it is now, and the rules in force.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) session: Session,
    pub(super) log: Vec<Envelope>,
    pub(super) now: Timestamp,
    pub(super) rules: Rules,
    /// Which incarnation of the daemon is at work.
    pub(super) daemon: u32,
}

/// What the caller of a tool is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    Passage(Passage),
    Lead(Lead),
}

/// A session that was created plainly and then saw these events.
pub(super) fn given(events: impl IntoIterator<Item = Event>) -> Given {
    events.into_iter().fold(born(&NewSession::default()), Given::event)
}

/// A session that was created like this, by `ann`, as a root.
pub(super) fn born(new: &NewSession) -> Given {
    given_created(create(new, "ann", None, &Rules::default().limits).unwrap().into())
}

/// A session with this first event.
pub(super) fn given_created(created: Event) -> Given {
    let now = Timestamp::from_millis(START_MS);
    let first =
        Envelope { seq: 1, session: session_id(1), at: now, actor: ann(), cause: None, event: created };
    let session = Session::born(&first).unwrap();
    Given { session, log: vec![first], now, rules: Rules::default(), daemon: 1 }.later(STEP_MS)
}

/// A session in this state, on the shortest way there. An interrupted one was interrupted by its user.
pub(super) fn in_state(state: StateName) -> Given {
    use StateName::{
        Beginning, BetweenTurn, Compacted, Completed, Custom, Executing, Failed, Idle, Interrupted, Stale,
        Stopped,
    };
    match state {
        Beginning => given([]),
        Custom => born(&NewSession { purpose: Some("try".into()), ..NewSession::default() }),
        Executing => given([started(1)]),
        BetweenTurn => given([started(1), finished(1)]),
        Compacted => given([compacted(900, 100)]),
        Interrupted => interrupted_by(InterruptCause::User),
        Idle => in_state(BetweenTurn).event(ChangeEvent::WentIdle { quiet_ms: HOUR }),
        Stale => in_state(Idle).event(ChangeEvent::WentStale { quiet_ms: 48 * HOUR }),
        Completed => given([ended(Ending::Completed)]),
        Failed => given([ended(Ending::Failed)]),
        Stopped => given([stop_at(StopLevel::Graceful), ended(Ending::Stopped)]),
    }
}

pub(super) fn interrupted_by(cause: InterruptCause) -> Given {
    given([started(1), interrupted(1, cause)])
}

impl Given {
    /// Something else happened before.
    #[track_caller]
    pub(super) fn event(mut self, event: impl Into<Event>) -> Self {
        let event = event.into();
        if let Err(error) = self.append(&event, None) {
            panic!("{error}: {event:?}");
        }
        self.later(STEP_MS)
    }

    /// Somebody did something before, whatever the answer was.
    #[track_caller]
    pub(super) fn after(mut self, input: impl Into<Input>) -> Self {
        self.put(&input.into());
        self
    }

    pub(super) fn after_each(self, inputs: impl IntoIterator<Item = Input>) -> Self {
        inputs.into_iter().fold(self, Self::after)
    }

    pub(super) fn later(mut self, millis: u64) -> Self {
        self.now = Timestamp::from_millis(self.now.as_millis().saturating_add_unsigned(millis));
        self
    }

    pub(super) fn rules(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        change(&mut self.rules);
        self
    }

    /// Gives the session an input as the daemon would: decide, append, apply, react; a refusal is recorded.
    #[track_caller]
    pub(super) fn put(&mut self, input: &Input) -> Answer {
        let cause = Some(match input {
            Input::Command(command) => Cause::Request(command.name().to_owned()),
            Input::Signal(signal) => Cause::Signal(signal.name().to_owned()),
            Input::Output { run, to, .. } => Cause::Output { run: *run, to: *to },
            Input::Begins(_) | Input::Ends(_) | Input::Restarted => Cause::Signal(input.name().to_owned()),
        });
        let mut said = None;
        let daemon = format!("daemon {}", self.daemon);
        let (events, refusal) = match input {
            Input::Command(command) => match decide(&self.session, command, self.now, &self.rules) {
                Ok(events) => (events, None),
                Err(refusal) => {
                    (refusal.record(&self.session, command.name()).into_iter().collect(), Some(refusal))
                }
            },
            Input::Signal(signal) | Input::Output { signal, .. } => {
                (observe(&self.session, signal, &self.rules), None)
            }
            Input::Begins(call) => {
                let (events, passage) = call_begins(&self.session, call, &daemon, &self.rules);
                said = Some(Said::Passage(passage));
                (events, None)
            }
            Input::Ends(call) => {
                let returned = Returned::default();
                let (events, lead) =
                    call_ends(&self.session, call, &returned, &daemon, self.now, &self.rules);
                said = Some(Said::Lead(lead));
                (events, None)
            }
            Input::Restarted => {
                self.daemon += 1;
                (Vec::new(), None)
            }
        };
        let states = vec![self.session.state.name()];
        let mut answer = Answer { events, refusal, effects: Vec::new(), states, said };
        for event in &answer.events {
            match self.append(event, cause.clone()) {
                Ok(effect) => answer.effects.extend(effect),
                Err(error) => panic!("{} made a bad event: {error}: {event:?}", input.name()),
            }
            answer.states.push(self.session.state.name());
        }
        answer.states.dedup();
        self.now = Timestamp::from_millis(self.now.as_millis() + i64::try_from(STEP_MS).unwrap());
        answer
    }

    fn append(&mut self, event: &Event, cause: Option<Cause>) -> Result<Vec<Effect>, ApplyError> {
        let seq = self.session.seq + 1;
        // A call is its agent's own doing.
        let called =
            matches!(&cause, Some(Cause::Signal(name)) if ["call", "answer"].contains(&name.as_str()));
        let actor = if called { Actor { kind: ActorKind::Agent, name: "agent".into() } } else { ann() };
        let envelope =
            Envelope { seq, session: self.session.id, at: self.now, actor, cause, event: event.clone() };
        self.session.apply(&envelope)?;
        let effect = react(&self.session, &envelope);
        self.log.push(envelope);
        Ok(effect)
    }

    /// Puts the input and tells what came of it.
    #[track_caller]
    pub(super) fn told(&mut self, input: &Input) -> String {
        let answer = self.put(input);
        let mut text = String::new();
        if let Some(refusal) = &answer.refusal {
            writeln!(text, "refused {}: {refusal}; {}", refusal.code(), refusal.advice()).unwrap();
        }
        for event in &answer.events {
            writeln!(text, "{}", event_line(event)).unwrap();
        }
        for effect in &answer.effects {
            writeln!(text, "do {effect:?}").unwrap();
        }
        if let Some(said) = &answer.said {
            writeln!(text, "{}", said_line(said)).unwrap();
        }
        let path: Vec<&str> = answer.states.iter().map(|state| state.as_str()).collect();
        writeln!(text, "{}{}", path.join(" -> "), flags(&self.session)).unwrap();
        short_ids(&text)
    }
}

/// What became of an input.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) events: Vec<Event>,
    pub(super) refusal: Option<Refusal>,
    pub(super) effects: Vec<Effect>,
    /// What a call was told.
    pub(super) said: Option<Said>,
    /// The state before, and each state entered.
    pub(super) states: Vec<StateName>,
}

#[derive(Debug, Clone)]
pub(super) enum Input {
    Command(Command),
    Signal(Signal),
    /// A signal that was read from an agent's output.
    Output {
        run: RunId,
        to: u64,
        signal: Signal,
    },
    /// A tool call came by.
    Begins(Call),
    /// Its answer is about to go out.
    Ends(Call),
    /// The daemon was killed and came back; what it sent last may be lost.
    Restarted,
}

impl Input {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Command(command) => command.name(),
            Self::Signal(signal) | Self::Output { signal, .. } => signal.name(),
            Self::Begins(_) => "call",
            Self::Ends(_) => "answer",
            Self::Restarted => "daemon restarted",
        }
    }
}

impl From<Command> for Input {
    fn from(command: Command) -> Self {
        Self::Command(command)
    }
}

impl From<Signal> for Input {
    fn from(signal: Signal) -> Self {
        Self::Signal(signal)
    }
}

fn said_line(said: &Said) -> String {
    let stop = |stop: &Directive| format!("level {} of the {}", u8::from(stop.level), stop.scope.as_str());
    match said {
        Said::Passage(Passage::Go) => "goes".to_owned(),
        Said::Passage(Passage::Refused(directive)) => format!("not carried out: {}", stop(directive)),
        Said::Lead(lead) if lead.is_empty() => "answered as it is".to_owned(),
        Said::Lead(Lead { stop: Some(directive), .. }) => {
            let original = if directive.level == StopLevel::Graceful { "before" } else { "instead of" };
            format!("told {} {original} the answer", stop(directive))
        }
        Said::Lead(lead) => {
            let notes: Vec<String> = lead.notes.iter().map(note_line).collect();
            format!("told {} before the answer", notes.join(", "))
        }
    }
}

fn note_line(told: &Told) -> String {
    let again = if told.again { " again" } else { "" };
    format!("{}{again} \"{}\"", told.note, told.text)
}

/// A call of a tool that a stop does not ask for.
pub(super) fn call(n: u32) -> Call {
    let (id, tool, proof) = (format!("call {n}"), "echo".to_owned(), CallerProof::Address);
    Call { id, server: Some("ev".into()), tool, channel: Channel::Mcp, compliance: None, proof, run: None }
}

pub(super) fn notify(note: u128) -> Input {
    let (note, about) = (note_id(note), session_id(2));
    Command::Notify { note, kind: NoteKind::Notice, about: Some(about), text: "a child was stopped".into() }
        .into()
}

pub(super) fn begins(n: u32) -> Input {
    Input::Begins(call(n))
}

pub(super) fn ends(n: u32) -> Input {
    Input::Ends(call(n))
}

/// A whole call: it comes by, and if it is carried out its answer goes out.
pub(super) fn complies(how: Compliance) -> Call {
    Call { server: Some("lanyard".into()), tool: "memory_agent".into(), compliance: Some(how), ..call(9) }
}

/// An event as `type field=value …`. Hashes of prompts say nothing to a reader and are left out.
pub(super) fn event_line(event: &Event) -> String {
    let mut json = serde_json::to_value(event).unwrap();
    // The same text whatever order a build keeps keys in.
    sort(&mut json);
    let mut line = json["type"].as_str().unwrap().to_owned();
    if let Value::Object(fields) = &json["data"] {
        for (name, value) in fields.iter().filter(|(name, _)| *name != "prompt_hash") {
            let text = if name == "capabilities" { held(value) } else { value_text(value) };
            write!(line, " {name}={text}").unwrap();
        }
    }
    short_ids(&line)
}

/// What an agent can do; what it cannot would fill the line.
fn held(capabilities: &Value) -> String {
    let all = capabilities.as_object().unwrap().iter();
    let held: Vec<&str> = all.filter(|(_, held)| **held == true).map(|(name, _)| name.as_str()).collect();
    format!("[{}]", held.join(", "))
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() > 120 => {
            let start: String = text.chars().take(8).collect();
            format!("{start}…({} characters)", text.chars().count())
        }
        Value::String(text) if text.is_empty() || text.contains(char::is_whitespace) => format!("{text:?}"),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(value_text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}={}", value_text(value))).collect();
            format!("{{{}}}", fields.join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// What a session's state does not say.
fn flags(session: &Session) -> String {
    let mut text = String::new();
    if session.turn.as_ref().is_some_and(|turn| turn.cancel_requested) {
        text += ", cancel requested";
    }
    if let Some(stop) = &session.stop {
        write!(text, ", stop {}", u8::from(stop.level)).unwrap();
    }
    if let Some(run) = session.run.as_ref().filter(|run| run.is_live()) {
        let kind = if run.mirrored { "mirrored run" } else { "run" };
        write!(text, ", {kind} {} {}", run.number, format!("{:?}", run.phase).to_lowercase()).unwrap();
    }
    match session.open_gates().count() {
        0 => {}
        open => write!(text, ", open gates {open}").unwrap(),
    }
    if !session.inbox.is_empty() {
        let turns: Vec<String> = session.inbox.iter().map(|waiting| waiting.turn.to_string()).collect();
        write!(text, ", waiting {}", turns.join(" ")).unwrap();
    }
    if let Some(reason) = session.inbox_paused {
        write!(text, ", paused ({})", reason.as_str()).unwrap();
    }
    if session.archived {
        text += ", archived";
    }
    if session.deleted {
        text += ", deleted";
    }
    text
}

/// Writes ids as `turn#1`.
pub(super) fn short_ids(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut short = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let end = rest[start..].find(|c| !is_word(c)).map_or(rest.len(), |length| start + length);
        let word = &rest[start..end];
        short += &rest[..start];
        match id_number(word) {
            Some((prefix, number)) => write!(short, "{prefix}#{number}").unwrap(),
            None => short += word,
        }
        rest = &rest[end..];
    }
    short + rest
}

fn id_number(word: &str) -> Option<(&'static str, u128)> {
    let numbered = |prefix, parsed: Option<u128>| parsed.map(|number| (prefix, number));
    numbered("sess", word.parse().ok().map(SessionId::as_u128))
        .or_else(|| numbered("turn", word.parse().ok().map(TurnId::as_u128)))
        .or_else(|| numbered("note", word.parse().ok().map(NoteId::as_u128)))
        .or_else(|| numbered("run", word.parse().ok().map(RunId::as_u128)))
        .or_else(|| numbered("gate", word.parse().ok().map(GateId::as_u128)))
        .or_else(|| numbered("worker", word.parse().ok().map(WorkerId::as_u128)))
        .or_else(|| numbered("cmt", word.parse().ok().map(CommentId::as_u128)))
}

pub(super) fn session_id(number: u128) -> SessionId {
    SessionId::from_u128(number)
}

pub(super) fn turn_id(number: u128) -> TurnId {
    TurnId::from_u128(number)
}

pub(super) fn note_id(number: u128) -> NoteId {
    NoteId::from_u128(number)
}

/// A connection of `ann`'s.
pub(super) fn pen(connection: u128) -> Pen {
    Pen { connection: ConnectionId::from_u128(connection), client: Some("cli".into()), actor: ann() }
}

pub(super) fn claim(connection: u128) -> Input {
    WriterCommand::Claim { pen: pen(connection), take: false, holder_gone: false }.into()
}

pub(super) fn take_over(connection: u128) -> Input {
    WriterCommand::Claim { pen: pen(connection), take: true, holder_gone: false }.into()
}

pub(super) fn release(connection: u128, epoch: u64) -> Input {
    WriterCommand::Release { pen: pen(connection), epoch }.into()
}

impl From<WriterCommand> for Input {
    fn from(command: WriterCommand) -> Self {
        Self::Command(Command::Writer(command))
    }
}

pub(super) fn ann() -> Actor {
    Actor::operator("ann")
}

// Events, for the past of a session.

pub(super) fn started(turn: u128) -> Event {
    TurnEvent::Started {
        turn: turn_id(turn),
        client_turn_id: None,
        prompt: "go".into(),
        parts: Vec::new(),
        prompt_hash: content_hash(b"go"),
        opening: Opening::New,
        anchors: Vec::new(),
        governance: false,
        delivery: Delivery::Reject,
        queued: false,
        by: None,
        memory: None,
        choice: AgentChoice::default(),
        forced: false,
    }
    .into()
}

pub(super) fn finished(turn: u128) -> Event {
    TurnEvent::Finished { turn: turn_id(turn), outcome: TurnOutcome::Completed, reason: None, review: true }
        .into()
}

pub(super) fn interrupted(turn: u128, cause: InterruptCause) -> Event {
    TurnEvent::Interrupted {
        turn: turn_id(turn),
        cause,
        reason: None,
        uncertain: false,
        receipt: crate::session::run::Receipt::default(),
        review: cause != InterruptCause::User,
    }
    .into()
}

pub(super) fn cancel_asked(turn: u128) -> Event {
    TurnEvent::CancelRequested { turn: turn_id(turn), reason: None, forced: false }.into()
}

pub(super) fn compacted(size_before: u64, size_after: u64) -> Event {
    let (anchors_survived, anchors_lost) = (Vec::new(), Vec::new());
    ContextEvent::Compacted { size_before, size_after, anchors_survived, anchors_lost, nth: 1, checkpoint: 1 }
        .into()
}

pub(super) fn stop_at(level: StopLevel) -> Event {
    ControlEvent::StopRequested { level, scope: StopScope::Session, reason: None, inherited: None }.into()
}

pub(super) fn noted(note: u128) -> Event {
    let (note, kind, text) = (note_id(note), NoteKind::Guidance, "mind the gap".into());
    ControlEvent::GuidanceQueued { note, kind, text, warnings: Vec::new(), about: None }.into()
}

pub(super) fn archived() -> Event {
    ChangeEvent::Archived {}.into()
}

pub(super) fn deleted() -> Event {
    ChangeEvent::Deleted { reason: None }.into()
}

pub(super) fn ended(how: Ending) -> Event {
    ChangeEvent::Ended { how, reason: None }.into()
}

// Inputs.

pub(super) fn start_turn(turn: u128) -> Input {
    Command::StartTurn { turn: turn_id(turn), client_turn_id: None, prompt: "go".into() }.into()
}

/// A message of this delivery whose words are `go TURN`; steered, it goes by the note of the same number.
pub(super) fn send(turn: u128, delivery: Delivery) -> Input {
    let message = Message {
        turn: turn_id(turn),
        note: note_id(turn),
        client_turn_id: None,
        prompt: format!("go {turn}"),
        parts: Vec::new(),
        delivery,
        memory: None,
        choice: AgentChoice::default(),
        forced: false,
        take_over: false,
        review: None,
    };
    inbox(InboxChange::Send(Box::new(message)))
}

pub(super) fn inbox(change: InboxChange) -> Input {
    Command::Inbox(change.into()).into()
}

pub(super) fn withdraw_turn(turn: u128) -> Input {
    inbox(InboxChange::Withdraw { turn: turn_id(turn), reason: None })
}

pub(super) fn promote(turn: u128, to: Promotion) -> Input {
    inbox(InboxChange::Promote { turn: turn_id(turn), to, note: note_id(100 + turn) })
}

pub(super) fn order(turns: &[u128]) -> Input {
    inbox(InboxChange::Order { turns: turns.iter().copied().map(turn_id).collect() })
}

pub(super) fn edit(turn: u128, prompt: Option<&str>, delivery: Option<Delivery>) -> Input {
    let (prompt, note) = (prompt.map(str::to_owned), note_id(200 + turn));
    inbox(InboxChange::Edit { turn: turn_id(turn), prompt, delivery, note })
}

pub(super) fn turn_delivered(turn: u128) -> Input {
    Signal::TurnDelivered { turn: turn_id(turn) }.into()
}

pub(super) fn cancel_turn() -> Input {
    Command::CancelTurn { reason: None }.into()
}

pub(super) fn complete() -> Input {
    Command::Complete { reason: None }.into()
}

pub(super) fn fail() -> Input {
    Command::Fail { reason: None }.into()
}

pub(super) fn stop() -> Input {
    Command::Stop { reason: None, scope: StopScope::Session, now: false }.into()
}

pub(super) fn withdraw_stop() -> Input {
    Command::WithdrawStop { reason: None }.into()
}

pub(super) fn guide(note: u128, text: &str) -> Input {
    Command::Guide { note: note_id(note), text: text.into() }.into()
}

pub(super) fn withdraw_guidance(note: u128) -> Input {
    Command::WithdrawGuidance { note: note_id(note) }.into()
}

pub(super) fn migrate_to_agent(agent: &str) -> Input {
    Command::Migrate {
        agent: Some(agent.into()),
        worker: None,
        owner: None,
        reason: "better at it".into(),
        continuity: None,
    }
    .into()
}

pub(super) fn migrate_to_owner(owner: &str) -> Input {
    Command::Migrate {
        agent: None,
        worker: None,
        owner: Some(owner.into()),
        reason: "end of shift".into(),
        continuity: None,
    }
    .into()
}

pub(super) fn add_alias(alias: &str) -> Input {
    Command::AddAlias { alias: alias.into() }.into()
}

pub(super) fn set_memory(mode: MemoryMode) -> Input {
    let ask = MemoryAsk { mode: Some(mode), ..MemoryAsk::default() };
    Command::SetMemory { ask, above: None }.into()
}

pub(super) fn choose(model: &str) -> Input {
    let choice = AgentChoice { model: Some(model.into()), ..AgentChoice::default() };
    Command::Choose { choice }.into()
}

pub(super) fn rename(title: &str) -> Input {
    Command::Rename { title: title.into() }.into()
}

pub(super) fn set_anchors(anchors: &[&str]) -> Input {
    Command::SetAnchors { anchors: texts(anchors) }.into()
}

pub(super) fn checkpoint() -> Input {
    Command::Checkpoint.into()
}

pub(super) fn calls_in_flight(calls: u32) -> Input {
    Signal::CallsInFlight { calls }.into()
}

pub(super) fn see(by: Actor, seq: u64) -> Input {
    Command::See { by, seq }.into()
}

pub(super) fn archive() -> Input {
    Command::Archive.into()
}

pub(super) fn unarchive() -> Input {
    Command::Unarchive.into()
}

pub(super) fn reset() -> Input {
    Command::Reset { reason: None }.into()
}

pub(super) fn delete(children: u64) -> Input {
    Command::Delete { reason: None, children }.into()
}

pub(super) fn said(text: &str) -> Input {
    Signal::Said { role: Role::Agent, text: text.into(), message_id: None, parts: Vec::new() }.into()
}

pub(super) fn tool_called(call: &str, tool: &str) -> Input {
    Signal::ToolCalled { call: call.into(), tool: tool.into(), arguments: Value::Null }.into()
}

pub(super) fn tool_returned(call: &str) -> Input {
    Signal::ToolReturned { call: call.into(), is_error: false, content: Value::Null }.into()
}

pub(super) fn usage(input_tokens: u64, output_tokens: u64, context_tokens: Option<u64>) -> Input {
    Signal::UsageReported { input_tokens, output_tokens, context_tokens, cost_micros: 0 }.into()
}

pub(super) fn turn_finished() -> Input {
    Signal::TurnFinished { turn: None, outcome: TurnOutcome::Completed, reason: None }.into()
}

pub(super) fn turn_finished_as(turn: u128, outcome: TurnOutcome) -> Input {
    Signal::TurnFinished { turn: Some(turn_id(turn)), outcome, reason: None }.into()
}

pub(super) fn turn_lost(cause: InterruptCause) -> Input {
    Signal::TurnLost { cause, reason: None, receipt: crate::session::run::Receipt::default() }.into()
}

pub(super) fn context_compacted(size_before: u64, size_after: u64, survived: &[&str]) -> Input {
    Signal::ContextCompacted { size_before, size_after, anchors_survived: texts(survived) }.into()
}

pub(super) fn issue_seen(hash: &str, score: Option<f64>) -> Input {
    Signal::IssueSeen { hash: hash.into(), score }.into()
}

pub(super) fn error_seen(hash: &str) -> Input {
    Signal::ErrorSeen { hash: hash.into(), text: None }.into()
}

pub(super) fn guidance_delivered(notes: &[u128]) -> Input {
    let notes = notes.iter().copied().map(note_id).collect();
    Signal::GuidanceDelivered { notes, channel: "steer".into() }.into()
}

pub(super) fn work_ended() -> Input {
    Signal::WorkEnded { channel: "sigterm".into() }.into()
}

pub(super) fn daemon_restarted() -> Input {
    Signal::DaemonRestarted.into()
}

pub(super) fn quiet(for_ms: u64) -> Input {
    Signal::Quiet { for_ms }.into()
}

pub(super) fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// Sorts the keys of all objects. `serde_json` can do so only where it keeps another order.
pub(super) fn sort(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(sort),
        Value::Object(fields) => {
            let mut sorted: Vec<(String, Value)> = std::mem::take(fields).into_iter().collect();
            sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
            for (name, mut field) in sorted {
                sort(&mut field);
                fields.insert(name, field);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
