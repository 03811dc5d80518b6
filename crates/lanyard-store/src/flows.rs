//! The contract for flows: rows with a log beside them, written by their one owner in the daemon.

use lanyard_core::FlowId;
use lanyard_core::flow::{Flow, FlowEnvelope};

use crate::error::{AppendError, StoreError};

/// Flows. All calls block. Each flow is written by one driver at a time; any number read what has been committed.
pub trait Flows: Send + Sync {
    /// Writes the whole batch in one transaction. When it answers `Ok`, all of it is on disk and can be read; when it
    /// answers `Err`, nothing of it can. As with `append`, after `Unavailable` nothing is written until `recover`, and a
    /// crash may still bring the batch back whole.
    fn write_flows(&self, batch: &FlowBatch) -> Result<(), AppendError>;

    /// A damaged row is rebuilt from the flow's log; one that cannot be is an error.
    fn flow(&self, id: FlowId) -> Result<Option<Flow>, StoreError>;

    /// Flows that match all of the filter, newest first, those older than `before` only. At most `limit`; fewer only when
    /// there are no more. One that cannot be made from its row or its log is left out and reported by `check`.
    fn flows(
        &self,
        filter: &FlowFilter,
        before: Option<FlowId>,
        limit: usize,
    ) -> Result<Vec<Flow>, StoreError>;

    /// Up to `limit` events of a flow's log with `seq > after`, in order. A damaged one among them is an error.
    fn flow_events(&self, flow: FlowId, after: u64, limit: usize) -> Result<Vec<FlowEnvelope>, StoreError>;
}

/// Everything one commit of flows makes durable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowBatch {
    /// In the order they happened. Per flow, `seq` goes on without a gap.
    pub entries: Vec<FlowEnvelope>,
    /// Each as of its last entry; all that have entries are here.
    pub flows: Vec<Flow>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// The plan's file.
    pub plan: Option<String>,
    pub workspace: Option<String>,
    /// Those that have ended, or those that have not.
    pub ended: Option<bool>,
    /// Those whose folder is in order, or those whose is not.
    pub settled: Option<bool>,
}

impl FlowFilter {
    pub(crate) fn matches(&self, flow: &Flow) -> bool {
        self.plan.as_ref().is_none_or(|wanted| *wanted == flow.plan)
            && self.workspace.as_ref().is_none_or(|wanted| *wanted == flow.workspace)
            && self.ended.is_none_or(|wanted| wanted == flow.state.is_ended())
            && self.settled.is_none_or(|wanted| wanted == flow.settled)
    }
}
