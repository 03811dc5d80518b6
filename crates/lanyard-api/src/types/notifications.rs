//! The words of metrics and notifications.

use lanyard_core::continuity::{Alert, ContinuityRules, ContinuityStatus, Rates};
use lanyard_core::notification::{
    Notification, NotificationDelivery, NotificationKind, NotificationStatus, Severity,
};
use lanyard_core::{NotificationId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How well people get back to their sessions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ContinuityReport {
    pub continuity_status: ContinuityStatus,
    pub now: Timestamp,
    /// Rates over the window, by which alerts begin and end.
    #[serde(flatten)]
    pub rates: Rates,
    pub alerts: Vec<Alert>,
    /// Counted in the window.
    pub window: ContinuityCounts,
    /// Counted since ever.
    pub totals: ContinuityCounts,
    pub rules: ContinuityRules,
}

/// Counts. An attempt is one that succeeded or failed: what names no session, or may not, is none.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContinuityCounts {
    pub sessions_created: u64,
    pub accidental_new_sessions: u64,
    pub attach_attempts: u64,
    pub attach_succeeded: u64,
    pub attach_failed: u64,
    pub resume_attempts: u64,
    pub resume_succeeded: u64,
    pub resume_failed: u64,
    pub busy_rejections: u64,
    /// Messages and other requests that had been made before and were not carried out again.
    pub duplicate_suppressions: u64,
    pub duplicate_turns: u64,
    /// How conversations went on.
    pub continuity: ContinuityLabels,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContinuityLabels {
    pub exact: u64,
    pub native: u64,
    pub replayed: u64,
    pub preamble: u64,
    pub lost: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NotificationPage {
    pub notifications: Vec<Notification>,
    /// Give it back as `cursor` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Give it back as `after`, with `wait_ms`, to hear of what changes from here on.
    pub after: u64,
    /// Number of notifications of each status.
    pub counts: Vec<NotificationCount>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NotificationCount {
    pub status: NotificationStatus,
    pub notifications: u64,
}

/// A notification, and how its deliveries went.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NotificationDetail {
    #[serde(flatten)]
    pub notification: Notification,
    pub deliveries: Vec<NotificationDelivery>,
}

/// What is to become of a notification.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotificationEdit {
    pub status: NotificationStatus,
    /// For `snoozed`: when it is new again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Or after how many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snooze_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The same for many.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotificationBulk {
    pub filter: NotificationWhich,
    pub status: NotificationStatus,
    /// For `snoozed`: when they are new again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Or after how many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snooze_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// At most so many are changed; 100 when it is left out, 500 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Which notifications. All conditions hold; one at least is needed, `all` is one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotificationWhich {
    /// Every one that was not dismissed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<NotificationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<NotificationStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<NotificationKind>,
    /// At least as pressing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NotificationBulkAnswer {
    pub changed: Vec<NotificationId>,
    /// They were so already.
    pub unchanged: Vec<NotificationId>,
    pub refused: Vec<RefusedNotification>,
    /// There are more that match.
    pub more: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RefusedNotification {
    pub id: NotificationId,
    pub code: String,
    pub title: String,
}

/// Which dismissed notifications go for good.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotificationPurge {
    /// Only those that were last changed so long ago.
    pub older_than_ms: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NotificationsPurged {
    pub removed: u64,
}
