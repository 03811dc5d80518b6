//! A session's operator state in one word, and the record of which readers have seen the end of its last turn. Pure:
//! every screen shows the same word because none derives its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::{Actor, ActorKind};
use crate::id::TurnId;
use crate::session::attention::Pending;
use crate::session::event::{ChangeEvent, Event, TurnEvent, TurnOutcome};
use crate::session::record::{ActiveTurn, Session};
use crate::session::refusal::Refusal;
use crate::session::run::{ActivityMark, TerminalActivity};
use crate::session::state::{InterruptCause, StateName};
use crate::time::Timestamp;

/// Readers whose marks a record keeps; the log keeps all.
pub(super) const SEEN_MAX: usize = 16;

/// The state of a session for its operator.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OperatorState {
    /// A turn runs and nothing is asked, or a program on a terminal writes.
    Working,
    /// An open gate, an uncertain turn that is not repeated unasked, a turn that a person sends on after a limit, a paused
    /// inbox with waiting turns, or a program on a terminal that rang and that no screen showed.
    NeedsAnswer,
    /// The turn waits for the reset of a usage limit, and goes on by itself.
    WaitingForLimit,
    /// The last turn finished, or a program on a terminal came to rest, and no operator has seen it.
    ReadyForReview,
    /// The last turn failed or was refused, the agent crashed, or the session ended as failed.
    Failed,
    /// At rest, with nothing left to see.
    #[default]
    Idle,
    /// Completed, stopped or archived.
    Done,
}

impl OperatorState {
    pub const ALL: [Self; 7] = [
        Self::Working,
        Self::NeedsAnswer,
        Self::WaitingForLimit,
        Self::ReadyForReview,
        Self::Failed,
        Self::Idle,
        Self::Done,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::NeedsAnswer => "needs_answer",
            Self::WaitingForLimit => "waiting_for_limit",
            Self::ReadyForReview => "ready_for_review",
            Self::Failed => "failed",
            Self::Idle => "idle",
            Self::Done => "done",
        }
    }

    /// The same in words for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::NeedsAnswer => "needs answer",
            Self::WaitingForLimit => "waiting for limit",
            Self::ReadyForReview => "ready for review",
            Self::Failed => "failed",
            Self::Idle => "idle",
            Self::Done => "done",
        }
    }
}

/// The end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    Completed,
    Failed,
    Refused,
    /// A person ended it.
    Cancelled,
    /// The agent was lost before it had the prompt.
    Crashed,
    /// The agent was lost after it had the prompt; its work is unknown.
    Uncertain,
    /// The turn reached its limit.
    Limit,
}

impl TurnEnd {
    pub const ALL: [Self; 7] = [
        Self::Completed,
        Self::Failed,
        Self::Refused,
        Self::Cancelled,
        Self::Crashed,
        Self::Uncertain,
        Self::Limit,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Crashed => "crashed",
            Self::Uncertain => "uncertain",
            Self::Limit => "limit",
        }
    }

    pub(super) const fn finished(outcome: TurnOutcome) -> Self {
        match outcome {
            TurnOutcome::Completed => Self::Completed,
            TurnOutcome::Failed => Self::Failed,
            TurnOutcome::Refused => Self::Refused,
        }
    }

    pub(super) const fn interrupted(cause: InterruptCause, uncertain: bool) -> Self {
        match cause {
            InterruptCause::User => Self::Cancelled,
            _ if uncertain => Self::Uncertain,
            InterruptCause::Crash | InterruptCause::HostLost => Self::Crashed,
            InterruptCause::Timeout => Self::Failed,
            InterruptCause::Limit => Self::Limit,
        }
    }
}

/// The last turn of a session, after its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedTurn {
    pub turn: TurnId,
    pub how: TurnEnd,
    /// The position of its end in the log.
    pub seq: u64,
    pub at: Timestamp,
    /// An operator should see the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub review: bool,
}

/// The position up to which a reader has seen a session's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenMark {
    pub by: Actor,
    /// The last position on the reader's screen.
    pub seq: u64,
    pub at: Timestamp,
}

/// Whether an operator should see the end of a turn: an operator sent it, and did not end it. Turns of tasks, flows and
/// subagents report to the sender that started them. A turn that Lanyard starts in place of a lost one inherits.
pub(super) fn calls_for_review(session: &Session, turn: &ActiveTurn, cause: Option<InterruptCause>) -> bool {
    let kind = turn.by.as_ref().map(|by| by.kind);
    let inherits = session.last_turn.as_ref().is_some_and(|last| last.review);
    let sent = kind == Some(ActorKind::Operator) || (kind == Some(ActorKind::System) && inherits);
    sent && cause != Some(InterruptCause::User)
}

/// A reader has seen the log up to `seq`. Only a mark that covers a turn's end the reader had not seen is written, so
/// that a screen which follows its own marks writes nothing.
pub(super) fn see(session: &Session, by: &Actor, seq: u64) -> Result<Vec<Event>, Refusal> {
    if seq > session.seq {
        return Err(Refusal::SeenAhead { seq, head: session.seq });
    }
    let person = matches!(by.kind, ActorKind::Operator | ActorKind::Observer);
    let turn = session.last_turn.as_ref().map_or(0, |turn| turn.seq);
    let rest = session.live_run().and_then(|run| run.activity).filter(ActivityMark::is_unwatched_rest);
    let end = turn.max(rest.map_or(0, |mark| mark.seq));
    let covered = session.seen.iter().filter(|mark| mark.by == *by).map(|mark| mark.seq).max().unwrap_or(0);
    let new = person && end > covered && seq >= end;
    Ok(if new { vec![ChangeEvent::Seen { seq }.into()] } else { Vec::new() })
}

impl Session {
    /// Whether the end of the last turn waits for an operator to see it.
    #[must_use]
    pub fn unread(&self) -> bool {
        let done = self.archived
            || self.deleted
            || matches!(self.state.name(), StateName::Completed | StateName::Stopped);
        let seen =
            |end: u64| self.seen.iter().any(|mark| mark.by.kind == ActorKind::Operator && mark.seq >= end);
        let waits = self.last_turn.as_ref().is_some_and(|turn| turn.review && !seen(turn.seq));
        let rest = self.live_run().and_then(|run| run.activity).filter(ActivityMark::is_unwatched_rest);
        let rests = rest.is_some_and(|mark| !seen(mark.seq));
        (waits || rests) && self.turn.is_none() && !done
    }

    #[must_use]
    pub fn operator_state(&self) -> OperatorState {
        Pending::of(self).operator_state(self.state.name(), self.state.cause(), self.archived)
    }

    pub(super) fn saw(&mut self, by: &Actor, seq: u64, at: Timestamp) {
        self.seen.retain(|mark| mark.by != *by);
        if self.seen.len() >= SEEN_MAX {
            self.seen.remove(0);
        }
        self.seen.push(SeenMark { by: by.clone(), seq, at });
    }

    pub(super) fn turn_ended(&mut self, event: &TurnEvent, seq: u64, at: Timestamp) {
        let ended = match event {
            TurnEvent::Finished { turn, outcome, review, .. } => {
                (*turn, TurnEnd::finished(*outcome), *review)
            }
            TurnEvent::Interrupted { turn, cause, uncertain, review, .. } => {
                (*turn, TurnEnd::interrupted(*cause, *uncertain), *review)
            }
            TurnEvent::Started { .. }
            | TurnEvent::Waiting { .. }
            | TurnEvent::Continued { .. }
            | TurnEvent::CancelRequested { .. } => return,
        };
        let (turn, how, review) = ended;
        self.review.turn_over(turn, self.turns, how, seq);
        self.last_turn = Some(EndedTurn { turn, how, seq, at, review });
    }
}

impl Pending {
    /// The operator's word for a session in this state.
    #[must_use]
    pub fn operator_state(
        &self,
        state: StateName,
        cause: Option<InterruptCause>,
        archived: bool,
    ) -> OperatorState {
        match state {
            _ if archived => OperatorState::Done,
            StateName::Completed | StateName::Stopped => OperatorState::Done,
            StateName::Failed => OperatorState::Failed,
            _ if self.gates > 0 => OperatorState::NeedsAnswer,
            StateName::Executing if self.limited && self.limit_until.is_none() => OperatorState::NeedsAnswer,
            StateName::Executing if self.limited => OperatorState::WaitingForLimit,
            StateName::Executing => OperatorState::Working,
            _ if self.paused && self.inbox > 0 => OperatorState::NeedsAnswer,
            StateName::Beginning
            | StateName::Custom
            | StateName::BetweenTurn
            | StateName::Compacted
            | StateName::Interrupted
            | StateName::Idle
            | StateName::Stale => self.at_rest(cause),
        }
    }

    fn at_rest(&self, cause: Option<InterruptCause>) -> OperatorState {
        match self.activity {
            Some(TerminalActivity::Working) => return OperatorState::Working,
            Some(TerminalActivity::Rang) if self.unread => return OperatorState::NeedsAnswer,
            Some(TerminalActivity::Quiet) if self.unread => return OperatorState::ReadyForReview,
            Some(TerminalActivity::Rang | TerminalActivity::Quiet) => return OperatorState::Idle,
            None => {}
        }
        match self.ended_as {
            Some(TurnEnd::Uncertain) => OperatorState::NeedsAnswer,
            Some(TurnEnd::Failed | TurnEnd::Refused | TurnEnd::Crashed | TurnEnd::Limit) => {
                OperatorState::Failed
            }
            Some(TurnEnd::Completed | TurnEnd::Cancelled) if self.unread => OperatorState::ReadyForReview,
            Some(TurnEnd::Completed | TurnEnd::Cancelled) => OperatorState::Idle,
            // Rows of an older daemon know no more than the state.
            None => match cause {
                Some(InterruptCause::User) | None => OperatorState::Idle,
                Some(
                    InterruptCause::Crash
                    | InterruptCause::HostLost
                    | InterruptCause::Timeout
                    | InterruptCause::Limit,
                ) => OperatorState::Failed,
            },
        }
    }
}
