//! A child that ended under a stop is told of: to its parent if that lives, else to the nearest ancestor that does. The
//! daemon says what the child left behind, because a dead model cannot. A child that was resumed
//! after a stop is told of in the same way: its parent may have given its work to another.

use std::sync::Arc;

use lanyard_core::session::{
    Command, Envelope, Event, Lineage, MessageBreaks, NoteKind, Role, Session, Signal, TranscriptEvent,
    TurnEvent,
};
use lanyard_core::text::cut;
use lanyard_core::{Actor, Cause, NoteId, SessionId};
use lanyard_store::{Store, StoreError};
use tokio::runtime::Handle;

use lanyard_base::clock::Clock;
use lanyard_base::failpoint;
use lanyard_engine::engine::{Ask, AskError, Engine, Key, ParentNotice, Request};

/// Events of the child's log that are looked at for what it left.
const TAIL: u32 = 400;
/// Characters of its last words.
const WORDS_CHARS: usize = 400;
/// Files that are named.
const FILES_MAX: usize = 12;

/// Sends notices in tasks of this runtime: what a child left is read from its log.
pub(crate) fn sender(store: &Arc<dyn Store>, clock: &Arc<Clock>, runtime: &Handle) -> ParentNotice {
    let (store, clock, runtime) = (store.clone(), clock.clone(), runtime.clone());
    Box::new(move |engine, child| {
        let (engine, store, clock) = (engine.clone(), store.clone(), clock.clone());
        runtime.spawn(async move { send(&engine, &store, &clock, child).await });
    })
}

/// Tells of the child's end or of its resume, once; what happens twice after a crash has the same key.
pub(crate) async fn send(engine: &Engine, store: &Arc<dyn Store>, clock: &Clock, child: SessionId) {
    let read = store.clone();
    let known = tokio::task::spawn_blocking(move || look(&*read, child)).await;
    let (session, lineage, text) = match known {
        Ok(Ok(Some(known))) => known,
        Ok(Ok(None)) => return,
        Ok(Err(error)) => return tracing::error!(%child, %error, "what a child left could not be read"),
        Err(error) => return tracing::error!(%child, %error, "what a child left could not be read"),
    };
    failpoint::hit("before_notice");
    let note = NoteId::mint(clock.now(), clock.random());
    let mut told = None;
    // A resume interrupts nobody: it has not the heading of an interruption.
    let kind = if session.state.is_ended() { NoteKind::Notice } else { NoteKind::Guidance };
    for ancestor in lineage.ancestors {
        let command = Command::Notify { note, kind, about: Some(session.id), text: text.clone() };
        let cause = Some(Cause::Signal(command.name().to_owned()));
        let ask = Ask::Do { session: ancestor, command };
        // A session that was resumed may be stopped again, which is told again.
        let end = session.since.as_millis();
        let keys = vec![Key::once(&format!("notice\0{child}\0{ancestor}\0{end}"))];
        match engine.ask(Request { ask, actor: Actor::system("families"), cause, keys }).await {
            Ok(reply) => {
                told = Some((ancestor, reply.outcome.note.unwrap_or(note)));
                break;
            }
            // It has ended, or is gone: further up.
            Err(AskError::Refused(_) | AskError::Unknown(_) | AskError::Deleted(_)) => {}
            Err(error) => {
                // Still due: told again at the next start.
                return tracing::error!(%child, %ancestor, %error, "what became of a child could not be told");
            }
        }
    }
    let (to, note) = told.map_or((None, None), |(to, note)| (Some(to), Some(note)));
    let signal = Signal::NoticeSent { to, note, since: Some(session.since) };
    let cause = Some(Cause::Signal(signal.name().to_owned()));
    let ask = Ask::Tell { session: child, signals: vec![signal] };
    let request = Request { ask, actor: Actor::system("families"), cause, keys: Vec::new() };
    if let Err(error) = engine.ask(request).await {
        tracing::error!(%child, %error, "it could not be recorded that a parent was told of its child");
    }
}

type Known = (Session, Lineage, String);

fn look(store: &dyn Store, child: SessionId) -> Result<Option<Known>, StoreError> {
    let Some(loaded) = store.load(child)? else { return Ok(None) };
    if !loaded.session.notice_due {
        return Ok(None);
    }
    let text = if loaded.session.state.is_ended() {
        words(&loaded.session, &Left::of(store, &loaded.session)?)
    } else {
        resumed_words(&loaded.session)
    };
    Ok(Some((loaded.session, loaded.lineage, text)))
}

/// Who it was, how it ended, what it left, and what to do about it.
fn words(child: &Session, left: &Left) -> String {
    let agent = child.hands.agent.as_deref().unwrap_or("an agent");
    let mut lines = vec![format!("{agent} (session {}) was stopped by the user.", child.id)];
    if let Some(reason) = child.stop.as_ref().and_then(|stop| stop.reason.as_deref()) {
        lines.push(format!("Reason: {reason}"));
    }
    lines.push(left.words());
    lines.retain(|line| !line.is_empty());
    if let Some(checkpoint) = child.checkpoints.back() {
        lines.push(format!("Last checkpoint: position {} of its log", checkpoint.position));
    }
    lines.push(
        "Check the plan's state and decide whether to try again. This does not stop you; it is for your information."
            .to_owned(),
    );
    lines.join("\n")
}

/// The sessions that continue, and what that means for the parent.
fn resumed_words(child: &Session) -> String {
    let agent = child.hands.agent.as_deref().unwrap_or("an agent");
    let mut lines =
        vec![format!("{agent} (session {}) was stopped and has been resumed by an operator.", child.id)];
    if let Some(task) = child.task {
        lines.push(format!("Its task {task} stays cancelled; retry the task to have its result reported."));
    }
    lines.push("Check that nobody else does its work. This is for your information.".to_owned());
    lines.join("\n")
}

/// The last events of a session's log, the oldest first. Damaged ones are left out.
pub(crate) fn last_events(
    store: &dyn Store,
    session: &Session,
    most: u32,
) -> Result<Vec<Envelope>, StoreError> {
    let after = session.seq.saturating_sub(most.into());
    let page = store.events(session.id, after, most as usize)?;
    let bodies = page.events.into_iter().filter_map(|event| event.body.ok());
    Ok(bodies.filter_map(|body| serde_json::from_slice(&body).ok()).collect())
}

/// What an agent left, as the end of its log tells it.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) said: Option<String>,
    pub(crate) open_call: Option<String>,
    pub(crate) files: Vec<String>,
}

impl Left {
    pub(crate) fn of(store: &dyn Store, session: &Session) -> Result<Self, StoreError> {
        Ok(left(&last_events(store, session, TAIL)?))
    }

    /// For the parent; `None` when there is nothing to report.
    pub(crate) fn words(&self) -> String {
        let mut lines = Vec::new();
        if let Some(said) = &self.said {
            lines.push(format!("Its last words: {}", cut(&said.replace('\n', " "), WORDS_CHARS).0));
        }
        if let Some(call) = &self.open_call {
            lines.push(format!("A call that had not returned: {call}"));
        }
        if !self.files.is_empty() {
            let more = self.files.len().saturating_sub(FILES_MAX);
            let named: Vec<&str> = self.files.iter().take(FILES_MAX).map(String::as_str).collect();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            lines.push(format!("Files it touched: {}{more}", named.join(", ")));
        }
        lines.join("\n")
    }
}

fn left(log: &[Envelope]) -> Left {
    let mut left = Left::default();
    let mut open: Vec<(String, String)> = Vec::new();
    let mut breaks = MessageBreaks::default();
    for envelope in log {
        let begins = breaks.begins(&envelope.event);
        match &envelope.event {
            Event::Transcript(TranscriptEvent::Message { role: Role::Agent, text, .. }) => {
                match left.said.as_mut().filter(|_| !begins) {
                    Some(said) => said.push_str(text),
                    None => left.said = Some(text.clone()),
                }
            }
            Event::Transcript(TranscriptEvent::ToolCalled { call, tool, .. }) => {
                open.push((call.clone(), tool.clone()));
            }
            Event::Transcript(TranscriptEvent::ToolReturned { call, .. }) => {
                open.retain(|(known, _)| known != call);
            }
            Event::Transcript(TranscriptEvent::FileChanged { path, .. }) if !left.files.contains(path) => {
                left.files.push(path.clone());
            }
            Event::Turn(TurnEvent::Started { .. }) => open.clear(),
            Event::Transcript(_)
            | Event::Turn(_)
            | Event::Inbox(_)
            | Event::Change(_)
            | Event::Context(_)
            | Event::Control(_)
            | Event::Run(_)
            | Event::Gate(_)
            | Event::Writer(_)
            | Event::Review(_) => {}
        }
    }
    left.open_call = open.pop().map(|(_, tool)| tool);
    left
}
