//! The part of a session that needs a person first, and the counts of waiting items that a listing shows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::guidance::NoteStatus;
use crate::session::operator::TurnEnd;
use crate::session::record::Session;
use crate::session::run::TerminalActivity;
use crate::session::state::{InterruptCause, StateName};
use crate::time::Timestamp;

/// Reasons for a person to look, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// A gate waits for an answer.
    Gate,
    /// The session works, waits for no tool, and has been silent for long.
    SuspectedOrphan,
    /// A limit keeps the turn from going on until a person says so.
    LimitReached,
    /// A crash cut the turn off; its progress is unknown.
    Uncertain,
    /// The agent was lost in its turn, and no operator has seen it.
    AgentCrashed,
    /// The session ended as failed and is not archived.
    Failed,
    /// The last turn failed, and no operator has seen it.
    TurnFailed,
    /// The agent refused its last turn, and no operator has seen it.
    TurnRefused,
    /// Messages wait until the inbox is resumed.
    InboxPaused,
    /// The last turn finished, and no operator has seen it.
    TurnFinished,
    /// Guidance waits for a session at rest.
    Guidance,
    /// A stop is pending.
    Stopping,
}

/// Counts of waiting items in a session, small enough for a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Pending {
    /// Questions that are open.
    pub gates: u8,
    /// Pieces of guidance that were not delivered.
    pub guidance: u8,
    /// Turns that wait for theirs.
    pub inbox: u8,
    /// The messages wait until the inbox is resumed.
    pub paused: bool,
    /// The level of its stop; 0 for none.
    pub stop_level: u8,
    /// Waits for a tool.
    pub in_call: bool,
    /// The agent's process is alive.
    pub running: bool,
    /// Start of the running turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_at: Option<Timestamp>,
    /// The turn waits for the reset of a usage limit, or for a person to send it on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limited: bool,
    /// The time at which that turn goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_until: Option<Timestamp>,
    /// The end of the last turn waits for an operator to see it. Rows have it beside their operator state.
    #[serde(skip)]
    pub unread: bool,
    /// End of the last turn.
    #[serde(skip)]
    pub ended_as: Option<TurnEnd>,
    /// What a program on a terminal does.
    #[serde(skip)]
    pub activity: Option<TerminalActivity>,
    /// A run was asked for and has no outcome yet.
    #[serde(skip)]
    pub run_wanted: bool,
    /// The parent has not yet been notified that the session was stopped or resumed.
    #[serde(skip)]
    pub notice_due: bool,
}

impl Pending {
    #[must_use]
    pub fn of(session: &Session) -> Self {
        let few = |count: usize| u8::try_from(count).unwrap_or(u8::MAX);
        // A try again after an overload is work.
        let wait = session.turn.as_ref().and_then(|turn| turn.wait.as_deref());
        let wait = wait.filter(|wait| wait.until.is_none() || !wait.limit.kind.is_transient());
        let undelivered = session.guidance.iter().filter(|note| note.status == NoteStatus::Pending);
        Self {
            gates: few(session.open_gates().count()),
            guidance: few(undelivered.count()),
            inbox: few(session.inbox.len()),
            paused: session.inbox_paused.is_some(),
            stop_level: session.stop.as_ref().map_or(0, |stop| stop.level.into()),
            in_call: session.is_in_call(),
            running: session.live_run().is_some(),
            turn_at: session.turn.as_ref().map(|turn| turn.started_at),
            limited: wait.is_some(),
            limit_until: wait.and_then(|wait| wait.until),
            unread: session.unread(),
            ended_as: session.last_turn.as_ref().map(|turn| turn.how),
            activity: session.live_run().and_then(|run| run.activity).map(|mark| mark.activity),
            run_wanted: session.run_wanted.is_some(),
            notice_due: session.notice_due,
        }
    }

    /// Why somebody should look at a session in this state, `silent` when nothing was heard of it for long.
    #[must_use]
    pub fn attention(&self, state: StateName, cause: Option<InterruptCause>, silent: bool) -> Vec<Attention> {
        let crashed = matches!(cause, Some(InterruptCause::Crash | InterruptCause::HostLost));
        let executing = state == StateName::Executing;
        let unread = |ends: &[TurnEnd]| self.unread && self.ended_as.is_some_and(|end| ends.contains(&end));
        let waits = self.gates > 0 || self.in_call || self.limited;
        let reasons = [
            (Attention::Gate, self.gates > 0),
            (Attention::SuspectedOrphan, executing && silent && !waits),
            (Attention::LimitReached, executing && self.limited && self.limit_until.is_none()),
            (Attention::Uncertain, state == StateName::Interrupted && crashed),
            (Attention::AgentCrashed, unread(&[TurnEnd::Crashed, TurnEnd::Uncertain])),
            (Attention::Failed, state == StateName::Failed),
            (Attention::TurnFailed, unread(&[TurnEnd::Failed, TurnEnd::Limit])),
            (Attention::TurnRefused, unread(&[TurnEnd::Refused])),
            (Attention::InboxPaused, self.paused && self.inbox > 0 && !state.is_ended()),
            (Attention::TurnFinished, unread(&[TurnEnd::Completed])),
            (Attention::Guidance, self.guidance > 0 && !executing && !state.is_ended()),
            (Attention::Stopping, self.stop_level > 0 && !state.is_ended()),
        ];
        reasons.into_iter().filter(|(_, holds)| *holds).map(|(reason, _)| reason).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row<'a> = (Pending, StateName, Option<InterruptCause>, bool, &'a [Attention]);

    #[test]
    fn the_most_pressing_comes_first() {
        let nothing = Pending::default();
        let asks = Pending { gates: 1, stop_level: 1, ..nothing };
        let table: [Row<'_>; 10] = [
            (nothing, StateName::Executing, None, false, &[]),
            (nothing, StateName::Executing, None, true, &[Attention::SuspectedOrphan]),
            (Pending { in_call: true, ..nothing }, StateName::Executing, None, true, &[]),
            (asks, StateName::Executing, None, false, &[Attention::Gate, Attention::Stopping]),
            (nothing, StateName::Interrupted, Some(InterruptCause::Crash), false, &[Attention::Uncertain]),
            (nothing, StateName::Interrupted, Some(InterruptCause::User), true, &[]),
            (
                Pending { inbox: 1, paused: true, ..nothing },
                StateName::Idle,
                None,
                false,
                &[Attention::InboxPaused],
            ),
            (nothing, StateName::Failed, None, false, &[Attention::Failed]),
            (Pending { guidance: 2, ..nothing }, StateName::Idle, None, true, &[Attention::Guidance]),
            (Pending { guidance: 2, ..nothing }, StateName::Executing, None, false, &[]),
        ];
        for (pending, state, cause, silent, expected) in table {
            assert_eq!(pending.attention(state, cause, silent), expected, "{pending:?} while {state}");
        }
    }
}
