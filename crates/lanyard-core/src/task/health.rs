//! Whether a worker does well, and what to do about it when it does not. Keyed by the worker, which stays the same over
//! every restart. Silence alone is never a fault: a call that runs, or a word just sent, suspends all remedies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::record::Remedies;
use crate::time::Timestamp;

/// Limits of time and number for a worker's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HealthRules {
    /// Milliseconds without anything new before a worker between turns counts as idle.
    pub idle_ms: u64,
    /// Milliseconds without anything new in the middle of a turn before it counts as stuck.
    pub stuck_ms: u64,
    /// The same call, with the same arguments, in a row.
    pub same_calls: u32,
    /// Failed calls or errors in a row.
    pub errors: u32,
    /// Milliseconds after a remedy, or a word of somebody's, in which nothing is done.
    pub patience_ms: u64,
    /// Nudges before the run is started again.
    pub nudges: u32,
    /// Times a run is started again, for whatever reason, before a person is asked or the task fails.
    pub restarts: u32,
}

impl Default for HealthRules {
    fn default() -> Self {
        Self {
            idle_ms: 10 * 60_000,
            stuck_ms: 30 * 60_000,
            same_calls: 8,
            errors: 8,
            patience_ms: 5 * 60_000,
            nudges: 2,
            restarts: 2,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    Well,
    /// Between turns, and nothing comes.
    Idle,
    /// In a turn, and nothing comes.
    Stuck,
    /// The same call again and again.
    Looping,
    ErrorStreak,
    /// The model's provider asks it to wait.
    RateLimited,
}

impl Condition {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Idle => "idle",
            Self::Stuck => "stuck",
            Self::Looping => "looping",
            Self::ErrorStreak => "error_streak",
            Self::RateLimited => "rate_limited",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// A word of guidance.
    Nudge,
    /// End the run and start it again.
    Restart,
    /// A person is asked.
    Escalate,
}

/// Facts about a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vitals {
    pub executing: bool,
    /// Calls that have not returned.
    pub open_calls: usize,
    pub quiet_ms: u64,
    /// Since somebody last sent it words.
    pub steered_ms: Option<u64>,
    pub same_calls: u32,
    pub errors: u32,
    pub rate_limited: bool,
    /// A gate waits for a person.
    pub asks: bool,
}

#[must_use]
pub fn judge(vitals: &Vitals, rules: &HealthRules) -> Condition {
    if vitals.rate_limited {
        return Condition::RateLimited;
    }
    if vitals.same_calls >= rules.same_calls {
        return Condition::Looping;
    }
    if vitals.errors >= rules.errors {
        return Condition::ErrorStreak;
    }
    // Who waits for a tool or for a person is at work.
    if vitals.open_calls > 0 || vitals.asks {
        return Condition::Well;
    }
    match vitals.executing {
        true if vitals.quiet_ms >= rules.stuck_ms => Condition::Stuck,
        false if vitals.quiet_ms >= rules.idle_ms => Condition::Idle,
        true | false => Condition::Well,
    }
}

/// The next remedy, given those that were already tried.
#[must_use]
pub fn remedy(
    condition: Condition,
    vitals: &Vitals,
    done: &Remedies,
    now: Timestamp,
    rules: &HealthRules,
) -> Option<Remedy> {
    let recently = done.last_at.is_some_and(|at| now.millis_since(at) < rules.patience_ms);
    let steered = vitals.steered_ms.is_some_and(|since| since < rules.patience_ms);
    if recently || steered || vitals.open_calls > 0 || vitals.asks {
        return None;
    }
    match condition {
        Condition::Well | Condition::RateLimited => None,
        Condition::Idle | Condition::Looping | Condition::ErrorStreak | Condition::Stuck => {
            if done.nudges < rules.nudges {
                Some(Remedy::Nudge)
            } else if done.restarts < rules.restarts && condition != Condition::Idle {
                Some(Remedy::Restart)
            } else if done.escalations == 0 {
                Some(Remedy::Escalate)
            } else {
                None
            }
        }
    }
}
