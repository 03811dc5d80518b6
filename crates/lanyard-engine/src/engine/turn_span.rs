//! Turns that ended, for a collector of traces.

use lanyard_core::session::{Event, TurnEvent, TurnOutcome};
use lanyard_core::{Session, SessionId, Timestamp, TurnId};

/// A turn that ended, from its start to its end in the log.
#[derive(Debug, Clone)]
pub struct TurnSpan {
    pub session: SessionId,
    pub turn: TurnId,
    pub agent: Option<String>,
    pub began: Timestamp,
    pub ended: Timestamp,
    /// `completed`, or the kind of another end.
    pub how: &'static str,
}

impl TurnSpan {
    /// The turn that ends with this event, in a session as it was before.
    pub(super) fn of(before: Option<&Session>, event: &Event, at: Timestamp) -> Option<Self> {
        let session = before?;
        let running = session.turn.as_ref()?;
        let (turn, how) = match event {
            Event::Turn(TurnEvent::Finished { turn, outcome, .. }) => (
                *turn,
                match outcome {
                    TurnOutcome::Completed => "completed",
                    TurnOutcome::Failed => "failed",
                    TurnOutcome::Refused => "refused",
                },
            ),
            Event::Turn(TurnEvent::Interrupted { turn, cause, .. }) => (*turn, cause.as_str()),
            Event::Turn(
                TurnEvent::Started { .. }
                | TurnEvent::CancelRequested { .. }
                | TurnEvent::Waiting { .. }
                | TurnEvent::Continued { .. },
            )
            | Event::Change(_)
            | Event::Inbox(_)
            | Event::Context(_)
            | Event::Control(_)
            | Event::Transcript(_)
            | Event::Run(_)
            | Event::Gate(_)
            | Event::Writer(_)
            | Event::Review(_) => return None,
        };
        let agent = session.hands.agent.clone();
        Some(Self { session: session.id, turn, agent, began: running.started_at, ended: at, how })
    }
}
