//! Mail between parents and children. Each box is ordered and delivers at least once; a message is acknowledged after
//! it was handled, and none is discarded without a record.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{IdError, MailId, NoteId, SessionId, TaskId, WorkerId};
use crate::session::{Settled, directive};
use crate::task::record::TaskState;
use crate::text::cut;
use crate::time::Timestamp;

/// Characters of one message; more is cut, and said so.
pub const TEXT_CHARS_MAX: usize = 8_000;
/// Messages that may wait in one box. Further ones are refused, except an end.
pub const BOX_MAX: usize = 1_000;

/// The owner of a box: a task, whichever worker it has, or a session without a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MailTo {
    Task(TaskId),
    Session(SessionId),
}

impl MailTo {
    #[must_use]
    pub const fn bits(self) -> u128 {
        match self {
            Self::Task(id) => id.as_u128(),
            Self::Session(id) => id.as_u128(),
        }
    }
}

impl fmt::Display for MailTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(id) => id.fmt(f),
            Self::Session(id) => id.fmt(f),
        }
    }
}

impl FromStr for MailTo {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        match text.parse() {
            Ok(task) => Ok(Self::Task(task)),
            Err(IdError::Prefix(_)) => text.parse().map(Self::Session),
            Err(error @ IdError::Suffix) => Err(error),
        }
    }
}

impl Serialize for MailTo {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MailTo {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for MailTo {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MailTo".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^(task|sess)_[0-7][0-9a-hjkmnp-tv-z]{25}$",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MailKind {
    /// A child ended; `state` says how.
    Ended,
    Progress,
    Question,
    Error,
    Message,
}

impl MailKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Progress => "progress",
            Self::Question => "question",
            Self::Error => "error",
            Self::Message => "message",
        }
    }
}

/// The author.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MailFrom {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// The agent's name, or the operator's.
    pub name: String,
    /// A person wrote it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mail {
    pub id: MailId,
    /// The owner of the box.
    pub to: MailTo,
    /// Position in the box.
    pub seq: u64,
    pub from: MailFrom,
    pub kind: MailKind,
    /// The end state of the child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<TaskState>,
    pub text: String,
    pub at: Timestamp,
    #[serde(flatten)]
    pub state: MailState,
    /// Number of deliveries.
    #[serde(default)]
    pub times: u32,
    /// The box in which the message was before, when the owner of that box had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded_from: Option<MailTo>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum MailState {
    /// The message waits for a recipient.
    Pending,
    /// The message is queued for the session's agent.
    Given {
        session: SessionId,
        note: NoteId,
        given_at: Timestamp,
    },
    /// The message went out in the answer to a call of Lanyard's own tools.
    Shown {
        session: SessionId,
        shown_at: Timestamp,
    },
    Acknowledged {
        session: Option<SessionId>,
        acknowledged_at: Timestamp,
        how: String,
    },
    /// The message has no recipient left. It stays until a person reads it.
    Dead {
        why: String,
        dead_at: Timestamp,
    },
}

impl MailState {
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Given { .. } => "given",
            Self::Shown { .. } => "shown",
            Self::Acknowledged { .. } => "acknowledged",
            Self::Dead { .. } => "dead",
        }
    }

    /// Whether no action remains for the message.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        matches!(self, Self::Acknowledged { .. } | Self::Dead { .. })
    }

    #[must_use]
    pub const fn is_dead(&self) -> bool {
        matches!(self, Self::Dead { .. })
    }
}

impl Mail {
    /// The words, with whose they are.
    #[must_use]
    pub fn words(&self) -> String {
        let what = match (self.kind, self.ended) {
            (MailKind::Ended, Some(state)) => format!("ended: {state}"),
            (kind, _) => kind.as_str().to_owned(),
        };
        let from = &self.from;
        let name = directive::defuse(&from.name).unwrap_or_else(|| from.name.clone());
        let parts = [
            Some(format!("{} ({what}) from {name}", self.id)),
            from.task.map(|task| format!("task {task}")),
            from.session.map(|session| format!("session {session}")),
            from.run.map(|run| format!("run {run}")),
        ];
        let head: Vec<String> = parts.into_iter().flatten().collect();
        format!("{}\n{}", head.join(", "), self.text)
    }

    /// The note of the same message.
    #[must_use]
    pub const fn note(&self) -> NoteId {
        NoteId::from_u128(self.id.as_u128())
    }

    /// The message of the same note.
    #[must_use]
    pub const fn of_note(note: NoteId) -> MailId {
        MailId::from_u128(note.as_u128())
    }

    /// The message after its note was queued for a session's agent; none when it did not wait for that.
    #[must_use]
    pub fn queued(&self, session: SessionId, given_at: Timestamp) -> Option<Self> {
        let state = MailState::Given { session, note: self.note(), given_at };
        (self.state == MailState::Pending).then(|| Self { state, times: self.times + 1, ..self.clone() })
    }

    /// The message after its note was settled in a session; none when that changes nothing. Words that were heard, or
    /// withdrawn, are settled wherever the message is; words that were not wait again in their box.
    #[must_use]
    pub fn settled(&self, session: SessionId, how: Settled, at: Timestamp) -> Option<Self> {
        let heard = |how: &str| MailState::Acknowledged {
            session: Some(session),
            acknowledged_at: at,
            how: how.to_owned(),
        };
        let state = match how {
            Settled::Acknowledged => heard("its agent went on after it"),
            Settled::Withdrawn => heard("somebody took it back"),
            Settled::Expired | Settled::Undelivered => MailState::Pending,
        };
        let changes = match &self.state {
            MailState::Given { session: to, .. } => state.is_settled() || *to == session,
            MailState::Pending | MailState::Shown { .. } => state.is_settled(),
            MailState::Acknowledged { .. } | MailState::Dead { .. } => false,
        };
        changes.then(|| Self { state, ..self.clone() })
    }
}

/// The sender's place relative to the task that owns the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// A person, or an agent the task reports to, directly or not.
    Above,
    /// An agent that works for the task.
    Below,
}

/// Whether a message stays in the box of a task in this state. A cancelled or failed task can be retried, and messages
/// from above are for its next worker. Reports from below go to the next ancestor, and a completed task expects nothing
/// more.
#[must_use]
pub const fn waits_for_next_run(state: TaskState, sender: Sender) -> bool {
    match state {
        TaskState::Cancelled | TaskState::Failed => matches!(sender, Sender::Above),
        TaskState::Completed => false,
        TaskState::Pending
        | TaskState::Deploying
        | TaskState::Running
        | TaskState::Paused
        | TaskState::Interrupted => true,
    }
}

/// The text as it is kept: nothing in it can be taken for Lanyard's words, and it is not too long.
#[must_use]
pub fn admit(text: &str) -> String {
    let safe = directive::defuse(text).unwrap_or_else(|| text.to_owned());
    let (kept, was_cut) = cut(&safe, TEXT_CHARS_MAX);
    if was_cut {
        format!("{kept}\n[cut here; the whole text is in the log of its session]")
    } else {
        kept.to_owned()
    }
}
