//! A stop: an escalating order to end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::RunId;
use crate::session::calls::Compliance;
use crate::session::record::is_default;
use crate::time::Timestamp;

/// 1 graceful, 2 immediate, 3 terminated. Written as the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum StopLevel {
    Graceful,
    Immediate,
    Terminated,
}

/// The sessions that a stop ends.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StopScope {
    /// The running turn; the session can go on with another.
    Turn,
    #[default]
    Session,
    /// The session and all below it, those born later too.
    Subtree,
}

impl StopScope {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Session => "session",
            Self::Subtree => "subtree",
        }
    }
}

/// The directive in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stop {
    pub level: StopLevel,
    #[serde(default, skip_serializing_if = "is_default")]
    pub scope: StopScope,
    pub requested_at: Timestamp,
    /// Time at which the stop reached its level; a deadline counts from here.
    #[serde(default = "epoch")]
    pub level_at: Timestamp,
    pub by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Calls the agent was answered with the directive at this level.
    #[serde(default)]
    pub told: u32,
    /// The agent has begun to do what was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complying: Option<Compliance>,
}

/// A run that a stop ended before its session was resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoppedRun {
    /// Absent for an agent that ran under its own host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub scope: StopScope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// For records written before levels had a time of their own.
const fn epoch() -> Timestamp {
    Timestamp::from_millis(0)
}

impl StopLevel {
    /// The next level, up to the last: 1, 2, 3, 3, 3.
    #[must_use]
    pub const fn raised(self) -> Self {
        match self {
            Self::Graceful => Self::Immediate,
            Self::Immediate | Self::Terminated => Self::Terminated,
        }
    }
}

impl From<StopLevel> for u8 {
    fn from(level: StopLevel) -> Self {
        match level {
            StopLevel::Graceful => 1,
            StopLevel::Immediate => 2,
            StopLevel::Terminated => 3,
        }
    }
}

impl TryFrom<u8> for StopLevel {
    type Error = String;

    fn try_from(level: u8) -> Result<Self, String> {
        match level {
            1 => Ok(Self::Graceful),
            2 => Ok(Self::Immediate),
            3 => Ok(Self::Terminated),
            other => Err(format!("a stop level is 1, 2 or 3, not {other}")),
        }
    }
}

impl JsonSchema for StopLevel {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StopLevel".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer", "enum": [1, 2, 3] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S0-T5: pressing again and again gives 1, 2, 3, 3, 3.
    #[test]
    fn levels_rise_to_three_and_stay() {
        let mut level = StopLevel::Graceful;
        let mut seen = vec![u8::from(level)];
        for _ in 0..4 {
            level = level.raised();
            seen.push(level.into());
        }
        assert_eq!(seen, [1, 2, 3, 3, 3]);
    }
}
