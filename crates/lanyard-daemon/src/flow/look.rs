//! A flow's sessions as they stand, read from the journal. Blocks.

use lanyard_core::flow::{FailKind, FlowRules, Looked, Probe};
use lanyard_core::session::{
    Envelope, Event, InterruptCause, MessageBreaks, ResumeWay, Role, State, StateName, TranscriptEvent,
    TurnRow, TurnStatus,
};
use lanyard_core::{Session, SessionId, TurnId};
use lanyard_store::Store;

use crate::flow::FlowError;
use lanyard_agents::agents::roster::Roster;

/// Events of a turn that are read for what its agent said.
const TURN_EVENTS_MAX: usize = 4_000;
/// What providers and agents say when a conversation has become too long, compared without case.
const EXHAUSTED: [&str; 6] = [
    "context length",
    "context window",
    "context_length",
    "prompt is too long",
    "too many tokens",
    "maximum context",
];
/// What they say when another try may do.
const TRANSIENT: [&str; 14] = [
    "rate limit",
    "rate_limit",
    "too many requests",
    "overloaded",
    "unavailable",
    "connection",
    "network",
    "timed out",
    "timeout",
    "econn",
    "502",
    "503",
    "504",
    "529",
];

/// How a session stands that may be gone on with, and whether it heard the turn that is waited for.
pub(super) fn looked(
    store: &dyn Store,
    agents: &Roster,
    rules: &FlowRules,
    (session, turn): (SessionId, Option<TurnId>),
) -> Result<Looked, FlowError> {
    let nothing = Looked { unheard: true, ..Looked::default() };
    let Some(loaded) = store.load(session)? else { return Ok(nothing) };
    let row = turn.map(|turn| store.turn(session, turn)).transpose()?.flatten();
    let session = loaded.session;
    let settings = session.hands.agent.as_deref().and_then(|agent| agents.settings(agent));
    let ways = settings.as_ref().map(|settings| settings.resume.as_slice()).unwrap_or_default();
    let can = session.run.as_ref().is_some_and(|run| run.capabilities.resume || run.capabilities.load);
    let native = session.native.is_some() && can && ways.contains(&ResumeWay::Native);
    let by_words = ways.iter().any(|way| matches!(way, ResumeWay::Replay | ResumeWay::Preamble));
    let context = session.usage.context_tokens;
    let full = rules.context_tokens > 0 && context.is_some_and(|tokens| tokens >= rules.context_tokens);
    let probe = Probe {
        exists: !session.deleted && !session.state.is_ended() && session.stop.is_none(),
        alive: session.live_run().is_some(),
        loadable: settings.is_some() && (native || by_words),
        idle: session.state.name() != StateName::Executing,
        context_left: !full,
    };
    let unheard = row.is_none_or(|row| row.delivered_at.is_none() && never_came(row.status));
    Ok(Looked { probe, tokens: tokens(&session), unheard })
}

/// A prompt that was not told to have arrived by then certainly did not. One of a turn that runs may yet, and of one that
/// was lost nobody knows.
const fn never_came(status: TurnStatus) -> bool {
    match status {
        TurnStatus::Queued
        | TurnStatus::Failed
        | TurnStatus::Refused
        | TurnStatus::Cancelled
        | TurnStatus::Interrupted
        | TurnStatus::Withdrawn => true,
        TurnStatus::Running | TurnStatus::Completed | TurnStatus::Uncertain | TurnStatus::Steered => false,
    }
}

fn tokens(session: &Session) -> u64 {
    session.usage.input_tokens + session.usage.output_tokens
}

/// What its session has used so far, while this turn runs in it.
pub(super) fn running(store: &dyn Store, session: SessionId, turn: TurnId) -> Result<Option<u64>, FlowError> {
    let Some(loaded) = store.load(session)? else { return Ok(None) };
    let runs = loaded.session.turn.as_ref().is_some_and(|active| active.id == turn);
    Ok(runs.then(|| tokens(&loaded.session)))
}

/// A session and the turn that is waited for.
pub(super) struct Seen {
    pub(super) session: Option<Session>,
    pub(super) turn: Option<TurnRow>,
    /// What the agent said in it, once it is over.
    pub(super) said: String,
}

pub(super) fn seen(store: &dyn Store, id: SessionId, turn: TurnId) -> Result<Seen, FlowError> {
    let session = store.load(id)?.map(|loaded| loaded.session);
    let row = if session.is_some() { store.turn(id, turn)? } else { None };
    let said = match &row {
        Some(row) if row.status == TurnStatus::Completed => said(store, id, row)?,
        Some(_) | None => String::new(),
    };
    Ok(Seen { session, turn: row, said })
}

/// All that the agent said in a turn, message by message; the last of it when it said very much.
fn said(store: &dyn Store, id: SessionId, row: &TurnRow) -> Result<String, FlowError> {
    let end = row.ended_seq.unwrap_or(u64::MAX);
    let begin = row.started_seq.unwrap_or(row.first_seq);
    let after = begin.max(end.saturating_sub(TURN_EVENTS_MAX as u64));
    let page = store.events(id, after, TURN_EVENTS_MAX)?;
    let (mut text, mut breaks) = (String::new(), MessageBreaks::default());
    for event in page.events.into_iter().filter(|event| event.seq <= end) {
        let Ok(body) = event.body else { continue };
        let Ok(envelope) = serde_json::from_slice::<Envelope>(&body) else { continue };
        let begins = breaks.begins(&envelope.event);
        if let Event::Transcript(TranscriptEvent::Message { role: Role::Agent, text: words, .. }) =
            envelope.event
        {
            if begins && !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&words);
        }
    }
    text.push('\n');
    Ok(text)
}

/// Why a turn that is over has no result: the kind, and in words.
pub(super) fn failure(session: &Session, row: &TurnRow) -> (FailKind, String) {
    let reason = row.reason.clone().unwrap_or_else(|| format!("its turn is {}", row.status.as_str()));
    let words = reason.to_lowercase();
    let says = |known: &[&str]| known.iter().any(|known| words.contains(known));
    // What the state says is about this turn only while no other has begun.
    let cause = if let State::Interrupted { cause } = session.state { Some(cause) } else { None };
    let lost = session.run.as_ref().is_some_and(|run| !run.is_live())
        && (words.contains("resume_") || words.contains("conversation"));
    let kind = if says(&EXHAUSTED) || cause == Some(InterruptCause::Limit) {
        FailKind::Exhausted
    } else if lost {
        FailKind::Gone
    } else if cause == Some(InterruptCause::Timeout) {
        FailKind::Timeout
    } else if matches!(row.status, TurnStatus::Interrupted | TurnStatus::Uncertain) || says(&TRANSIENT) {
        FailKind::Transient
    } else {
        FailKind::Failed
    };
    (kind, reason)
}
