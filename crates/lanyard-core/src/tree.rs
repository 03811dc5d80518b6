//! A git worktree of its own: of a task, a flow or a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TaskId};

/// Bytes of a branch's name that come from the plan, and as many from the key or the title.
const PART_BYTES_MAX: usize = 40;
/// Characters of the id at the end of a branch's name. Two plans or titles may be the same; the ids differ here.
const ID_CHARS: usize = 6;

/// The branch of a task that has a key: `lanyard/PLAN-KEY-` and the end of the task's id, in letters, digits and dashes.
/// The name is the same for every attempt.
#[must_use]
pub fn branch_name(plan: Option<&str>, key: &str, task: TaskId) -> String {
    branch_of(plan.into_iter().chain([key]), &task.to_string())
}

/// The branch of a session whose maker names none: `lanyard/TITLE-` and the end of the session's id.
#[must_use]
pub fn session_branch(title: Option<&str>, session: SessionId) -> String {
    branch_of(title.into_iter(), &session.to_string())
}

fn branch_of<'a>(words: impl Iterator<Item = &'a str>, id: &str) -> String {
    let end = id.get(id.len().saturating_sub(ID_CHARS)..).unwrap_or(id);
    let words = words.map(plain).filter(|part| !part.is_empty());
    let parts: Vec<String> = words.chain([end.to_owned()]).collect();
    format!("lanyard/{}", parts.join("-"))
}

/// Lower-case letters and digits, with a dash for each run of anything else.
fn plain(words: &str) -> String {
    let mut plain = String::new();
    for letter in words.chars().flat_map(char::to_lowercase) {
        let fits = plain.len() + letter.len_utf8() <= PART_BYTES_MAX;
        match letter.is_alphanumeric() {
            true if fits => plain.push(letter),
            true => break,
            false if fits && !plain.is_empty() && !plain.ends_with('-') => plain.push('-'),
            false => {}
        }
    }
    plain.truncate(plain.trim_end_matches('-').len());
    plain
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tree {
    pub path: String,
    pub branch: String,
    /// The commit the branch began at.
    pub base: String,
    /// The top of the repository it was made from.
    pub repository: String,
    /// The folder was taken away; the branch stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

/// Work of prerequisites that does not fit together. The task cannot begin before somebody has resolved it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaseConflict {
    /// The branch that could not be merged.
    pub branch: String,
    /// The branches that it was to be merged with.
    pub with: Vec<String>,
    pub files: Vec<String>,
}

/// Work that was uncommitted and that Lanyard committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Captured {
    pub commit: String,
    pub files: Vec<String>,
    pub files_changed: u32,
}

/// A command of the repository's setup file that was run in a new worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetupStep {
    pub command: String,
    /// The end of its output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    pub ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_named_by_plan_and_key() {
        let id = TaskId::from_u128(7);
        let end = "000007";
        let long = "ab ".repeat(40);
        for (plan, key, expected) in [
            (Some("release"), "api", "lanyard/release-api-"),
            (Some("Release 1.0"), "api/routes", "lanyard/release-1-0-api-routes-"),
            (None, "api", "lanyard/api-"),
            (Some("../.."), "api", "lanyard/api-"),
            (Some("@{-1}"), "a..b~^:?*[\\.lock", "lanyard/1-a-b-lock-"),
            (Some("Größe"), "über", "lanyard/größe-über-"),
            (Some(""), " ", "lanyard/"),
            (Some(&long), "k", "lanyard/ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-a-k-"),
        ] {
            assert_eq!(branch_name(plan, key, id), format!("{expected}{end}"), "{plan:?} {key}");
        }
    }

    #[test]
    fn a_session_s_branch_is_named_after_its_title_and_the_end_of_its_id() {
        let session = SessionId::from_u128(7);
        let id = session.to_string();
        let end = &id[id.len() - ID_CHARS..];
        for (title, branch) in [
            (Some("Fix: the login (again)"), format!("lanyard/fix-the-login-again-{end}")),
            (Some("../..; rm"), format!("lanyard/rm-{end}")),
            (Some("…"), format!("lanyard/{end}")),
            (None, format!("lanyard/{end}")),
        ] {
            assert_eq!(session_branch(title, session), branch);
        }
    }
}
