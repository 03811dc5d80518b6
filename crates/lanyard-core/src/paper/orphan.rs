//! Whether anybody still works on a session. Quiet is not orphaned: a long call, a long thought and a
//! process that is there are signs of life, and the hub decides what becomes of the rest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::Staleness;
use crate::session::{InterruptCause, Session};

/// Facts about a session's liveness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Facts {
    pub ended: bool,
    /// State of the agent's process.
    pub process: Process,
    /// A call has not returned.
    pub open_call: bool,
    /// The session, or one below it, waits for a person.
    pub waits_for_person: bool,
    /// A turn is running, or was cut off by a crash, a lost host or a timeout.
    pub unfinished: bool,
    /// The session was created for a piece of work of another session.
    pub has_parent: bool,
    /// A parent other than the one who asks is there and looks after it.
    pub looked_after: bool,
    pub quiet_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Process {
    Alive,
    /// The process was seen to end.
    Gone,
    /// Lanyard does not run it.
    Unknown,
}

/// The verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    /// The session is at work, or at rest as expected.
    Live,
    /// The session is quiet for longer than expected, for an unknown reason.
    Suspected,
    /// No agent works on the session any more.
    Orphaned,
    /// The session has ended.
    Ended,
}

impl Facts {
    #[must_use]
    pub fn of(session: &Session, quiet_ms: u64, looked_after: bool, asked_below: bool) -> Self {
        let process = match &session.run {
            Some(run) if run.is_live() => Process::Alive,
            Some(_) => Process::Gone,
            None => Process::Unknown,
        };
        let cut_off = session.state.cause().is_some_and(|cause| match cause {
            InterruptCause::Crash | InterruptCause::HostLost | InterruptCause::Timeout => true,
            InterruptCause::User | InterruptCause::Limit => false,
        });
        Self {
            ended: session.state.is_ended() || session.deleted,
            process,
            open_call: session.is_in_call(),
            waits_for_person: asked_below || session.open_gates().next().is_some(),
            unfinished: session.turn.is_some() || cut_off,
            has_parent: session.parent.is_some(),
            looked_after,
            quiet_ms,
        }
    }
}

/// Whether a parent is there and looks after its children.
#[must_use]
pub fn looks_after(parent: &Session, quiet_ms: u64, staleness: &Staleness) -> bool {
    let alive = quiet_ms < staleness.suspect_after_ms || parent.live_run().is_some() || parent.is_waiting();
    alive && !parent.state.is_ended() && !parent.deleted
}

/// Judges liveness by one table of times. A session without a sign of life is suspected after `suspect_after`. It is
/// orphaned when its process is gone, or after `idle_after` without a sign. An open call counts as life up to
/// `stale_after`: its caller may have died in it.
#[must_use]
pub fn judge(facts: &Facts, staleness: &Staleness) -> Liveness {
    if facts.ended {
        return Liveness::Ended;
    }
    let resting = !facts.unfinished && !facts.has_parent;
    let waiting = facts.open_call && facts.quiet_ms < staleness.stale_after_ms;
    if facts.process == Process::Alive
        || waiting
        || facts.waits_for_person
        || resting
        || facts.looked_after
        || facts.quiet_ms < staleness.suspect_after_ms
    {
        return Liveness::Live;
    }
    match facts.process {
        Process::Gone => Liveness::Orphaned,
        Process::Alive | Process::Unknown if facts.quiet_ms >= staleness.idle_after_ms => Liveness::Orphaned,
        Process::Alive | Process::Unknown => Liveness::Suspected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;

    fn facts(change: impl FnOnce(&mut Facts)) -> Liveness {
        let mut facts = Facts {
            ended: false,
            process: Process::Unknown,
            open_call: false,
            waits_for_person: false,
            unfinished: true,
            has_parent: true,
            looked_after: false,
            quiet_ms: 11 * MINUTE,
        };
        change(&mut facts);
        judge(&facts, &Staleness::default())
    }

    /// S0-60, S0-B13, S0-B15: what is a sign of life and what is not.
    #[test]
    fn the_table_of_life() {
        type Row = (&'static str, fn(&mut Facts), Liveness);
        let rows: [Row; 15] = [
            ("quiet for 11 minutes", |_| {}, Liveness::Suspected),
            ("quiet for 9 minutes", |f| f.quiet_ms = 9 * MINUTE, Liveness::Live),
            ("quiet for 10 minutes sharp", |f| f.quiet_ms = 10 * MINUTE, Liveness::Suspected),
            ("quiet for an hour", |f| f.quiet_ms = 60 * MINUTE, Liveness::Orphaned),
            ("its process was seen to end", |f| f.process = Process::Gone, Liveness::Orphaned),
            ("ended a moment ago", |f| (f.process, f.quiet_ms) = (Process::Gone, MINUTE), Liveness::Live),
            (
                "a process, however quiet",
                |f| (f.process, f.quiet_ms) = (Process::Alive, 999 * MINUTE),
                Liveness::Live,
            ),
            ("a long call", |f| (f.open_call, f.quiet_ms) = (true, 600 * MINUTE), Liveness::Live),
            (
                "a call of three days",
                |f| (f.open_call, f.quiet_ms) = (true, 4_320 * MINUTE),
                Liveness::Orphaned,
            ),
            (
                "a question, however old",
                |f| (f.waits_for_person, f.quiet_ms) = (true, 9_999 * MINUTE),
                Liveness::Live,
            ),
            ("another parent looks after it", |f| f.looked_after = true, Liveness::Live),
            ("a person's session at rest", |f| (f.unfinished, f.has_parent) = (false, false), Liveness::Live),
            ("a child nobody came back to", |f| f.unfinished = false, Liveness::Suspected),
            ("a root cut off in its turn", |f| f.has_parent = false, Liveness::Suspected),
            ("ended, however quiet", |f| (f.ended, f.quiet_ms) = (true, 999 * MINUTE), Liveness::Ended),
        ];
        for (what, change, expected) in rows {
            assert_eq!(facts(change), expected, "{what}");
        }
    }
}
