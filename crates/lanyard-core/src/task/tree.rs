//! A task's own git worktree.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;

/// Bytes of a branch's name that come from the plan, and as many from the key.
const PART_BYTES_MAX: usize = 40;
/// Characters of the task's id at the end of its branch's name. Two plans may be called the same; their tasks differ here.
const ID_CHARS: usize = 6;

/// The branch of a task that has a key: `lanyard/PLAN-KEY-` and the end of the task's id, in letters, digits and dashes.
/// The name is the same for every attempt.
#[must_use]
pub fn branch_name(plan: Option<&str>, key: &str, task: TaskId) -> String {
    let id = task.to_string();
    let end = id.get(id.len().saturating_sub(ID_CHARS)..).unwrap_or(&id);
    let words = plan.into_iter().chain([key]).map(plain).filter(|part| !part.is_empty());
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
}
