//! What follows from a committed event: work for the daemon, as data. Effects never come from anything but events that
//! are on disk.

use crate::id::TurnId;
use crate::session::event::{ControlEvent, Envelope, Event, TurnEvent};
use crate::session::record::Session;
use crate::session::stop::StopLevel;

/// Something the daemon has to do. Its result comes back as a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Hand the turn's prompt to the agent.
    RunTurn { turn: TurnId },
    /// End the turn's work; `forced` when it was asked before.
    CancelWork { turn: TurnId, forced: bool },
    /// End all work of the session. `executing` says whether a turn was running when it was ordered.
    StopWork { level: StopLevel, executing: bool },
}

/// The effect of an event on the session it has just been applied to.
#[must_use]
pub fn react(session: &Session, envelope: &Envelope) -> Option<Effect> {
    let executing = session.turn.is_some();
    match &envelope.event {
        Event::Turn(TurnEvent::Started { turn, .. }) => Some(Effect::RunTurn { turn: *turn }),
        Event::Turn(TurnEvent::CancelRequested { turn, forced, .. }) => {
            Some(Effect::CancelWork { turn: *turn, forced: *forced })
        }
        Event::Turn(TurnEvent::Finished { .. } | TurnEvent::Interrupted { .. }) => None,
        Event::Control(ControlEvent::StopRequested { level, .. }) => {
            Some(Effect::StopWork { level: *level, executing })
        }
        Event::Control(ControlEvent::StopRaised { to, .. }) => {
            Some(Effect::StopWork { level: *to, executing })
        }
        Event::Control(_) | Event::Change(_) | Event::Context(_) | Event::Transcript(_) => None,
    }
}
