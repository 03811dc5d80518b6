//! A notification on its way outward: at least once, and every try after the first is known as one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{DeliveryId, NotificationId};
use crate::text::cut;
use crate::time::Timestamp;

/// Characters kept of why a try failed.
const WHY_CHARS_MAX: usize = 300;

/// A notification to one receiver. Written in the same transaction as the notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotificationDelivery {
    pub id: DeliveryId,
    pub notification: NotificationId,
    /// The receiver's name in the config.
    pub to: String,
    pub created_at: Timestamp,
    /// Tries that were begun. Written before each, so that a try after a crash says that it may be a repeat.
    pub attempts: u32,
    pub state: DeliveryState,
    /// Why the last try failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum DeliveryState {
    /// To be tried at this time.
    Pending {
        due_at: Timestamp,
    },
    Delivered {
        at: Timestamp,
    },
    /// The notification was dismissed before the first attempt.
    Dropped {
        at: Timestamp,
    },
    /// Given up; it stays to be looked at.
    Dead {
        at: Timestamp,
    },
}

impl DeliveryState {
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Delivered { .. } => "delivered",
            Self::Dead { .. } => "dead",
            Self::Dropped { .. } => "dropped",
        }
    }

    #[must_use]
    pub const fn due_at(&self) -> Option<Timestamp> {
        match self {
            Self::Pending { due_at } => Some(*due_at),
            Self::Delivered { .. } | Self::Dead { .. } | Self::Dropped { .. } => None,
        }
    }
}

/// Number of delivery attempts, and the pauses between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryRules {
    pub attempts_max: u32,
    /// The pause after the first try; each further one is twice as long.
    pub first_pause_ms: u64,
    pub pause_ms_max: u64,
}

impl RetryRules {
    /// The pause after so many tries.
    #[must_use]
    pub fn pause_ms(&self, attempts: u32) -> u64 {
        let doublings = attempts.saturating_sub(1).min(32);
        self.first_pause_ms.saturating_mul(1 << doublings).min(self.pause_ms_max)
    }
}

impl NotificationDelivery {
    #[must_use]
    pub const fn new(id: DeliveryId, notification: NotificationId, to: String, now: Timestamp) -> Self {
        let state = DeliveryState::Pending { due_at: now };
        Self { id, notification, to, created_at: now, attempts: 0, state, last_error: None }
    }

    /// Begins an attempt. Until its result is known the attempt counts as failed, and is due again after the pause.
    #[must_use]
    pub fn begun(&self, rules: &RetryRules, now: Timestamp) -> Self {
        let attempts = self.attempts.saturating_add(1);
        let due_at = now.plus_millis(rules.pause_ms(attempts));
        Self { attempts, state: DeliveryState::Pending { due_at }, ..self.clone() }
    }

    #[must_use]
    pub fn succeeded(&self, now: Timestamp) -> Self {
        Self { state: DeliveryState::Delivered { at: now }, last_error: None, ..self.clone() }
    }

    /// The try that was begun failed. After the last one it is given up, visibly.
    #[must_use]
    pub fn failed(&self, why: &str, rules: &RetryRules, now: Timestamp) -> Self {
        let state = if self.attempts >= rules.attempts_max {
            DeliveryState::Dead { at: now }
        } else {
            DeliveryState::Pending { due_at: now.plus_millis(rules.pause_ms(self.attempts)) }
        };
        Self { state, last_error: Some(cut(why, WHY_CHARS_MAX).0.to_owned()), ..self.clone() }
    }

    /// Postpones the delivery without an attempt.
    #[must_use]
    pub fn put_off(&self, due_at: Timestamp) -> Self {
        Self { state: DeliveryState::Pending { due_at }, ..self.clone() }
    }

    #[must_use]
    pub fn dropped(&self, now: Timestamp) -> Self {
        Self { state: DeliveryState::Dropped { at: now }, ..self.clone() }
    }

    /// Gives up: the receiver does not exist.
    #[must_use]
    pub fn dead(&self, why: &str, now: Timestamp) -> Self {
        Self { state: DeliveryState::Dead { at: now }, last_error: Some(why.to_owned()), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit_and_the_last_try_ends_it() {
        let rules = RetryRules { attempts_max: 3, first_pause_ms: 1_000, pause_ms_max: 3_000 };
        let now = Timestamp::from_millis(10_000);
        assert_eq!([1, 2, 3, 60].map(|attempts| rules.pause_ms(attempts)), [1_000, 2_000, 3_000, 3_000]);
        let new = NotificationDelivery::new(
            DeliveryId::from_u128(1),
            NotificationId::from_u128(2),
            "x".into(),
            now,
        );
        let begun = new.begun(&rules, now);
        assert_eq!((begun.attempts, begun.state.due_at()), (1, Some(now.plus_millis(1_000))));
        let failed = begun.failed("no", &rules, now).begun(&rules, now).failed("no", &rules, now);
        assert_eq!((failed.attempts, failed.state.as_str()), (2, "pending"));
        let dead = failed.begun(&rules, now).failed("no", &rules, now);
        assert_eq!((dead.attempts, dead.state, dead.id), (3, DeliveryState::Dead { at: now }, new.id));
        assert_eq!(begun.succeeded(now).state.as_str(), "delivered");
    }
}
