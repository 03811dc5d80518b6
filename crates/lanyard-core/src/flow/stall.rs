//! Whether the work goes in circles: the same issues review after review without a better score, or the same error check
//! after check.

use std::collections::VecDeque;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow::record::CheckResult;
use crate::flow::verdict::Item;
use crate::text::{content_hash, cut};

/// Hashes and scores a record keeps; the flow's log has all.
const HISTORY_MAX: usize = 16;
/// Characters at the end of an output that tell one error from another.
const ERROR_CHARS: usize = 2_000;

/// Recent issues and errors, newest last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlowStall {
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub issues: VecDeque<String>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub scores: VecDeque<u32>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub errors: VecDeque<String>,
    /// Repeats in a row of the newest issues without a better score.
    pub issue_repeats: u32,
    pub error_repeats: u32,
}

impl FlowStall {
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn saw_issues(&mut self, items: &[Item], score: Option<u32>) {
        let hash = issue_hash(items);
        let same = self.issues.back() == Some(&hash);
        let better = score.is_some_and(|score| self.scores.back().is_some_and(|last| score > *last));
        self.issue_repeats = if same && !better { self.issue_repeats + 1 } else { 1 };
        remember(&mut self.issues, hash);
        if let Some(score) = score {
            remember(&mut self.scores, score);
        }
    }

    pub(super) fn saw_error(&mut self, hash: String) {
        self.error_repeats = if self.errors.back() == Some(&hash) { self.error_repeats + 1 } else { 1 };
        remember(&mut self.errors, hash);
    }

    pub(super) fn passed(&mut self) {
        self.error_repeats = 0;
        self.errors.clear();
    }
}

/// By what the items say, in any order: their ids are new in each review.
fn issue_hash(items: &[Item]) -> String {
    let mut titles: Vec<String> = items.iter().map(|item| plain(&item.title)).collect();
    titles.sort_unstable();
    content_hash(titles.join("\n").as_bytes())
}

/// Numbers differ from run to run: times, counts, addresses.
fn plain(text: &str) -> String {
    let letters = text.to_lowercase();
    letters.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// By what all checks say that failed.
pub(super) fn error_hash(failed: &[&CheckResult]) -> String {
    let mut text = String::new();
    for check in failed {
        let skip = check.output.chars().count().saturating_sub(ERROR_CHARS);
        let tail: String = check.output.chars().skip(skip).collect();
        let _ = writeln!(text, "{}\n{:?}\n{}", check.name, check.exit_code, plain(&tail));
    }
    content_hash(text.as_bytes())
}

pub(super) fn reason_hash(reason: &str) -> String {
    content_hash(plain(cut(reason, ERROR_CHARS).0).as_bytes())
}

fn remember<T>(history: &mut VecDeque<T>, item: T) {
    if history.len() == HISTORY_MAX {
        history.pop_front();
    }
    history.push_back(item);
}
