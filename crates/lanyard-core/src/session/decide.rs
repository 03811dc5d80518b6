//! Commands become events, or are refused. Pure: the same session, command and rules always give the same answer.

use crate::actor::Actor;
use crate::id::{GateId, NoteId, SessionId, TurnId, WorkerId};
use crate::memory::{self, MemoryAsk, MemoryPolicy};
use crate::policy::{Limits, Rules};
use crate::session::choice::AgentChoice;
use crate::session::command::Command;
use crate::session::decide_inbox::{
    SESSION_DELETED, SESSION_ENDED, decide_inbox, steered_by, withdraw, withdraw_all,
};
use crate::session::driven::{DrivenBy, takes_over};
use crate::session::event::{
    ChangeEvent, CheckpointReason, ContextEvent, ControlEvent, Ending, Event, Hands, Opening, Settled,
    TurnEvent, TurnOutcome,
};
use crate::session::gate::{GateEvent, GateKind, GateStatus};
use crate::session::guidance::{self, Note, NoteKind, NoteStatus};
use crate::session::inbox::Delivery;
use crate::session::limit;
use crate::session::operator::{self, calls_for_review};
use crate::session::part::{PromptPart, message_hash};
use crate::session::record::{ActiveTurn, IMPORTED, Session};
use crate::session::refusal::Refusal;
use crate::session::run::{Continuity, ResumeWay, RunEvent};
use crate::session::sayable::sayable;
use crate::session::state::State;
use crate::session::stop::{StopLevel, StopScope};
use crate::session::{review, writer};
use crate::text::{BODY_BYTES_MAX, NAME_CHARS_MAX, cut};
use crate::time::Timestamp;

/// A message: the client's name for it, its text, and what is attached.
pub(super) type TurnWords<'a> = (Option<&'a str>, &'a str, &'a [PromptPart]);

/// Aliases one session may have.
pub(super) const ALIASES_MAX: usize = 16;
/// Anchors one session may have.
pub(super) const ANCHORS_MAX: usize = 64;

/// The events of a command, or its refusal. No events means that there was nothing to change.
pub fn decide(
    session: &Session,
    command: &Command,
    now: Timestamp,
    rules: &Rules,
) -> Result<Vec<Event>, Refusal> {
    exists(session)?;
    match command {
        Command::StartTurn { turn, client_turn_id, prompt } => {
            log_has_room(session, &rules.limits)?;
            alive(session)?;
            takes_turns(session)?;
            takes_over(session, false)?;
            let words = (client_turn_id.as_deref(), prompt.as_str(), [].as_slice());
            let open = (Delivery::Reject, None, &AgentChoice::default(), false);
            start_turn(session, *turn, words, open, now)
        }
        Command::CancelTurn { reason } => cancel_turn(session, reason.as_deref()),
        Command::Inbox(command) => decide_inbox(session, command, now, rules),
        Command::Complete { reason } => end(session, Ending::Completed, reason.as_deref()),
        Command::Fail { reason } => end(session, Ending::Failed, reason.as_deref()),
        Command::Stop { reason, scope, now } => stop(session, reason.as_deref(), *scope, *now),
        Command::WithdrawStop { reason } => withdraw_stop(session, reason.as_deref()),
        Command::Guide { note, text } => guide(session, *note, text, &rules.limits),
        Command::Notify { note, kind, about, text } => notify(session, *note, *kind, *about, text),
        Command::WithdrawGuidance { note } => withdraw_guidance(session, *note),
        Command::AnswerGate { gate, option, message } => answer(session, *gate, option, message.as_deref()),
        Command::Resume { ways, per_turn } => resume(session, ways, *per_turn),
        Command::Migrate { agent, worker, owner, reason, continuity } => {
            let to = (agent.as_deref(), *worker, owner.as_deref());
            migrate(session, to, reason, *continuity)
        }
        Command::AddAlias { alias } => add_alias(session, alias),
        Command::Rename { title } => rename(session, title),
        Command::SetAnchors { anchors } => set_anchors(session, anchors),
        Command::SetMemory { ask, above } => set_memory(session, ask, above.as_deref()),
        Command::Choose { choice } => choose(session, choice),
        Command::Checkpoint => {
            alive(session)?;
            Ok(vec![checkpoint(session, CheckpointReason::Asked)])
        }
        Command::See { by, seq } => operator::see(session, by, *seq),
        Command::Writer(command) => writer::decide(session, command, now, rules),
        Command::Review(command) => review::decide(session, command, &rules.limits),
        Command::Archive => archive(session),
        Command::Unarchive if session.archived => Ok(vec![ChangeEvent::Unarchived {}.into()]),
        Command::Unarchive => Err(Refusal::NotArchived),
        Command::Reset { reason } => {
            alive(session)?;
            at_rest(session)?;
            // Starting over must not be a way around a stop that can no longer be withdrawn.
            unhindered(session)?;
            optional_name("reason", reason.as_deref())?;
            Ok(vec![ChangeEvent::Reset { reason: reason.clone() }.into()])
        }
        Command::Delete { reason, children } => delete(session, reason.as_deref(), *children),
    }
}

/// Refuses messages to a program on a terminal: it is typed into.
pub(super) const fn takes_turns(session: &Session) -> Result<(), Refusal> {
    match session.terminal {
        Some(_) => Err(Refusal::TerminalTurns),
        None => Ok(()),
    }
}

pub(super) fn start_turn(
    session: &Session,
    turn: TurnId,
    (client_turn_id, prompt, parts): TurnWords<'_>,
    (delivery, memory, choice, forced): (Delivery, Option<&MemoryAsk>, &AgentChoice, bool),
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    alive(session)?;
    at_rest(session)?;
    if session.archived {
        return Err(Refusal::Archived);
    }
    unhindered(session)?;
    sayable(prompt, parts)?;
    optional_name("client_turn_id", client_turn_id)?;
    // A message that waits is started from the inbox, never beside it.
    if session.waiting(turn).is_some() {
        return Ok(Vec::new());
    }
    let opening = resting_opening(session, now);
    let memory = turn_memory(session, memory)?;
    Ok(vec![begin(
        session,
        turn,
        (client_turn_id, prompt, parts),
        opening,
        (delivery, None),
        (memory, choice, forced),
    )])
}

/// Refuses work for a session whose log is full. Its content is kept, and the session can be read, forked, ended and
/// deleted.
pub(super) fn log_has_room(session: &Session, limits: &Limits) -> Result<(), Refusal> {
    let Limits { log_events, log_bytes, .. } = *limits;
    let reached = [(session.seq, log_events, "events"), (session.log_bytes, log_bytes, "bytes")];
    match reached.into_iter().find(|(held, max, _)| *max > 0 && held >= max) {
        Some((_, max, unit)) => Err(Refusal::LogFull { max, unit }),
        None => Ok(()),
    }
}

/// The way in which a turn opens the conversation of a session at rest.
pub(super) fn resting_opening(session: &Session, now: Timestamp) -> Opening {
    match session.state {
        State::Stale => Opening::Returned { after_ms: now.millis_since(session.last_activity_at) },
        State::Beginning | State::Custom => Opening::New,
        // Lanyard has told the agent nothing yet: its own host gave it its turns.
        _ if session.turns == 0 && (session.driver() == DrivenBy::Host || session.source == IMPORTED) => {
            Opening::New
        }
        State::BetweenTurn
        | State::Compacted
        | State::Interrupted { .. }
        | State::Idle
        | State::Executing
        | State::Completed
        | State::Failed
        | State::Stopped => Opening::Continued,
    }
}

/// The event a turn begins with. `by` is who sent it, where it waited in the inbox.
pub(super) fn begin(
    session: &Session,
    turn: TurnId,
    (client_turn_id, prompt, parts): TurnWords<'_>,
    opening: Opening,
    (delivery, by): (Delivery, Option<Actor>),
    (memory, choice, forced): (MemoryPolicy, &AgentChoice, bool),
) -> Event {
    // A conversation that opens, anew or after days, needs all anchors; one that goes on needs those that a
    // compaction lost.
    let anchors = match opening {
        Opening::New | Opening::Returned { .. } => session.anchors.clone(),
        Opening::Continued => session.anchors_due.clone(),
    };
    // A conversation that opens is told them in any case.
    let governance = opening != Opening::New && !session.governance.injected;
    TurnEvent::Started {
        turn,
        client_turn_id: client_turn_id.map(str::to_owned),
        prompt: prompt.to_owned(),
        parts: parts.to_vec(),
        prompt_hash: message_hash(prompt, parts),
        opening,
        anchors,
        governance,
        delivery,
        queued: by.is_some(),
        by,
        memory: Some(memory),
        choice: choice.clone(),
        forced,
    }
    .into()
}

/// The memory policy of a turn: the session's, or the narrower one that was requested.
pub(super) fn turn_memory(session: &Session, ask: Option<&MemoryAsk>) -> Result<MemoryPolicy, Refusal> {
    let held = &session.policy.memory;
    Ok(ask.map_or_else(|| Ok(held.clone()), |ask| ask.within(held))?)
}

fn cancel_turn(session: &Session, reason: Option<&str>) -> Result<Vec<Event>, Refusal> {
    alive(session)?;
    optional_name("reason", reason)?;
    let turn = session.turn.as_ref().ok_or(Refusal::NoTurn)?;
    let reason = reason.map(str::to_owned);
    Ok(vec![TurnEvent::CancelRequested { turn: turn.id, reason, forced: turn.cancel_requested }.into()])
}

fn end(session: &Session, how: Ending, reason: Option<&str>) -> Result<Vec<Event>, Refusal> {
    alive(session)?;
    optional_name("reason", reason)?;
    let mut events = Vec::new();
    if let Some(turn) = &session.turn {
        let outcome = if how == Ending::Completed { TurnOutcome::Completed } else { TurnOutcome::Failed };
        let review = how == Ending::Failed && calls_for_review(session, turn, None);
        events.push(TurnEvent::Finished { turn: turn.id, outcome, reason: None, review }.into());
        events.push(checkpoint(session, CheckpointReason::TurnEnd));
    }
    events.extend(void_all_gates(session, "the session ended"));
    events.extend(withdraw_all(session, SESSION_ENDED));
    events.extend(undelivered(session));
    // Completing is compliance: it resolves a stop that is pending.
    events.push(ChangeEvent::Ended { how, reason: reason.map(str::to_owned) }.into());
    Ok(events)
}

/// The first press asks, each further one raises; it may reach further than the one before, never less far.
fn stop(session: &Session, reason: Option<&str>, scope: StopScope, now: bool) -> Result<Vec<Event>, Refusal> {
    alive(session)?;
    optional_name("reason", reason)?;
    if scope == StopScope::Turn && session.turn.is_none() {
        return Err(Refusal::NoTurn);
    }
    let reason = reason.map(str::to_owned);
    Ok(match &session.stop {
        None => {
            let level = if now { StopLevel::Immediate } else { StopLevel::Graceful };
            vec![ControlEvent::StopRequested { level, scope, reason, inherited: None }.into()]
        }
        Some(stop) if stop.level == StopLevel::Terminated => Vec::new(),
        Some(stop) => {
            let (from, to) = (stop.level, stop.level.raised());
            let scope = Some(scope).filter(|scope| *scope > stop.scope);
            vec![ControlEvent::StopRaised { from, to, scope, reason }.into()]
        }
    })
}

fn withdraw_stop(session: &Session, reason: Option<&str>) -> Result<Vec<Event>, Refusal> {
    alive(session)?;
    optional_name("reason", reason)?;
    match &session.stop {
        None => Err(Refusal::NoStop),
        Some(stop) if stop.level == StopLevel::Terminated => Err(Refusal::StopFinal),
        Some(_) => Ok(vec![ControlEvent::StopWithdrawn { reason: reason.map(str::to_owned) }.into()]),
    }
}

fn guide(session: &Session, note: NoteId, text: &str, limits: &Limits) -> Result<Vec<Event>, Refusal> {
    alive(session)?;
    body("text", text)?;
    if session.guidance.len() >= limits.guidance_pending {
        return Err(Refusal::GuidanceFull { max: limits.guidance_pending });
    }
    let (text, warnings) = guidance::admit(text, limits)?;
    let kind = NoteKind::Guidance;
    Ok(vec![ControlEvent::GuidanceQueued { note, kind, text, warnings, about: None }.into()])
}

/// Lanyard's own words have their bounds where they are made, and find a place beside people's.
/// Told twice, it is there once.
fn notify(
    session: &Session,
    note: NoteId,
    kind: NoteKind,
    about: Option<SessionId>,
    text: &str,
) -> Result<Vec<Event>, Refusal> {
    alive(session)?;
    body("text", text)?;
    if session.guidance.iter().chain(&session.guidance_settled).any(|held| held.id == note) {
        return Ok(Vec::new());
    }
    let text = text.to_owned();
    Ok(vec![ControlEvent::GuidanceQueued { note, kind, text, warnings: Vec::new(), about }.into()])
}

fn withdraw_guidance(session: &Session, note: NoteId) -> Result<Vec<Event>, Refusal> {
    let pending = session.guidance.iter().any(|held| held.id == note && held.status == NoteStatus::Pending);
    if !pending {
        return Err(Refusal::NoSuchGuidance { note });
    }
    // Words that would become a turn of their own are that message itself.
    if let Some(waiting) = steered_by(session, note) {
        return Ok(withdraw(session, waiting, None));
    }
    Ok(vec![ControlEvent::GuidanceSettled { notes: vec![note], how: Settled::Withdrawn }.into()])
}

/// The first answer wins; the same one again changes nothing.
fn answer(session: &Session, id: GateId, word: &str, message: Option<&str>) -> Result<Vec<Event>, Refusal> {
    if let Some(message) = message {
        body("message", message)?;
        // It stays in the record with its gate.
        if cut(message, NAME_CHARS_MAX).1 {
            return Err(Refusal::TooLong { field: "message", max: NAME_CHARS_MAX, unit: "characters" });
        }
    }
    let gate = session.gates.iter().find(|gate| gate.id == id).ok_or(Refusal::NoSuchGate { gate: id })?;
    let option = gate.question.choose(word).ok_or_else(|| {
        let known = gate.question.options.iter().map(|option| option.id.clone()).collect();
        Refusal::NoSuchOption { option: cut(word, NAME_CHARS_MAX).0.to_owned(), known }
    })?;
    match &gate.status {
        GateStatus::Open => {
            let (option, message) = (option.id.clone(), message.map(str::to_owned));
            Ok(vec![GateEvent::Answered { gate: id, option, message }.into()])
        }
        GateStatus::Answered { option: first, .. } if *first == option.id => Ok(Vec::new()),
        GateStatus::Answered { option: first, .. } => {
            Err(Refusal::GateAnswered { gate: id, option: first.clone() })
        }
        GateStatus::Withdrawn { why, .. } => Err(Refusal::GateVoid { gate: id, why: why.clone() }),
    }
}

fn resume(session: &Session, ways: &[ResumeWay], per_turn: bool) -> Result<Vec<Event>, Refusal> {
    let stopped = session.state == State::Stopped;
    if !stopped {
        alive(session)?;
    }
    // A turn that waits for a limit goes on now.
    if let Some(on) = limit::go_on_now(session) {
        unhindered(session)?;
        return Ok(vec![on]);
    }
    at_rest(session)?;
    if session.archived {
        return Err(Refusal::Archived);
    }
    if !stopped {
        unhindered(session)?;
    }
    if session.live_run().is_some() {
        return Ok(Vec::new());
    }
    // Asking for the agent is asking for one that Lanyard runs. A subagent that was stopped has no process to return to.
    let has_agent = session.hands.agent.is_some();
    let adopts = match session.driver() {
        DrivenBy::Nobody => has_agent,
        DrivenBy::Parent => stopped,
        DrivenBy::Lanyard | DrivenBy::Host => false,
    };
    let taken = takes_over(session, true)? || adopts;
    let mut events = Vec::new();
    if stopped {
        events.extend(undelivered(session));
        events.push(ChangeEvent::Resumed { notify: session.parent.is_some() }.into());
    }
    if taken {
        events.push(ChangeEvent::Driven { by: DrivenBy::Lanyard }.into());
    }
    // Without an agent, a stopped session waits for the client that reports its turns.
    let unmanned = stopped && session.driver() == DrivenBy::Nobody && !has_agent;
    if !per_turn && !unmanned {
        events.push(RunEvent::Wanted { ways: ways.to_vec() }.into());
    }
    Ok(events)
}

fn migrate(
    session: &Session,
    (agent, worker, owner): (Option<&str>, Option<WorkerId>, Option<&str>),
    reason: &str,
    continuity: Option<Continuity>,
) -> Result<Vec<Event>, Refusal> {
    alive(session)?;
    if agent.is_none() && worker.is_none() && owner.is_none() {
        return Err(Refusal::NothingToMigrate);
    }
    optional_name("agent", agent)?;
    optional_name("owner", owner)?;
    name("reason", reason)?;
    // A new owner can take over in mid-turn; the hands that do the work cannot change under it.
    if agent.is_some() || worker.is_some() {
        at_rest(session)?;
    }
    let from = session.hands.clone();
    let to = Hands {
        agent: agent.map(str::to_owned).or_else(|| from.agent.clone()),
        worker: worker.or(from.worker),
        owner: owner.map_or_else(|| from.owner.clone(), str::to_owned),
    };
    let continuity = continuity.filter(|_| from.agent != to.agent);
    Ok(vec![ChangeEvent::Migrated { from, to, reason: reason.to_owned(), continuity }.into()])
}

fn add_alias(session: &Session, alias: &str) -> Result<Vec<Event>, Refusal> {
    name("alias", alias)?;
    if session.aliases.iter().any(|held| held == alias) {
        return Ok(Vec::new());
    }
    if session.aliases.len() >= ALIASES_MAX {
        return Err(Refusal::TooMany { field: "aliases", max: ALIASES_MAX });
    }
    Ok(vec![ChangeEvent::AliasAdded { alias: alias.to_owned() }.into()])
}

/// Also after its end: people read it then, too.
fn rename(session: &Session, title: &str) -> Result<Vec<Event>, Refusal> {
    name("title", title)?;
    if session.title.as_deref() == Some(title) {
        return Ok(Vec::new());
    }
    Ok(vec![ChangeEvent::Renamed { title: title.to_owned() }.into()])
}

fn set_anchors(session: &Session, anchors: &[String]) -> Result<Vec<Event>, Refusal> {
    alive(session)?;
    names("anchors", anchors, ANCHORS_MAX)?;
    if session.anchors == anchors {
        return Ok(Vec::new());
    }
    Ok(vec![ContextEvent::AnchorsSet { anchors: anchors.to_vec() }.into()])
}

fn set_memory(
    session: &Session,
    ask: &MemoryAsk,
    above: Option<&MemoryPolicy>,
) -> Result<Vec<Event>, Refusal> {
    let held = &session.policy.memory;
    let mut wanted = ask.onto(held)?;
    if let Some(above) = above {
        // Tags from above are on everything below; leaving them out of the list does not take them off.
        wanted.tags.extend(above.tags.iter().cloned());
        if wanted.is_wider_than(above) {
            return Err(memory::MemoryRefusal::Wider { of: "that of a session above" }.into());
        }
    }
    if wanted == *held {
        return Ok(Vec::new());
    }
    Ok(vec![ChangeEvent::MemorySet { policy: wanted }.into()])
}

/// The session's own choice. The agent has the last word on it; who may choose what was judged before.
fn choose(session: &Session, choice: &AgentChoice) -> Result<Vec<Event>, Refusal> {
    alive(session)?;
    if session.choice == *choice {
        return Ok(Vec::new());
    }
    Ok(vec![ChangeEvent::ChoiceSet { choice: choice.clone() }.into()])
}

fn archive(session: &Session) -> Result<Vec<Event>, Refusal> {
    at_rest(session)?;
    if session.archived {
        return Ok(Vec::new());
    }
    Ok(vec![ChangeEvent::Archived {}.into()])
}

fn delete(session: &Session, reason: Option<&str>, children: u64) -> Result<Vec<Event>, Refusal> {
    at_rest(session)?;
    optional_name("reason", reason)?;
    if children > 0 {
        return Err(Refusal::HasChildren { children });
    }
    let mut events = withdraw_all(session, SESSION_DELETED);
    events.push(ChangeEvent::Deleted { reason: reason.map(str::to_owned) }.into());
    Ok(events)
}

/// Words that wait will reach nobody: the session ends, and what it may become after a resume is another run's. Words
/// that are a message of the inbox are settled with it.
pub(super) fn undelivered(session: &Session) -> Option<Event> {
    let waits = |note: &&Note| note.status == NoteStatus::Pending && steered_by(session, note.id).is_none();
    let notes: Vec<NoteId> = session.guidance.iter().filter(waits).map(|note| note.id).collect();
    (!notes.is_empty()).then(|| ControlEvent::GuidanceSettled { notes, how: Settled::Undelivered }.into())
}

/// A checkpoint that names the last position written so far.
pub(super) fn checkpoint(session: &Session, reason: CheckpointReason) -> Event {
    ContextEvent::Checkpoint { position: session.seq, reason }.into()
}

/// The agent waits for no answer any more.
pub(super) fn void_gates(session: &Session, why: &str) -> impl Iterator<Item = Event> {
    let asked = session.open_gates().filter(|gate| gate.question.kind == GateKind::Permission);
    asked.map(move |gate| GateEvent::Withdrawn { gate: gate.id, why: why.to_owned() }.into())
}

/// Lanyard itself asks nothing about it any more.
pub(super) fn void_escalations(session: &Session, why: &str) -> impl Iterator<Item = Event> {
    let asked = session.open_gates().filter(|gate| gate.question.kind == GateKind::Escalation);
    asked.map(move |gate| GateEvent::Withdrawn { gate: gate.id, why: why.to_owned() }.into())
}

/// Withdraws every open gate.
fn void_all_gates(session: &Session, why: &str) -> impl Iterator<Item = Event> {
    session.open_gates().map(move |gate| GateEvent::Withdrawn { gate: gate.id, why: why.to_owned() }.into())
}

pub(super) fn exists(session: &Session) -> Result<(), Refusal> {
    if session.deleted { Err(Refusal::Deleted) } else { Ok(()) }
}

pub(super) fn alive(session: &Session) -> Result<(), Refusal> {
    if session.state.is_ended() {
        return Err(Refusal::Ended { session: session.id, state: session.state.name() });
    }
    Ok(())
}

pub(super) fn at_rest(session: &Session) -> Result<(), Refusal> {
    match &session.turn {
        Some(ActiveTurn { id, .. }) => Err(Refusal::Busy { turn: *id }),
        None => Ok(()),
    }
}

pub(super) fn unhindered(session: &Session) -> Result<(), Refusal> {
    if session.stop.is_some() { Err(Refusal::Stopping) } else { Ok(()) }
}

/// Name-like text: not empty, bounded, one line.
pub(super) fn name(field: &'static str, text: &str) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::Empty { field });
    }
    if text.chars().count() > NAME_CHARS_MAX {
        return Err(Refusal::TooLong { field, max: NAME_CHARS_MAX, unit: "characters" });
    }
    if text.chars().any(char::is_control) {
        return Err(Refusal::BadText { field });
    }
    Ok(())
}

pub(super) fn optional_name(field: &'static str, text: Option<&str>) -> Result<(), Refusal> {
    text.map_or(Ok(()), |text| name(field, text))
}

pub(super) fn names(field: &'static str, texts: &[String], max: usize) -> Result<(), Refusal> {
    if texts.len() > max {
        return Err(Refusal::TooMany { field, max });
    }
    texts.iter().try_for_each(|text| name(field, text))
}

pub(super) fn body(field: &'static str, text: &str) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::Empty { field });
    }
    if text.len() > BODY_BYTES_MAX {
        return Err(Refusal::TooLong { field, max: BODY_BYTES_MAX, unit: "bytes" });
    }
    Ok(())
}
