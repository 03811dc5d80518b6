//! The past of a conversation, from its log: for an agent that lost its process, for a fork, and for another agent that
//! takes over.

use lanyard_api::agents::settings::{AgentSettings, DriverKind};
use lanyard_core::SessionId;
use lanyard_core::session::{Continuity, Envelope, ResumeWay, Session};
use lanyard_store::{Store, StoreError};

use crate::agents::words;

/// Events of a log that are read at a time.
const PAST_PAGE: usize = 1_000;
/// Events of the past that are put into words at most.
const PAST_EVENTS_MAX: usize = 20_000;
/// Forks of forks that are followed back.
const FORKS_MAX: usize = 8;

/// How another agent gets the conversation of this session; nothing where there is none yet.
pub fn carried(
    store: &dyn Store,
    session: &Session,
    from: Option<&AgentSettings>,
    to: &AgentSettings,
) -> Result<Option<Continuity>, StoreError> {
    if session.native.is_some() && from.is_some_and(|from| shares_conversations(from, to)) {
        return Ok(Some(Continuity::Native));
    }
    let events = conversation(store, session)?;
    let told = |how: &Continuity| words::past(&events, *how, words::PastOf::Another).is_some();
    let how = ways(to).iter().filter_map(|way| in_words(*way)).find(told);
    let none =
        events.is_empty() || words::past(&events, Continuity::Preamble, words::PastOf::Another).is_none();
    Ok(if none { None } else { Some(how.unwrap_or(Continuity::Lost)) })
}

/// The same program with the same arguments: it knows the conversation under the same id.
fn shares_conversations(from: &AgentSettings, to: &AgentSettings) -> bool {
    let resumes = to.driver != DriverKind::Command || !to.per_turn().next.is_empty();
    from.driver == to.driver && from.command == to.command && resumes
}

/// How an agent that takes over is given the past: as its settings say, else whole, else as a summary.
pub(super) fn ways(settings: &AgentSettings) -> Vec<ResumeWay> {
    let set: Vec<ResumeWay> =
        settings.resume.iter().copied().filter(|way| *way != ResumeWay::Native).collect();
    if set.is_empty() { vec![ResumeWay::Replay, ResumeWay::Preamble] } else { set }
}

/// The label of a way that gives the past in words.
pub(super) fn in_words(way: ResumeWay) -> Option<Continuity> {
    match way {
        ResumeWay::Native => None,
        ResumeWay::Replay => Some(Continuity::Replayed),
        ResumeWay::Preamble => Some(Continuity::Preamble),
    }
}

/// The conversation before the running turn, with what came before the fork where it is one. The newest part of a very
/// long one.
pub(super) fn conversation(store: &dyn Store, session: &Session) -> Result<Vec<Envelope>, StoreError> {
    let end = session.turn.as_ref().map_or(u64::MAX, |turn| turn.seq);
    let mut parts = vec![said(store, session.id, session.seq, end)?];
    let mut from = session.forked_from;
    while let Some(fork) = from.filter(|_| parts.len() < FORKS_MAX) {
        parts.push(said(store, fork.session, fork.seq, fork.seq.saturating_add(1))?);
        from = store.load(fork.session)?.and_then(|loaded| loaded.session.forked_from);
    }
    parts.reverse();
    Ok(parts.concat())
}

/// The newest events up to `seq` that come before `end`.
fn said(store: &dyn Store, id: SessionId, seq: u64, end: u64) -> Result<Vec<Envelope>, StoreError> {
    let mut events: Vec<Envelope> = Vec::new();
    let mut after = seq.saturating_sub(PAST_EVENTS_MAX as u64);
    loop {
        let page = store.events(id, after, PAST_PAGE)?;
        let Some(last) = page.events.last() else { return Ok(events) };
        after = last.seq;
        let bodies = page.events.iter().filter(|event| event.seq < end);
        let bodies = bodies.filter_map(|event| event.body.as_ref().ok());
        events.extend(bodies.filter_map(|body| serde_json::from_slice(body).ok()));
        if after >= end {
            return Ok(events);
        }
    }
}
