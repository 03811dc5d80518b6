//! What each command and each signal makes of a session, one rule at a time. Names and comments carry the ids of the
//! requirements.

#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes snapshots with them")]

use expect_test::{Expect, expect};

use crate::id::WorkerId;
use crate::policy::{Limits, MemoryMode, Overlong, Staleness};
use crate::session::event::{ChangeEvent, Event, SnapshotReason, TurnOutcome};
use crate::session::state::InterruptCause;
use crate::session::testing::{
    Given, HOUR, Input, MINUTE, add_alias, answer, archive, archived, asked, asked_again, born, cancel_asked,
    cancel_turn, check, checkpoint, comment_id, complete, context_compacted, daemon_restarted, delete,
    deleted, edit, error_seen, event_line, fail, file_changed, gate_asked, gate_id, gate_withdrawn, given,
    given_created, greeting, guidance_delivered, guide, in_state, inbox as to_inbox, issue_seen,
    migrate_to_agent, migrate_to_owner, mirrored_run_started, note_id, noted, order, planned, promote,
    question, quiet, receipt, reset, resume, run_adopted, run_began, run_ended, run_ended_as, run_id,
    run_over, run_ready, run_started, said, send, session_id, set_anchors, short_ids, snapshot_skipped,
    snapshot_taken, start_turn, started, stop, stop_at, story, texts, tool_called, tool_returned,
    turn_delivered, turn_finished, turn_finished_as, turn_id, turn_lost, unarchive, usage, withdraw_guidance,
    withdraw_stop, withdraw_turn, work_ended,
};
use crate::session::{
    Command, Continuity, Delivery, GateOption, GateStatus, InboxChange, Lineage, LinkEvents, NewSession,
    OptionKind, Promotion, Question, Refusal, ResumeWay, RunEnd, RunReady, Session, Signal, StateName,
    StopLevel, create, fork, link,
};
use crate::text::{BODY_BYTES_MAX, NAME_CHARS_MAX, content_hash};

mod after_a_stop;
mod aliases;
mod calls;
mod carrier;
mod checkpoints;
mod compaction;
mod creation;
mod driven;
mod endings;
mod forks;
mod gates;
mod governance;
mod guidance;
mod hand_offs;
mod inbox;
mod interruption;
mod lacks;
mod linking;
mod memory;
mod parts;
mod refusals;
mod resuming;
mod run_ends;
mod runs;
mod sharing;
mod shelving;
mod snapshots;
mod staleness;
mod stalls;
mod stopping;
mod transcript;
mod turns;
mod writing;

fn make(new: &NewSession) -> Result<Event, Refusal> {
    create(new, "ann", None, &Limits::default()).map(Event::from)
}

fn make_under(parent: &Session, new: &NewSession) -> Result<Event, Refusal> {
    create(new, "ann", Some((parent, &Lineage::default())), &Limits::default()).map(Event::from)
}

fn created_under(parent: &Session, new: &NewSession) -> Event {
    make_under(parent, new).unwrap()
}

/// A place under this many ancestors: sessions 100, 101, …
fn chain(ancestors: u128) -> Lineage {
    Lineage { ancestors: (0..ancestors).map(|number| session_id(100 + number)).collect() }
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "reads like `check`")]
fn check_made(made: Result<Event, Refusal>, expect: Expect) {
    let text = match made {
        Ok(event) => event_line(&event) + "\n",
        Err(refusal) => refused(&refusal),
    };
    expect.assert_eq(&short_ids(&text));
}

fn refused(refusal: &Refusal) -> String {
    format!("refused {}: {refusal}; {}\n", refusal.code(), refusal.advice())
}

fn killed(run: u128, cause: InterruptCause) -> Input {
    run_ended_as(run, RunEnd::Signalled { signal: 9 }, cause, Some("it did not heed TERM"))
}
