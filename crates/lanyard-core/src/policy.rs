//! Numbers that are choices: staleness, limits, memory mode. One table each, all overridable in the config.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::BudgetRules;
use crate::task::health::HealthRules;
use crate::task::schedule::FamilyRules;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// The one staleness table. All in milliseconds without activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Staleness {
    /// An executing session without a heartbeat or call for this long is a suspected orphan.
    pub suspect_after_ms: u64,
    /// A resting session becomes `idle`.
    pub idle_after_ms: u64,
    /// An idle session becomes `stale`.
    pub stale_after_ms: u64,
    /// A stale session is shown as critical.
    pub critical_after_ms: u64,
    /// An ended session leaves the live listing this long after its end.
    pub prune_after_ms: u64,
}

impl Default for Staleness {
    fn default() -> Self {
        Self {
            suspect_after_ms: 10 * MINUTE_MS,
            idle_after_ms: HOUR_MS,
            stale_after_ms: 48 * HOUR_MS,
            critical_after_ms: 168 * HOUR_MS,
            prune_after_ms: 24 * HOUR_MS,
        }
    }
}

/// Bounds the core enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum depth of a family of sessions; a root has depth 1.
    pub depth: u32,
    /// Characters of one piece of guidance.
    pub guidance_chars: usize,
    /// Handling of guidance that is longer.
    pub overlong: Overlong,
    /// Pieces of guidance that may wait in one session.
    pub guidance_pending: usize,
    /// Time after which undelivered guidance expires, in milliseconds; 0 means never.
    pub guidance_expires_ms: u64,
    /// Messages that may wait in one session's inbox.
    pub inbox_turns: usize,
    /// Bytes of all of them together.
    pub inbox_bytes: usize,
    /// Events one session's log may have; no turn begins beyond it. 0 is without limit.
    pub log_events: u64,
    /// Bytes of text they may hold; no turn begins beyond it. 0 is without limit.
    pub log_bytes: u64,
    /// Repeats of the same issue or error after which the session counts as stalled.
    pub stall_repeats: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 3,
            guidance_chars: 500,
            overlong: Overlong::default(),
            guidance_pending: 64,
            guidance_expires_ms: 24 * HOUR_MS,
            inbox_turns: 32,
            inbox_bytes: 256 * 1024,
            log_events: 1_000_000,
            log_bytes: 1 << 30,
            stall_repeats: 3,
        }
    }
}

/// Deadlines and call limits by which a stop escalates while the agent does not comply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopRules {
    /// Milliseconds at level 1 before it rises to 2.
    pub graceful_ms: u64,
    /// Milliseconds at level 2 before it rises to 3.
    pub immediate_ms: u64,
    /// Calls that are answered with the directive of a level before one more raises it.
    pub calls: u32,
}

impl Default for StopRules {
    fn default() -> Self {
        Self { graceful_ms: 30_000, immediate_ms: 10_000, calls: 1 }
    }
}

/// The lease of a session's writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WriterRules {
    /// Milliseconds a writer may be away before anyone may take its place.
    pub lapse_ms: u64,
    /// Milliseconds a writer has to deny a wish to take over.
    pub deny_ms: u64,
}

impl Default for WriterRules {
    fn default() -> Self {
        Self { lapse_ms: 30_000, deny_ms: 10_000 }
    }
}

/// Handling of text over its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlong {
    /// Keep what fits and tell the sender.
    #[default]
    Cut,
    Refuse,
}

/// Limits of a session's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMode {
    Off,
    #[default]
    SessionOnly,
    Selective,
    Full,
}

impl MemoryMode {
    pub const ALL: [Self; 4] = [Self::Off, Self::SessionOnly, Self::Selective, Self::Full];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::SessionOnly => "session_only",
            Self::Selective => "selective",
            Self::Full => "full",
        }
    }

    /// Order of the modes: `off` < `session_only` < `selective` < `full`.
    #[must_use]
    pub const fn rank(self) -> u8 {
        match self {
            Self::Off => 0,
            Self::SessionOnly => 1,
            Self::Selective => 2,
            Self::Full => 3,
        }
    }
}

/// The policies in force, handed to every decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    pub staleness: Staleness,
    pub limits: Limits,
    pub stop: StopRules,
    pub writer: WriterRules,
    pub families: FamilyRules,
    pub health: HealthRules,
    pub budgets: BudgetRules,
}
