//! Stall detection: the same issue or the same error again and again means the work goes in circles.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hashes and scores that a record keeps; the log has all of them.
const HISTORY_MAX: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StallKind {
    Issue,
    Error,
}

/// Recent issues and errors, newest last.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub issues: VecDeque<String>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub scores: VecDeque<f64>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub errors: VecDeque<String>,
    /// Repeats of the newest issue in a row.
    #[serde(default)]
    pub issue_repeats: u32,
    /// Repeats of the newest error in a row.
    #[serde(default)]
    pub error_repeats: u32,
    /// Number of times the session was found stalled.
    #[serde(default)]
    pub stalls: u32,
}

impl Stall {
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn saw_issue(&mut self, hash: &str, score: Option<f64>) {
        self.issue_repeats = self.repeats_with(StallKind::Issue, hash);
        remember(&mut self.issues, hash.to_owned());
        if let Some(score) = score {
            remember(&mut self.scores, score);
        }
    }

    pub(super) fn saw_error(&mut self, hash: &str) {
        self.error_repeats = self.repeats_with(StallKind::Error, hash);
        remember(&mut self.errors, hash.to_owned());
    }

    /// Repeats of `hash` in a row if it came once more.
    pub(super) fn repeats_with(&self, kind: StallKind, hash: &str) -> u32 {
        let (newest, repeats) = match kind {
            StallKind::Issue => (self.issues.back(), self.issue_repeats),
            StallKind::Error => (self.errors.back(), self.error_repeats),
        };
        if newest.is_some_and(|newest| newest == hash) { repeats.saturating_add(1) } else { 1 }
    }
}

fn remember<T>(history: &mut VecDeque<T>, item: T) {
    if history.len() == HISTORY_MAX {
        history.pop_front();
    }
    history.push_back(item);
}
