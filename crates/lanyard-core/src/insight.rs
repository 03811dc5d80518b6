//! Cost, tokens, turns, failures, approvals and time, as the events of logs tell of them.
//!
//! Counting is a fold over events: [`step`] says what one event adds, given the session before it. This module knows
//! neither where sums are kept nor what a day is; times are put into quarters of an hour in UTC, from which the days of
//! any time zone can be made.

mod count;
mod table;

pub use count::{InsightCounts, InsightKey, InsightStep, step};
pub use table::{InsightBy, InsightGroup, InsightSummary, InsightTable};

use crate::time::Timestamp;

/// Length of a quarter in milliseconds. The offset of every time zone in use is a multiple of it.
pub const QUARTER_MS: u64 = 15 * 60 * 1_000;

/// A quarter of an hour, counted from 1970.
pub type Quarter = u64;

/// The quarter a time lies in.
#[must_use]
pub fn quarter_of(at: Timestamp) -> Quarter {
    at.as_millis().max(0).unsigned_abs() / QUARTER_MS
}

#[cfg(test)]
mod count_tests;
