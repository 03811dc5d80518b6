//! Addresses of sessions: the session's own id, a foreign id kept as an alias, or workspace + plan + session.
//!
//! The parts are separate fields and are never joined into one text or split out of one: a part may hold `::` or any
//! other text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The address of a session. `session` alone must match exactly one session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Address {
    /// A Lanyard id (`sess_…`) or an alias.
    pub session: String,
    /// The workspace the alias belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The plan the alias belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

impl Address {
    #[must_use]
    pub fn of(session: impl Into<String>) -> Self {
        Self { session: session.into(), workspace: None, plan: None }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`", self.session)?;
        if let Some(workspace) = &self.workspace {
            write!(f, " in workspace `{workspace}`")?;
        }
        if let Some(plan) = &self.plan {
            write!(f, " of plan `{plan}`")?;
        }
        Ok(())
    }
}
