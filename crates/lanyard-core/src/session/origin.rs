//! Permission to report. Signals are trusted, so each is accepted only from a party that can know it: an agent reports
//! its own actions, never its user's words or the end of its own work.

use crate::actor::ActorKind;
use crate::session::event::Role;
use crate::session::record::Session;
use crate::session::refusal::Refusal;
use crate::session::signal::Signal;

/// The origin of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Lanyard itself: its drivers, timers and looks at processes.
    Internal,
    /// A person, or a program of theirs.
    Operator,
    /// The agent of a session that Lanyard runs, with its own token. Lanyard sees for itself when its turns end.
    DrivenAgent,
    /// The agent of a session that its own host runs, with its own token.
    HostedAgent,
}

impl Origin {
    /// As whom a caller speaks about a session.
    #[must_use]
    pub fn of(kind: ActorKind, session: &Session) -> Self {
        match kind {
            ActorKind::System => Self::Internal,
            ActorKind::Operator | ActorKind::Observer => Self::Operator,
            ActorKind::Agent if session.run.is_some() => Self::DrivenAgent,
            ActorKind::Agent => Self::HostedAgent,
        }
    }

    /// Whether it may report the signal at all. The one table of it.
    #[must_use]
    pub const fn may_report(self, signal: &Signal) -> bool {
        match (signal.claim(), self) {
            (_, Self::Internal) => true,
            (Claim::Own, Self::Operator | Self::DrivenAgent | Self::HostedAgent) => false,
            (Claim::Work | Claim::Words | Claim::TurnEnd | Claim::Confirmed, Self::Operator) => true,
            (Claim::Work, Self::DrivenAgent | Self::HostedAgent) => true,
            (Claim::TurnEnd, Self::HostedAgent) => true,
            (Claim::TurnEnd, Self::DrivenAgent) => false,
            (Claim::Words | Claim::Confirmed, Self::DrivenAgent | Self::HostedAgent) => false,
        }
    }
}

/// The kind of fact that a signal claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// The agent's own actions and messages.
    Work,
    /// Messages of others.
    Words,
    /// The end of a turn.
    TurnEnd,
    /// An arrival or an end: it settles guidance, a turn or a stop.
    Confirmed,
    /// Facts that only Lanyard can know.
    Own,
}

impl Signal {
    const fn claim(&self) -> Claim {
        match self {
            Self::Said { role: Role::Agent, .. }
            | Self::Thought { .. }
            | Self::ToolCalled { .. }
            | Self::ToolReturned { .. }
            | Self::UsageReported { .. }
            | Self::ContextCompacted { .. }
            | Self::IssueSeen { .. }
            | Self::ErrorSeen { .. }
            | Self::Introduced { .. }
            | Self::HandedOff { .. }
            | Self::Planned { .. }
            | Self::FileChanged { .. } => Claim::Work,
            Self::Said { role: Role::User, .. } => Claim::Words,
            Self::TurnFinished { .. } => Claim::TurnEnd,
            Self::TurnDelivered { .. }
            | Self::TurnLost { .. }
            | Self::GuidanceDelivered { .. }
            | Self::WorkEnded { .. } => Claim::Confirmed,
            Self::AnswerLost { .. }
            | Self::PlanJoined { .. }
            | Self::NoticeSent { .. }
            | Self::CallsInFlight { .. }
            | Self::Due { .. }
            | Self::RunStarted { .. }
            | Self::RunReady(_)
            | Self::RunAdopted { .. }
            | Self::TerminalActivity { .. }
            | Self::RunEnded { .. }
            | Self::EndBlocked { .. }
            | Self::TurnLimited(_)
            | Self::GateAsked { .. }
            | Self::GateWithdrawn { .. }
            | Self::SnapshotTaken { .. }
            | Self::SnapshotSkipped { .. }
            | Self::RolledBack { .. }
            | Self::BranchMerged { .. }
            | Self::BranchDiscarded { .. }
            | Self::ToolsMissing { .. }
            | Self::BoundMet { .. }
            | Self::Offered(_)
            | Self::InForce(_)
            | Self::DaemonRestarted
            | Self::Quiet { .. } => Claim::Own,
        }
    }

    /// Signals only Lanyard itself may send: a client that could send them could stop a session's clock, or speak for a
    /// process it does not own.
    #[must_use]
    pub const fn is_internal(&self) -> bool {
        matches!(self.claim(), Claim::Own)
    }
}

/// Whether a signal is taken. `calls_open` is whether tool calls of the session are under way: while they are, the end of
/// its turn is no end of its work, and confirms no stop.
pub fn check_origin(
    origin: Origin,
    session: &Session,
    signal: &Signal,
    calls_open: bool,
) -> Result<(), Refusal> {
    if !origin.may_report(signal) {
        return Err(Refusal::SignalForbidden { signal: signal.name() });
    }
    let ends_turn = signal.claim() == Claim::TurnEnd && origin == Origin::HostedAgent;
    let open = calls_open || !session.open_calls.is_empty();
    if ends_turn && open && session.stop.is_some() {
        return Err(Refusal::CallsOpen);
    }
    Ok(())
}
