//! Notifications for operators, and their handling.
//!
//! A notification reports a condition. The condition (`over_at`) and the handling by people (`status`) are separate: a
//! dismissed alert is not raised again while its condition lasts. The rules are pure; this module knows neither storage
//! nor delivery.

mod change;
mod delivery;
mod quiet;
mod record;
mod watch;

pub use change::{NotificationChange, NotificationRefusal, SNOOZE_MS_MAX, change, end, repeat, wake};
pub use delivery::{DeliveryState, NotificationDelivery, RetryRules};
pub use quiet::QuietHours;
pub use record::{NewNotification, Notification, NotificationKind, NotificationStatus, Severity};
pub use watch::{TURN_KEY, wanted, wanted_of_end, wanted_of_gate, watched_key};
