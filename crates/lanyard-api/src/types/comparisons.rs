//! Comparisons: the same message to several agents, each in a worktree of its own.

use lanyard_core::session::{AgentChoice, OperatorState};
use lanyard_core::{Actor, ComparisonId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::Problem;
use crate::types::attachments::NewPart;
use crate::types::branches::{DiscardedSession, MergedSession};

/// The fewest sessions of a comparison.
pub const COMPARED_MIN: usize = 2;
/// The most: as many as fit beside each other on a screen.
pub const COMPARED_MAX: usize = 4;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewComparison {
    /// The message to all of them.
    pub prompt: String,
    /// What is attached to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<NewPart>,
    /// A folder of the repository that the worktrees are made from.
    pub workspace: String,
    /// The branch, tag or commit at which all begin; what is checked out when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The title of each session, followed by its agent; made of the message when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Two to four. The same agent may be named again.
    pub agents: Vec<NewCompared>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCompared {
    pub agent: String,
    #[serde(default, skip_serializing_if = "AgentChoice::is_empty")]
    pub choice: AgentChoice,
}

/// A comparison as it stands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonView {
    pub id: ComparisonId,
    pub created_at: Timestamp,
    pub by: Actor,
    pub workspace: String,
    /// In the order in which the agents were named.
    pub sessions: Vec<ComparedSession>,
    /// The session that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<SessionId>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSession {
    pub session: SessionId,
    pub agent: String,
    /// Why there is no such session, or why it did not get the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// Absent where there is no such session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_state: Option<OperatorState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Its worktree and branch were removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discarded: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonList {
    /// Newest first.
    pub comparisons: Vec<ComparisonView>,
}

/// Keeps one session of a comparison and discards the others.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepOne {
    pub session: SessionId,
    /// Merge its branch into what is checked out in the repository. Without it the branch stays as it is.
    #[serde(default)]
    pub merge: bool,
    /// Commit its uncommitted work first.
    #[serde(default)]
    pub commit: bool,
    /// Stop others that are still working, and discard their uncommitted work.
    #[serde(default)]
    pub force: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct KeptOne {
    pub comparison: ComparisonView,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergedSession>,
    pub discarded: Vec<DiscardedSession>,
    /// Sessions that could not be discarded; they stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<NotDiscarded>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NotDiscarded {
    pub session: SessionId,
    pub problem: Problem,
}
