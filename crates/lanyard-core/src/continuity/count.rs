//! The counters of continuity, and the rule for which of them an event of a session's log increments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::{ChangeEvent, Continuity, Event, Run, RunEnd, RunEvent, RunPhase, Session, StateName};

/// A counter. Variants are in display order, and their names are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    SessionsCreated,
    /// New sessions that came right after their maker had failed to get back to an old one.
    AccidentalNewSessions,
    AttachSucceeded,
    AttachFailed,
    ResumeSucceeded,
    ResumeFailed,
    BusyRejections,
    /// Messages that had been sent before and did not run again.
    DuplicateTurns,
    /// Other requests that had been made before and were not carried out again.
    DuplicateRequests,
    ResumedExact,
    ResumedNative,
    ResumedReplayed,
    ResumedPreamble,
    /// The agent could not take the conversation up again.
    ResumedLost,
}

impl Counter {
    pub const ALL: [Self; 14] = [
        Self::SessionsCreated,
        Self::AccidentalNewSessions,
        Self::AttachSucceeded,
        Self::AttachFailed,
        Self::ResumeSucceeded,
        Self::ResumeFailed,
        Self::BusyRejections,
        Self::DuplicateTurns,
        Self::DuplicateRequests,
        Self::ResumedExact,
        Self::ResumedNative,
        Self::ResumedReplayed,
        Self::ResumedPreamble,
        Self::ResumedLost,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SessionsCreated => "sessions_created",
            Self::AccidentalNewSessions => "accidental_new_sessions",
            Self::AttachSucceeded => "attach_succeeded",
            Self::AttachFailed => "attach_failed",
            Self::ResumeSucceeded => "resume_succeeded",
            Self::ResumeFailed => "resume_failed",
            Self::BusyRejections => "busy_rejections",
            Self::DuplicateTurns => "duplicate_turns",
            Self::DuplicateRequests => "duplicate_requests",
            Self::ResumedExact => "resumed_exact",
            Self::ResumedNative => "resumed_native",
            Self::ResumedReplayed => "resumed_replayed",
            Self::ResumedPreamble => "resumed_preamble",
            Self::ResumedLost => "resumed_lost",
        }
    }

    /// The counter of that name; nothing for one that a newer program wrote.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counter| counter.as_str() == name)
    }
}

impl From<Continuity> for Counter {
    fn from(how: Continuity) -> Self {
        match how {
            Continuity::Exact => Self::ResumedExact,
            Continuity::Native => Self::ResumedNative,
            Continuity::Replayed => Self::ResumedReplayed,
            Continuity::Preamble => Self::ResumedPreamble,
            Continuity::Lost => Self::ResumedLost,
        }
    }
}

/// The value of every counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally([u64; Counter::ALL.len()]);

impl Tally {
    #[must_use]
    pub const fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    pub const fn add(&mut self, counter: Counter, times: u64) {
        let held = &mut self.0[counter as usize];
        *held = held.saturating_add(times);
    }

    pub fn add_all(&mut self, other: &Self) {
        for (counter, times) in other.entries() {
            self.add(counter, times);
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|times| *times == 0)
    }

    /// The counters above zero.
    pub fn entries(&self) -> impl Iterator<Item = (Counter, u64)> {
        Counter::ALL.into_iter().map(|counter| (counter, self.get(counter))).filter(|(_, times)| *times > 0)
    }
}

impl FromIterator<(Counter, u64)> for Tally {
    fn from_iter<T: IntoIterator<Item = (Counter, u64)>>(entries: T) -> Self {
        let mut tally = Self::default();
        for (counter, times) in entries {
            tally.add(counter, times);
        }
        tally
    }
}

/// The counters that an event increments, given the session before it; `None` before its creation.
#[must_use]
pub fn counted(before: Option<&Session>, event: &Event) -> Tally {
    let mut tally = Tally::default();
    match event {
        Event::Change(ChangeEvent::Created(_)) => tally.add(Counter::SessionsCreated, 1),
        Event::Run(event) => match before.and_then(|session| attempt(session, event)) {
            Some(Attempt::WentOn(how)) => {
                let went_on = how != Continuity::Lost;
                tally.add(if went_on { Counter::ResumeSucceeded } else { Counter::ResumeFailed }, 1);
                tally.add(how.into(), 1);
            }
            Some(Attempt::NotStarted) => tally.add(Counter::ResumeFailed, 1),
            None => {}
        },
        Event::Change(_)
        | Event::Turn(_)
        | Event::Inbox(_)
        | Event::Context(_)
        | Event::Control(_)
        | Event::Transcript(_)
        | Event::Gate(_)
        | Event::Writer(_)
        | Event::Review(_) => {}
    }
    tally
}

/// The result of an attempt to continue a conversation.
enum Attempt {
    WentOn(Continuity),
    /// The attempt failed for reasons other than the conversation.
    NotStarted,
}

/// The attempt that ends with this event.
fn attempt(session: &Session, event: &RunEvent) -> Option<Attempt> {
    let held = session.run.as_ref().filter(|run| !run.mirrored)?;
    match event {
        RunEvent::Ready(ready) => ready.continuity.map(Attempt::WentOn),
        RunEvent::Adopted { run } if held.id == *run => Some(Attempt::WentOn(Continuity::Exact)),
        // Somebody asked for the agent to be there, and it was.
        RunEvent::Wanted { .. } if held.phase == RunPhase::Ready => Some(Attempt::WentOn(Continuity::Exact)),
        RunEvent::Ended { run, how, .. } if held.id == *run && how.lost_the_conversation() => {
            Some(Attempt::WentOn(Continuity::Lost))
        }
        RunEvent::Ended { run, how, .. } if held.id == *run && failed_to_start(session, held, how) => {
            Some(Attempt::NotStarted)
        }
        RunEvent::Started { .. }
        | RunEvent::Adopted { .. }
        | RunEvent::ToolsMissing { .. }
        | RunEvent::Activity { .. }
        | RunEvent::BoundMet { .. }
        | RunEvent::Offered(_)
        | RunEvent::InForce(_)
        | RunEvent::Wanted { .. }
        | RunEvent::Ended { .. } => None,
    }
}

/// There was a conversation to go on with, nobody wanted it ended, and its agent did not come to work.
fn failed_to_start(session: &Session, run: &Run, how: &RunEnd) -> bool {
    let wanted = session.stop.is_none()
        && session.state.name() != StateName::Stopped
        && session.turn.as_ref().is_none_or(|turn| !turn.cancel_requested);
    run.phase == RunPhase::Starting && session.native.is_some() && wanted && *how != RunEnd::HostLost
}
