//! Why a command was refused: a stable code, one sentence of what happened, one of what to do.

use crate::id::{ConnectionId, GateId, NoteId, SessionId, TurnId};
use crate::memory;
use crate::session::event::{ControlEvent, Event};
use crate::session::record::{REFUSED_IN_ROW_MAX, Session};
use crate::session::state::StateName;
use crate::session::turns::TurnStatus;

/// A refusal changes nothing but, where it concerns the session's state, is recorded in its log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("turn {turn} is running")]
    Busy { turn: TurnId },
    #[error("the session {}", ended_as(*state))]
    Ended { session: SessionId, state: StateName },
    #[error("the session was deleted")]
    Deleted,
    #[error("a stop is pending")]
    Stopping,
    #[error("the session's agent runs under its own host; Lanyard runs none of its turns")]
    HostRun {
        /// The agent's own id of the conversation is known.
        native: bool,
    },
    #[error("the session is archived")]
    Archived,
    #[error("the session is not archived")]
    NotArchived,
    #[error("no turn is running")]
    NoTurn,
    #[error("no stop is pending")]
    NoStop,
    #[error("the stop has reached level 3")]
    StopFinal,
    #[error("guidance {note} is not pending")]
    NoSuchGuidance { note: NoteId },
    #[error("{max} pieces of guidance are already pending")]
    GuidanceFull { max: usize },
    #[error("{field} is empty")]
    Empty { field: &'static str },
    #[error("{field} is longer than {max} {unit}")]
    TooLong { field: &'static str, max: usize, unit: &'static str },
    #[error("{field} has more than {max} entries")]
    TooMany { field: &'static str, max: usize },
    #[error("{field} holds a control character")]
    BadText { field: &'static str },
    #[error("nothing was named to hand over to")]
    NothingToMigrate,
    #[error("parent {parent} has ended")]
    ParentEnded { parent: SessionId },
    #[error("parent {parent} is a leaf and cannot delegate")]
    LeafCannotDelegate { parent: SessionId },
    #[error("the family would be {depth} deep and the limit is {limit}")]
    DepthExceeded { depth: u32, limit: u32 },
    #[error("the session's policy is wider than that of parent {parent}")]
    PolicyWider { parent: SessionId },
    #[error("{parent} is the session itself or one of its descendants")]
    Cycle { parent: SessionId },
    #[error("the session is already a child of {parent}")]
    AlreadyLinked { parent: SessionId },
    #[error("{children} live sessions are its children")]
    HasChildren { children: u64 },
    #[error("the log ends at {head}")]
    ForkAhead { head: u64 },
    #[error("the session has no gate {gate}")]
    NoSuchGate { gate: GateId },
    #[error("the gate has no option `{option}`; it has {}", known.join(", "))]
    NoSuchOption { option: String, known: Vec<String> },
    #[error("gate {gate} was answered with `{option}`")]
    GateAnswered { gate: GateId, option: String },
    #[error("gate {gate} is void: {why}")]
    GateVoid { gate: GateId, why: String },
    #[error("{by} writes in this session, from connection {connection}{}", from(client.as_deref()))]
    WriterHeld { by: String, client: Option<String>, connection: ConnectionId },
    #[error("the writer has changed; the epoch is {epoch}")]
    WriterSuperseded { epoch: u64 },
    #[error("connection {by} has already asked to take over")]
    TakeoverPending { by: ConnectionId },
    #[error("connection {by} has just denied to hand over")]
    TakeoverDenied { by: ConnectionId },
    #[error("nobody has asked to take over")]
    NobodyAsked,
    #[error("the inbox holds at most {max} {unit}")]
    InboxFull { max: usize, unit: &'static str },
    #[error("the session's log has reached its limit of {max} {unit}")]
    LogFull { max: u64, unit: &'static str },
    #[error("no message {turn} waits in the inbox")]
    InboxTurnUnknown { turn: TurnId },
    #[error("the order does not name each of the {waiting} messages that wait once")]
    InboxOrderWrong { waiting: usize },
    #[error("a message that waits cannot have the delivery `reject`")]
    DeliveryWaits,
    #[error("client_turn_id stands for turn {turn}, which had other content")]
    ClientTurnConflict { turn: TurnId },
    #[error("turn {turn} was handed to the agent and lost: it may have been carried out, or part of it")]
    TurnUncertain { turn: TurnId },
    #[error("turn {turn} is {}, and is not run again", status.as_str())]
    TurnNotRepeatable { turn: TurnId, status: TurnStatus },
    #[error("an agent cannot report `{signal}` about its own session")]
    SignalForbidden { signal: &'static str },
    #[error("tool calls of the session are under way, so its turn has not ended")]
    CallsOpen,
    #[error("position {seq} is past the end of the log, which is {head}")]
    SeenAhead { seq: u64, head: u64 },
    #[error("an operator halted all work")]
    Halted,
    #[error("turns of people go to sessions of level 1, and this one is of level {level}")]
    RootOnly { level: u32, root: SessionId },
    #[error("{0}")]
    Memory(#[from] memory::Refusal),
}

impl Refusal {
    /// The code clients branch on. It never changes once published.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "turn_rejected_busy",
            Self::Ended { .. } => "session_ended",
            Self::Deleted => "session_deleted",
            Self::Stopping => "session_stopping",
            Self::HostRun { .. } => "session_host_run",
            Self::Archived => "session_archived",
            Self::NotArchived => "session_not_archived",
            Self::NoTurn => "no_active_turn",
            Self::NoStop => "no_stop_pending",
            Self::StopFinal => "stop_final",
            Self::NoSuchGuidance { .. } => "guidance_not_pending",
            Self::GuidanceFull { .. } => "guidance_full",
            Self::Empty { .. } => "field_empty",
            Self::TooLong { .. } => "field_too_long",
            Self::TooMany { .. } => "field_too_many",
            Self::BadText { .. } => "field_bad_text",
            Self::NothingToMigrate => "nothing_to_migrate",
            Self::ParentEnded { .. } => "parent_ended",
            Self::LeafCannotDelegate { .. } => "leaf_cannot_delegate",
            Self::DepthExceeded { .. } => "depth_exceeded",
            Self::PolicyWider { .. } => "policy_wider",
            Self::Cycle { .. } => "link_cycle",
            Self::AlreadyLinked { .. } => "already_linked",
            Self::HasChildren { .. } => "has_children",
            Self::ForkAhead { .. } => "fork_ahead_of_log",
            Self::NoSuchGate { .. } => "gate_not_found",
            Self::NoSuchOption { .. } => "gate_option_unknown",
            Self::GateAnswered { .. } => "gate_already_answered",
            Self::GateVoid { .. } => "gate_void",
            Self::WriterHeld { .. } => "writer_held",
            Self::WriterSuperseded { .. } => "writer_superseded",
            Self::TakeoverPending { .. } => "takeover_pending",
            Self::TakeoverDenied { .. } => "takeover_denied",
            Self::NobodyAsked => "takeover_not_asked",
            Self::InboxFull { .. } => "inbox_full",
            Self::LogFull { .. } => "log_full",
            Self::InboxTurnUnknown { .. } => "inbox_turn_unknown",
            Self::InboxOrderWrong { .. } => "inbox_order_wrong",
            Self::DeliveryWaits => "delivery_waits",
            Self::ClientTurnConflict { .. } => "client_turn_conflict",
            Self::TurnUncertain { .. } => "turn_uncertain",
            Self::TurnNotRepeatable { .. } => "turn_not_repeatable",
            Self::SignalForbidden { .. } => "signal_forbidden",
            Self::CallsOpen => "calls_open",
            Self::SeenAhead { .. } => "position_ahead_of_log",
            Self::Halted => "halted",
            Self::RootOnly { .. } => "intervention_root_only",
            Self::Memory(refusal) => refusal.code(),
        }
    }

    /// One sentence of what to do.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Busy { .. } => {
                "wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--delivery queue`"
                    .into()
            }
            Self::Ended { session, state } => ended_advice(*session, *state),
            Self::Deleted => "create a new session".into(),
            Self::Stopping => "withdraw the stop with `lanyard unstop`, or wait until it is confirmed".into(),
            Self::HostRun { native } => host_run_advice(*native).into(),
            Self::Archived => "bring it back with `lanyard archive --undo`".into(),
            Self::NotArchived => "there is nothing to undo".into(),
            Self::NoTurn | Self::NoStop => "look at its state with `lanyard show`".into(),
            Self::StopFinal => "level 3 cannot be withdrawn; once stopped, `lanyard resume` brings it back".into(),
            Self::NoSuchGuidance { .. } => "list what is pending with `lanyard show`".into(),
            Self::GuidanceFull { .. } => "withdraw some, or wait until the agent has seen them".into(),
            Self::Empty { .. } => "give at least one visible character".into(),
            Self::TooLong { .. } => "shorten it; put long content into a file the agent can read".into(),
            Self::TooMany { .. } => "send fewer".into(),
            Self::BadText { .. } => "remove control characters such as NUL, escape or line breaks".into(),
            Self::NothingToMigrate => "name an agent, a worker or an owner".into(),
            Self::ParentEnded { .. } => "choose a parent that is still alive".into(),
            Self::LeafCannotDelegate { .. } => "create the session under the leaf's parent instead".into(),
            Self::DepthExceeded { .. } => "delegate from a session higher up, or raise `limits.depth`".into(),
            Self::PolicyWider { .. } => "policy is fixed at birth; create a new session under that parent".into(),
            Self::Cycle { .. } => "choose a parent outside the session's own family below it".into(),
            Self::AlreadyLinked { .. } => "there is nothing to change".into(),
            Self::HasChildren { .. } => {
                "link the children to another parent, or end or delete them first".into()
            }
            Self::NoSuchGate { .. } => "list the gates that wait with `lanyard gates`".into(),
            Self::NoSuchOption { .. } => "choose one of those, or say `allow` or `deny`".into(),
            Self::GateAnswered { .. } => "the first answer stands; nothing was changed".into(),
            Self::GateVoid { .. } => "nobody waits for it any more; look at `lanyard show`".into(),
            Self::WriterHeld { .. } => {
                "free it with `lanyard writer ID --free`, take over in `lanyard attach`, or guide it instead".into()
            }
            Self::WriterSuperseded { .. } => {
                "look who writes with `lanyard writer`, and claim it again".into()
            }
            Self::TakeoverPending { .. } => "wait until that is decided, then ask again".into(),
            Self::TakeoverDenied { .. } => "talk to them, or ask again a little later".into(),
            Self::NobodyAsked => "there is nothing to decide".into(),
            Self::InboxFull { .. } => "withdraw some with `lanyard inbox`, or wait".into(),
            Self::LogFull { unit, .. } => format!("go on with `lanyard fork`, or raise limits.log_{unit}"),
            Self::InboxTurnUnknown { .. } => {
                "it may have started or been withdrawn; look at `lanyard inbox` and `lanyard turns`".into()
            }
            Self::InboxOrderWrong { .. } => "read the inbox again, and name all of it".into(),
            Self::DeliveryWaits => "use `queue`, `steer` or `interrupt`, or withdraw the message".into(),
            Self::ClientTurnConflict { .. } => "use a new client_turn_id for a new message".into(),
            Self::TurnUncertain { .. } => {
                "read the log; to run it once more, send the same with `\"again\": true` (`lanyard send --again`)"
                    .into()
            }
            Self::TurnNotRepeatable { .. } => {
                "what failed, was cancelled or lost can be run again; for anything else use a new client_turn_id"
                    .into()
            }
            Self::SignalForbidden { .. } => "report only what you did yourself".into(),
            Self::CallsOpen => "report the end of the turn when all of its calls have returned".into(),
            Self::Halted => HALTED_ADVICE.into(),
            Self::RootOnly { root, .. } => format!("send it to {root}, or guide this session with `lanyard guide`"),
            Self::Memory(refusal) => refusal.advice(),
            Self::ForkAhead { .. } => "fork at a position that exists, or leave the position out".into(),
            Self::SeenAhead { .. } => "send a position that was shown".into(),
        }
    }

    /// The event that records the refusal of `command`, where it is one the log should tell of (S1-17).
    #[must_use]
    pub fn record(&self, session: &Session, command: &str) -> Option<Event> {
        if !self.is_recorded() || session.refused_in_row >= REFUSED_IN_ROW_MAX {
            return None;
        }
        let (command, code) = (command.to_owned(), self.code().to_owned());
        Some(ControlEvent::CommandRefused { command, code, state: session.state.name() }.into())
    }

    /// Whether the refusal is about the session's state and so belongs in its log; faults in the request itself do not.
    const fn is_recorded(&self) -> bool {
        match self {
            Self::Busy { .. }
            | Self::Ended { .. }
            | Self::Deleted
            | Self::Stopping
            | Self::HostRun { .. }
            | Self::Archived
            | Self::NotArchived
            | Self::NoTurn
            | Self::NoStop
            | Self::StopFinal
            | Self::LeafCannotDelegate { .. }
            | Self::DepthExceeded { .. }
            | Self::PolicyWider { .. }
            | Self::Cycle { .. }
            | Self::HasChildren { .. }
            | Self::SignalForbidden { .. }
            | Self::CallsOpen
            | Self::RootOnly { .. }
            | Self::ParentEnded { .. } => true,
            Self::NoSuchGuidance { .. }
            | Self::GuidanceFull { .. }
            | Self::Empty { .. }
            | Self::TooLong { .. }
            | Self::TooMany { .. }
            | Self::BadText { .. }
            | Self::NothingToMigrate
            | Self::AlreadyLinked { .. }
            | Self::NoSuchGate { .. }
            | Self::NoSuchOption { .. }
            | Self::GateAnswered { .. }
            | Self::GateVoid { .. }
            | Self::WriterHeld { .. }
            | Self::WriterSuperseded { .. }
            | Self::TakeoverPending { .. }
            | Self::TakeoverDenied { .. }
            | Self::NobodyAsked
            | Self::InboxFull { .. }
            | Self::LogFull { .. }
            | Self::InboxTurnUnknown { .. }
            | Self::InboxOrderWrong { .. }
            | Self::DeliveryWaits
            | Self::ClientTurnConflict { .. }
            | Self::TurnUncertain { .. }
            | Self::TurnNotRepeatable { .. }
            | Self::SeenAhead { .. }
            | Self::Halted
            | Self::Memory(_)
            | Self::ForkAhead { .. } => false,
        }
    }

    /// Whether the request itself is at fault, rather than the moment it came at.
    #[must_use]
    pub const fn is_bad_request(&self) -> bool {
        if let Self::Memory(refusal) = self {
            return refusal.is_bad_request();
        }
        matches!(
            self,
            Self::Empty { .. }
                | Self::TooLong { .. }
                | Self::TooMany { .. }
                | Self::BadText { .. }
                | Self::NothingToMigrate
                | Self::NoSuchOption { .. }
                | Self::DeliveryWaits
                | Self::SeenAhead { .. }
        )
    }
}

const HALTED_ADVICE: &str =
    "see why with `lanyard halt --status`; an operator lifts the halt with `lanyard halt --lift`";

fn ended_advice(session: SessionId, state: StateName) -> String {
    if state == StateName::Stopped {
        return format!("resume it with `lanyard resume {session}`, or fork it with `lanyard fork`");
    }
    "fork it with `lanyard fork` to go on from its log".into()
}

fn ended_as(state: StateName) -> String {
    if state == StateName::Stopped { "was stopped".to_owned() } else { format!("has ended as {state}") }
}

const fn host_run_advice(native: bool) -> &'static str {
    if native {
        "send words to the running agent with `lanyard guide`; to have Lanyard resume the conversation in a run of its own, use `lanyard send --resume`"
    } else {
        "send words to the running agent with `lanyard guide`; the agent's own id of the conversation is not known, so Lanyard cannot resume it"
    }
}

fn from(client: Option<&str>) -> String {
    client.map_or_else(String::new, |client| format!(" ({client})"))
}
