//! Sums of cost, tokens, turns and approvals by the quarter of an hour: a projection of the logs.

use lanyard_core::SessionId;
use lanyard_core::insight::{InsightCounts, InsightKey, Quarter};

use crate::error::StoreError;

/// Sums over the logs of all sessions. What a log counts for is written with its events, in `Batch::insight`. A purge takes
/// the session and its folder out of them and leaves the numbers: what was spent stays spent.
pub trait Insights: Send + Sync {
    /// Shows all sums of the quarters from `from` up to `to`, the last one left out, in the order of time. A damaged row
    /// is left out and reported by `check`.
    fn insight(
        &self,
        from: Quarter,
        to: Quarter,
        visit: &mut dyn FnMut(Quarter, InsightKey, InsightCounts),
    ) -> Result<(), StoreError>;

    /// The reported cost of all sessions since a quarter, in millionths of a dollar.
    fn spent_since(&self, from: Quarter) -> Result<u64, StoreError>;

    /// The reported cost of a session and of all sessions below it, in millionths of a dollar. A purged session no longer
    /// counts.
    fn spent_by_family(&self, root: SessionId) -> Result<u64, StoreError>;
}
