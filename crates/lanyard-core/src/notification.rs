//! Notifications: what an operator should know, and what became of it.
//!
//! A notification tells of a condition. Whether the condition lasts (`over_at`) and how people handled the telling
//! (`status`) are two things: an alert that was dismissed is not raised again while what it tells of goes on. The rules are
//! pure; nothing here knows where notifications are kept or how they travel.

mod change;
mod delivery;
mod quiet;
mod record;
mod watch;

pub use change::{NotificationChange, NotificationRefusal, SNOOZE_MS_MAX, change, end, repeat, wake};
pub use delivery::{Delivery, DeliveryState, RetryRules};
pub use quiet::QuietHours;
pub use record::{NewNotification, Notification, NotificationKind, NotificationStatus, Severity};
pub use watch::{TURN_KEY, wanted, wanted_of_end, wanted_of_gate, watched_key};
