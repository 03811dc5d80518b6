//! The states a session can be in, and the two published views of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a turn ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InterruptCause {
    User,
    Crash,
    Timeout,
    HostLost,
    Limit,
}

impl InterruptCause {
    pub const ALL: [Self; 5] = [Self::User, Self::Crash, Self::Timeout, Self::HostLost, Self::Limit];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Crash => "crash",
            Self::Timeout => "timeout",
            Self::HostLost => "host_lost",
            Self::Limit => "limit",
        }
    }
}

/// The session's state: eight live states and three ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum State {
    Beginning,
    Custom,
    Executing,
    BetweenTurn,
    Compacted,
    Interrupted { cause: InterruptCause },
    Idle,
    Stale,
    Completed,
    Failed,
    Stopped,
}

/// A state without its data, as listings, filters and histories name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    Beginning,
    Custom,
    Executing,
    BetweenTurn,
    Compacted,
    Interrupted,
    Idle,
    Stale,
    Completed,
    Failed,
    Stopped,
}

/// The state as one of four status words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Active,
    Stopping,
    Stopped,
    Completed,
}

/// The state as one of three lifecycle words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    Running,
    Idle,
    Terminal,
}

impl State {
    #[must_use]
    pub const fn name(self) -> StateName {
        match self {
            Self::Beginning => StateName::Beginning,
            Self::Custom => StateName::Custom,
            Self::Executing => StateName::Executing,
            Self::BetweenTurn => StateName::BetweenTurn,
            Self::Compacted => StateName::Compacted,
            Self::Interrupted { .. } => StateName::Interrupted,
            Self::Idle => StateName::Idle,
            Self::Stale => StateName::Stale,
            Self::Completed => StateName::Completed,
            Self::Failed => StateName::Failed,
            Self::Stopped => StateName::Stopped,
        }
    }

    #[must_use]
    pub const fn is_ended(self) -> bool {
        self.name().is_ended()
    }

    /// Why, when it is interrupted.
    #[must_use]
    pub const fn cause(self) -> Option<InterruptCause> {
        match self {
            Self::Interrupted { cause } => Some(cause),
            Self::Beginning
            | Self::Custom
            | Self::Executing
            | Self::BetweenTurn
            | Self::Compacted
            | Self::Idle
            | Self::Stale
            | Self::Completed
            | Self::Failed
            | Self::Stopped => None,
        }
    }
}

impl StateName {
    pub const ALL: [Self; 11] = [
        Self::Beginning,
        Self::Custom,
        Self::Executing,
        Self::BetweenTurn,
        Self::Compacted,
        Self::Interrupted,
        Self::Idle,
        Self::Stale,
        Self::Completed,
        Self::Failed,
        Self::Stopped,
    ];

    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self.lifecycle(), Lifecycle::Terminal)
    }

    #[must_use]
    pub const fn lifecycle(self) -> Lifecycle {
        match self {
            Self::Executing => Lifecycle::Running,
            Self::Beginning
            | Self::Custom
            | Self::BetweenTurn
            | Self::Compacted
            | Self::Interrupted
            | Self::Idle
            | Self::Stale => Lifecycle::Idle,
            Self::Completed | Self::Failed | Self::Stopped => Lifecycle::Terminal,
        }
    }

    /// The status word for the state; a pending stop shows only while the session lives.
    #[must_use]
    pub const fn status(self, stop_pending: bool) -> Status {
        match self {
            Self::Completed => Status::Completed,
            Self::Failed | Self::Stopped => Status::Stopped,
            Self::Beginning
            | Self::Custom
            | Self::Executing
            | Self::BetweenTurn
            | Self::Compacted
            | Self::Interrupted
            | Self::Idle
            | Self::Stale => {
                if stop_pending {
                    Status::Stopping
                } else {
                    Status::Active
                }
            }
        }
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Beginning => "beginning",
            Self::Custom => "custom",
            Self::Executing => "executing",
            Self::BetweenTurn => "between_turn",
            Self::Compacted => "compacted",
            Self::Interrupted => "interrupted",
            Self::Idle => "idle",
            Self::Stale => "stale",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

impl std::fmt::Display for StateName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
