//! What one event counts for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::ActorKind;
use crate::id::SessionId;
use crate::insight::{Quarter, quarter_of};
use crate::session::{
    ActiveTurn, ChoiceKind, Envelope, Event, GateEvent, GateKind, GateStatus, InterruptCause, Session,
    TranscriptEvent, TurnEvent, TurnOutcome,
};

/// Sums over events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InsightCounts {
    /// Millionths of a US dollar, as far as agents report what they cost.
    pub cost_micros: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Turns that ended.
    pub turns: u64,
    /// Those of them that failed, were refused by the agent or were cut off. A cancelled turn is none.
    pub turns_failed: u64,
    /// Time from the beginning of these turns to their end, waits included.
    pub turn_ms: u64,
    /// Tool calls in turns that ended, those of subagents included.
    pub calls: u64,
    pub calls_failed: u64,
    /// Questions of agents that a person answered.
    pub approvals: u64,
    /// Time that agents waited for these answers.
    pub approval_wait_ms: u64,
}

impl InsightCounts {
    /// Number of sums; they are stored and read in the order of [`Self::numbers`].
    pub const LEN: usize = 10;

    #[must_use]
    pub const fn numbers(&self) -> [u64; Self::LEN] {
        let Self {
            cost_micros,
            input_tokens,
            output_tokens,
            turns,
            turns_failed,
            turn_ms,
            calls,
            calls_failed,
            approvals,
            approval_wait_ms,
        } = *self;
        [
            cost_micros,
            input_tokens,
            output_tokens,
            turns,
            turns_failed,
            turn_ms,
            calls,
            calls_failed,
            approvals,
            approval_wait_ms,
        ]
    }

    #[must_use]
    pub const fn of_numbers(numbers: [u64; Self::LEN]) -> Self {
        let [
            cost_micros,
            input_tokens,
            output_tokens,
            turns,
            turns_failed,
            turn_ms,
            calls,
            calls_failed,
            approvals,
            approval_wait_ms,
        ] = numbers;
        Self {
            cost_micros,
            input_tokens,
            output_tokens,
            turns,
            turns_failed,
            turn_ms,
            calls,
            calls_failed,
            approvals,
            approval_wait_ms,
        }
    }

    pub fn add(&mut self, other: &Self) {
        let (mut sums, more) = (self.numbers(), other.numbers());
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        *self = Self::of_numbers(sums);
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The agent, the model and the folder that something is counted for; a part that is not known is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InsightKey {
    pub agent: String,
    pub model: String,
    /// The repository, where the session works in a worktree of it.
    pub folder: String,
}

impl InsightKey {
    fn of(session: &Session) -> Self {
        let model = session.in_force.get(ChoiceKind::Model).map(str::to_owned);
        let model = model.or_else(|| session.wanted_choice().model);
        let tree = session.tree.as_ref().map(|tree| tree.repository.clone());
        Self {
            agent: session.hands.agent.clone().unwrap_or_default(),
            model: model.unwrap_or_default(),
            folder: tree.or_else(|| session.workspace.clone()).unwrap_or_default(),
        }
    }
}

/// What an event adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsightStep {
    pub session: SessionId,
    pub quarter: Quarter,
    pub key: InsightKey,
    pub counts: InsightCounts,
}

/// What an event adds, given the session before it. Imported events add nothing: what they tell of was not spent here.
///
/// A subagent has a log of its own beside its parent's, and its tokens and calls are in that log alone. Its turns and
/// their time are part of the parent's turn, and count there.
#[must_use]
pub fn step(before: Option<&Session>, envelope: &Envelope) -> Option<InsightStep> {
    let session = before.filter(|_| !envelope.is_imported())?;
    let counts = counted(session, envelope).filter(|counts| !counts.is_empty())?;
    let (quarter, key) = (quarter_of(envelope.at), InsightKey::of(session));
    Some(InsightStep { session: session.id, quarter, key, counts })
}

fn counted(session: &Session, envelope: &Envelope) -> Option<InsightCounts> {
    match &envelope.event {
        Event::Transcript(TranscriptEvent::UsageReported {
            input_tokens,
            output_tokens,
            cost_micros,
            ..
        }) => Some(InsightCounts {
            cost_micros: *cost_micros,
            input_tokens: *input_tokens,
            output_tokens: *output_tokens,
            ..InsightCounts::default()
        }),
        Event::Turn(event) => turn_over(session, event, envelope),
        Event::Gate(event) => answered(session, event, envelope),
        Event::Transcript(_)
        | Event::Change(_)
        | Event::Inbox(_)
        | Event::Context(_)
        | Event::Control(_)
        | Event::Run(_)
        | Event::Writer(_)
        | Event::Review(_) => None,
    }
}

/// Calls are counted with the end of their turn, so that a call costs no write of its own.
fn turn_over(session: &Session, event: &TurnEvent, envelope: &Envelope) -> Option<InsightCounts> {
    let (ended, failed) = match event {
        TurnEvent::Finished { turn, outcome, .. } => (*turn, *outcome != TurnOutcome::Completed),
        TurnEvent::Interrupted { turn, cause, .. } => (*turn, *cause != InterruptCause::User),
        TurnEvent::Started { .. }
        | TurnEvent::CancelRequested { .. }
        | TurnEvent::Waiting { .. }
        | TurnEvent::Continued { .. } => return None,
    };
    let turn: &ActiveTurn = session.turn.as_ref().filter(|turn| turn.id == ended)?;
    let calls =
        InsightCounts { calls: turn.calls, calls_failed: turn.calls_failed, ..InsightCounts::default() };
    if session.run.as_ref().is_some_and(|run| run.mirrored) {
        return Some(calls);
    }
    let (turns, turns_failed) = (1, u64::from(failed));
    Some(InsightCounts { turns, turns_failed, turn_ms: envelope.at.millis_since(turn.started_at), ..calls })
}

/// An answer of a person; what the agent's rules answered by themselves kept nobody waiting.
fn answered(session: &Session, event: &GateEvent, envelope: &Envelope) -> Option<InsightCounts> {
    let GateEvent::Answered { gate, .. } = event else { return None };
    if envelope.actor.kind == ActorKind::System {
        return None;
    }
    let held = session.gates.iter().find(|held| held.id == *gate)?;
    let open = held.status == GateStatus::Open && held.question.kind == GateKind::Permission;
    let approval_wait_ms = envelope.at.millis_since(held.opened_at);
    open.then_some(InsightCounts { approvals: 1, approval_wait_ms, ..InsightCounts::default() })
}
