//! Actions of people and policy on a session: stops, guidance, notices and refusals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{NoteId, SessionId};
use crate::session::calls::{Channel, Compliance};
use crate::session::guidance::NoteKind;
use crate::session::record::is_default;
use crate::session::state::StateName;
use crate::session::stop::{StopLevel, StopScope};

/// People and policy acting on the session, and what was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum ControlEvent {
    #[serde(rename = "stop.requested")]
    StopRequested {
        level: StopLevel,
        #[serde(default, skip_serializing_if = "is_default")]
        scope: StopScope,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The session it was born under, whose stop it inherits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inherited: Option<SessionId>,
    },
    /// The directive was given to the agent: in front of an answer, or instead of one.
    #[serde(rename = "stop.applied")]
    StopApplied {
        level: StopLevel,
        channel: Channel,
        call: String,
        tool: String,
        /// The call was not carried out.
        refused: bool,
    },
    /// The agent does what was asked: it handed off, completes, or says that it heard.
    #[serde(rename = "stop.complied")]
    StopComplied { how: Compliance },
    /// A stop of the turn alone has nothing left to end.
    #[serde(rename = "stop.settled")]
    StopSettled {},
    #[serde(rename = "stop.raised")]
    StopRaised {
        from: StopLevel,
        to: StopLevel,
        /// The scope of the stop from now on, where it grew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<StopScope>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The agent has no way to end this work alone: it goes on until it is done, or until the work it is part of ends.
    #[serde(rename = "end.blocked")]
    EndBlocked { why: String },
    #[serde(rename = "stop.withdrawn")]
    StopWithdrawn {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    #[serde(rename = "guidance.queued")]
    GuidanceQueued {
        note: NoteId,
        #[serde(default, skip_serializing_if = "is_default")]
        kind: NoteKind,
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
        /// The child a notice tells of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<SessionId>,
    },
    #[serde(rename = "guidance.delivered")]
    GuidanceDelivered {
        notes: Vec<NoteId>,
        channel: String,
        /// The call in whose answer they went.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// The daemon that sent the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The beginning of what was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<String>,
    },
    /// The answer that carried them may not have arrived: they go again, marked as a repeat.
    #[serde(rename = "guidance.returned")]
    GuidanceReturned { notes: Vec<NoteId> },
    #[serde(rename = "guidance.settled")]
    GuidanceSettled { notes: Vec<NoteId>, how: Settled },
    /// The end of this session under a stop was reported to an ancestor; without a living one, to the
    /// operators.
    #[serde(rename = "notice.sent")]
    NoticeSent {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<SessionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<NoteId>,
    },
    /// An agent told who it is, and by which id it knows the session.
    #[serde(rename = "agent.introduced")]
    Introduced {
        agent: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extension_session_id: Option<String>,
    },
    /// An agent handed its work to another.
    #[serde(rename = "agent.handed_off")]
    HandedOff { from: String, to: String, reason: String },
    /// A command that did not fit the state; nothing else changed.
    #[serde(rename = "command.refused")]
    CommandRefused { command: String, code: String, state: StateName },
    /// A signal that the state did not allow for; nothing else changed.
    #[serde(rename = "signal.unexpected")]
    SignalUnexpected { signal: String, state: StateName },
}

/// The final state of a piece of guidance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// A later call came: the agent went on with the words before it.
    Acknowledged,
    Withdrawn,
    /// The guidance expired before delivery.
    Expired,
    /// The session ended before the words could be delivered.
    Undelivered,
}
