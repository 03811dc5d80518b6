//! A notification as it is kept and shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::{NotificationId, SessionId};
use crate::text::{cut, without_escapes};
use crate::time::Timestamp;

/// Maximum characters of a title, of a text and of a key; longer ones are cut.
const TITLE_CHARS_MAX: usize = 200;
const TEXT_CHARS_MAX: usize = 2_000;
const KEY_CHARS_MAX: usize = 200;

/// The kind of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotificationKind {
    /// A rate of continuity is beyond its limit.
    ContinuityAlert,
    /// A rate of continuity is within its limit again.
    ContinuityRecovered,
    /// A question waits for a person.
    GateWaiting,
    /// A session works, waits for no tool, and was not heard of for long.
    SuspectedOrphan,
    /// An agent works without MCP servers that it was offered.
    ToolsMissing,
    /// Words of a person expired, or their session ended, before they could be delivered.
    GuidanceUndelivered,
    /// A child was stopped, and no session above it lives to be told.
    ChildStopped,
    /// A turn was ended because it used what it may use.
    BudgetSpent,
    /// Usage is close to a budget.
    BudgetWarning,
    /// A turn waits for a limit of its provider.
    LimitReached,
    /// A turn went on after a limit.
    LimitOver,
    /// A flow waits for a person.
    FlowWaiting,
    FlowFailed,
    /// The journal is larger than its limit.
    JournalLarge,
    /// The last turn of a session finished, and no operator has seen it.
    TurnFinished,
    /// A turn failed.
    TurnFailed,
    /// The agent refused it.
    TurnRefused,
    /// The agent was lost in it.
    AgentCrashed,
}

impl NotificationKind {
    pub const ALL: [Self; 18] = [
        Self::ContinuityAlert,
        Self::ContinuityRecovered,
        Self::GateWaiting,
        Self::SuspectedOrphan,
        Self::ToolsMissing,
        Self::GuidanceUndelivered,
        Self::ChildStopped,
        Self::BudgetSpent,
        Self::BudgetWarning,
        Self::LimitReached,
        Self::LimitOver,
        Self::FlowWaiting,
        Self::FlowFailed,
        Self::JournalLarge,
        Self::TurnFinished,
        Self::TurnFailed,
        Self::TurnRefused,
        Self::AgentCrashed,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ContinuityAlert => "continuity_alert",
            Self::ContinuityRecovered => "continuity_recovered",
            Self::GateWaiting => "gate_waiting",
            Self::SuspectedOrphan => "suspected_orphan",
            Self::ToolsMissing => "tools_missing",
            Self::GuidanceUndelivered => "guidance_undelivered",
            Self::ChildStopped => "child_stopped",
            Self::BudgetSpent => "budget_spent",
            Self::BudgetWarning => "budget_warning",
            Self::LimitReached => "limit_reached",
            Self::LimitOver => "limit_over",
            Self::FlowWaiting => "flow_waiting",
            Self::FlowFailed => "flow_failed",
            Self::JournalLarge => "journal_large",
            Self::TurnFinished => "turn_finished",
            Self::TurnFailed => "turn_failed",
            Self::TurnRefused => "turn_refused",
            Self::AgentCrashed => "agent_crashed",
        }
    }
}

/// Urgency of a notification.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    #[default]
    Info,
    Warning,
    /// Delivered even in quiet hours.
    Critical,
}

impl Severity {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// The handling of a notification by people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotificationStatus {
    New,
    Read,
    Acknowledged,
    /// Put off; it is new again when its time comes.
    Snoozed,
    Dismissed,
}

impl NotificationStatus {
    pub const ALL: [Self; 5] = [Self::New, Self::Read, Self::Acknowledged, Self::Snoozed, Self::Dismissed];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Read => "read",
            Self::Acknowledged => "acknowledged",
            Self::Snoozed => "snoozed",
            Self::Dismissed => "dismissed",
        }
    }
}

/// A notification for operators.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notification {
    pub id: NotificationId,
    pub kind: NotificationKind,
    pub severity: Severity,
    /// Key of the condition: while it lasts, no other notification has the same key.
    pub key: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The id of what it is about: a gate, a note, a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub status: NotificationStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<Timestamp>,
    /// Note of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The actor of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    pub raised_at: Timestamp,
    pub changed_at: Timestamp,
    /// End of the condition; absent while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_at: Option<Timestamp>,
    /// Number of times the condition was raised again while it lasted.
    #[serde(default)]
    pub repeats: u64,
    /// Counts the changes of all notifications: a reader asks for what is after the last it saw.
    pub change: u64,
}

/// A notification to be raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNotification {
    pub kind: NotificationKind,
    pub severity: Severity,
    pub key: String,
    pub title: String,
    pub text: String,
    pub session: Option<SessionId>,
    pub subject: Option<String>,
    /// Whether it tells of something that goes on until somebody says that it is over; if not, it is over at once.
    pub lasts: bool,
}

impl NewNotification {
    /// The notification it becomes.
    #[must_use]
    pub fn made(self, id: NotificationId, now: Timestamp, change: u64) -> Notification {
        let (title, text) = (one_line(&self.title), plain(&self.text));
        Notification {
            id,
            kind: self.kind,
            severity: self.severity,
            key: self.dedupe_key(),
            title,
            text,
            session: self.session,
            subject: self.subject,
            status: NotificationStatus::New,
            snoozed_until: None,
            note: None,
            by: None,
            raised_at: now,
            changed_at: now,
            over_at: (!self.lasts).then_some(now),
            repeats: 0,
            change,
        }
    }

    /// The key as it is kept.
    #[must_use]
    pub fn dedupe_key(&self) -> String {
        cut(&self.key, KEY_CHARS_MAX).0.to_owned()
    }
}

/// Titles may hold an agent's words: they are shown on one line, without what moves a terminal's cursor.
fn one_line(text: &str) -> String {
    crate::text::one_line(text, TITLE_CHARS_MAX)
}

fn plain(text: &str) -> String {
    let text = without_escapes(text);
    let kept: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    cut(kept.trim(), TEXT_CHARS_MAX).0.to_owned()
}
