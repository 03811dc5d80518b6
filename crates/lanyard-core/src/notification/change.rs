//! Status changes of a notification.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::notification::record::{Notification, NotificationStatus};
use crate::refusals;
use crate::time::Timestamp;

/// Longest time something may be put off: thirty days.
pub const SNOOZE_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Characters of a note.
const NOTE_CHARS_MAX: usize = 500;

/// An operator's action on a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotificationChange {
    /// As if it had not been seen.
    Renew,
    Read,
    Acknowledge,
    Snooze {
        until: Timestamp,
    },
    Dismiss,
}

refusals! {
    /// Why nothing was changed.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
    #[serde(tag = "code", rename_all = "snake_case")]
    pub enum NotificationRefusal {
        NotificationDismissed => "notification_dismissed", Conflict
            ("the notification was dismissed")
            ("a dismissed notification stays dismissed; the next occurrence raises a new one");
        SnoozeInPast { until: Timestamp } => "snooze_in_past", Invalid
            ("the snooze would end at {until}, which is not in the future")
            ("send `until` in the future, or `snooze_ms` of at least 1");
        SnoozeTooLong { until: Timestamp } => "snooze_too_long", Invalid
            ("the snooze would end at {until}, which is too far ahead") ("choose at most 30 days");
        NoteTooLong { chars: usize } => "note_too_long", Invalid
            ("the note has {chars} characters") ("use at most 500 characters");
    }
}

/// The notification as it is after the change; nothing when it is so already. The change's own number is the caller's.
pub fn change(
    held: &Notification,
    change: &NotificationChange,
    note: Option<&str>,
    by: &Actor,
    now: Timestamp,
) -> Result<Option<Notification>, NotificationRefusal> {
    if let Some(chars) = note.map(|note| note.chars().count()).filter(|chars| *chars > NOTE_CHARS_MAX) {
        return Err(NotificationRefusal::NoteTooLong { chars });
    }
    let status = match change {
        NotificationChange::Renew => NotificationStatus::New,
        NotificationChange::Read => NotificationStatus::Read,
        NotificationChange::Acknowledge => NotificationStatus::Acknowledged,
        NotificationChange::Dismiss => NotificationStatus::Dismissed,
        NotificationChange::Snooze { until } if *until <= now => {
            return Err(NotificationRefusal::SnoozeInPast { until: *until });
        }
        NotificationChange::Snooze { until } if until.millis_since(now) > SNOOZE_MS_MAX => {
            return Err(NotificationRefusal::SnoozeTooLong { until: *until });
        }
        NotificationChange::Snooze { .. } => NotificationStatus::Snoozed,
    };
    let snoozed_until = match change {
        NotificationChange::Snooze { until } => Some(*until),
        NotificationChange::Renew
        | NotificationChange::Read
        | NotificationChange::Acknowledge
        | NotificationChange::Dismiss => None,
    };
    match (held.status, status) {
        (NotificationStatus::Dismissed, NotificationStatus::Dismissed) => return Ok(None),
        (NotificationStatus::Dismissed, _) => return Err(NotificationRefusal::NotificationDismissed),
        // Who acknowledged it has read it.
        (NotificationStatus::Acknowledged, NotificationStatus::Read) => return Ok(None),
        (before, after) if before == after && held.snoozed_until == snoozed_until && note.is_none() => {
            return Ok(None);
        }
        _ => {}
    }
    let note = note.map(str::trim).filter(|note| !note.is_empty()).map(str::to_owned);
    Ok(Some(Notification {
        status,
        snoozed_until,
        note: note.or_else(|| held.note.clone()),
        by: Some(by.clone()),
        changed_at: now,
        ..held.clone()
    }))
}

/// The time of a snooze has come: it is new again, with the note it was put off with.
#[must_use]
pub fn wake(held: &Notification, now: Timestamp) -> Option<Notification> {
    let due =
        held.status == NotificationStatus::Snoozed && held.snoozed_until.is_some_and(|until| until <= now);
    due.then(|| Notification {
        status: NotificationStatus::New,
        snoozed_until: None,
        by: Some(Actor::system("timer")),
        changed_at: now,
        ..held.clone()
    })
}

/// Counts a repeat of a condition that lasts; the notification is not raised again, whatever its status.
#[must_use]
pub fn repeat(held: &Notification) -> Notification {
    Notification { repeats: held.repeats.saturating_add(1), ..held.clone() }
}

/// Marks the condition as over. A notification that needs no action any more is dismissed with it.
#[must_use]
pub fn end(held: &Notification, dismiss: Option<&str>, now: Timestamp) -> Notification {
    let mut ended = Notification { over_at: Some(now), changed_at: now, ..held.clone() };
    if let Some(why) = dismiss
        && ended.status != NotificationStatus::Dismissed
    {
        ended.status = NotificationStatus::Dismissed;
        ended.snoozed_until = None;
        ended.note = Some(why.to_owned());
        ended.by = Some(Actor::system("notifications"));
    }
    ended
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;
    use crate::id::NotificationId;
    use crate::notification::{NewNotification, NotificationKind, Severity};

    const NOW: Timestamp = Timestamp::from_millis(1_794_729_600_000);

    fn held(status: NotificationStatus) -> Notification {
        let new = NewNotification {
            kind: NotificationKind::ContinuityAlert,
            severity: Severity::Warning,
            key: "continuity:attach_success_rate".to_owned(),
            title: "attach\u{1b}[2J fails".to_owned(),
            text: String::new(),
            session: None,
            subject: None,
            lasts: true,
        };
        let until = (status == NotificationStatus::Snoozed).then(|| NOW.plus_millis(500));
        Notification { status, snoozed_until: until, ..new.made(NotificationId::from_u128(1), NOW, 1) }
    }

    /// S3-42: every status against every change.
    #[test]
    fn what_may_become_of_a_notification() {
        let changes = [
            ("renew", NotificationChange::Renew),
            ("read", NotificationChange::Read),
            ("ack", NotificationChange::Acknowledge),
            ("snooze", NotificationChange::Snooze { until: NOW.plus_millis(1_000) }),
            ("dismiss", NotificationChange::Dismiss),
        ];
        let mut table = String::new();
        for from in NotificationStatus::ALL {
            let to = changes.each_ref().map(|(name, wish)| {
                let to = match change(&held(from), wish, None, &Actor::operator("alex"), NOW) {
                    Ok(Some(after)) => after.status.as_str(),
                    Ok(None) => "-",
                    Err(refusal) => refusal.code(),
                };
                format!("{name} {to}")
            });
            writeln!(table, "{}: {}", from.as_str(), to.join(", ")).unwrap();
        }
        expect![[r"
            new: renew -, read read, ack acknowledged, snooze snoozed, dismiss dismissed
            read: renew new, read -, ack acknowledged, snooze snoozed, dismiss dismissed
            acknowledged: renew new, read -, ack -, snooze snoozed, dismiss dismissed
            snoozed: renew new, read read, ack acknowledged, snooze snoozed, dismiss dismissed
            dismissed: renew notification_dismissed, read notification_dismissed, ack notification_dismissed, snooze notification_dismissed, dismiss -
        "]]
        .assert_eq(&table);
    }

    /// S3-42, S3-B12.
    #[test]
    fn a_snooze_keeps_its_note_and_ends_at_its_time() {
        let by = Actor::operator("alex");
        let until = NOW.plus_millis(1_000);
        let wish = NotificationChange::Snooze { until };
        let snoozed =
            change(&held(NotificationStatus::New), &wish, Some(" deploying "), &by, NOW).unwrap().unwrap();
        assert_eq!((snoozed.note.as_deref(), snoozed.snoozed_until), (Some("deploying"), Some(until)));
        assert_eq!(wake(&snoozed, NOW.plus_millis(999)), None);
        let woken = wake(&snoozed, until).unwrap();
        assert_eq!((woken.status, woken.snoozed_until), (NotificationStatus::New, None));
        assert_eq!(woken.note.as_deref(), Some("deploying"));
        assert_eq!(wake(&woken, until), None, "once");
    }

    #[test]
    fn bad_times_and_long_notes_are_refused() {
        let by = Actor::operator("alex");
        let code = |until, note: Option<&str>| {
            let wish = NotificationChange::Snooze { until };
            change(&held(NotificationStatus::New), &wish, note, &by, NOW).unwrap_err().code()
        };
        assert_eq!(code(NOW, None), "snooze_in_past");
        assert_eq!(code(NOW.minus_millis(1), None), "snooze_in_past");
        assert_eq!(code(NOW.plus_millis(SNOOZE_MS_MAX + 1), None), "snooze_too_long");
        assert_eq!(code(NOW.plus_millis(1), Some(&"x".repeat(501))), "note_too_long");
    }

    /// S3-38: whatever people did about it, it is not told again while it lasts.
    #[test]
    fn an_end_is_not_a_dismissal_unless_nobody_need_handle_it() {
        let over = end(&held(NotificationStatus::Acknowledged), None, NOW);
        assert_eq!((over.status, over.over_at), (NotificationStatus::Acknowledged, Some(NOW)));
        let gone = end(&held(NotificationStatus::Snoozed), Some("it was answered"), NOW);
        assert_eq!((gone.status, gone.snoozed_until), (NotificationStatus::Dismissed, None));
        assert_eq!(repeat(&held(NotificationStatus::Dismissed)).status, NotificationStatus::Dismissed);
    }

    #[test]
    fn a_title_cannot_move_the_cursor() {
        assert_eq!(held(NotificationStatus::New).title, "attach fails");
    }
}
