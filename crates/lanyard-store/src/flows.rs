//! Flows: records with a log.

use lanyard_core::FlowId;
use lanyard_core::flow::{Flow, FlowEnvelope};

use crate::error::StoreError;
use crate::records::{
    KeyValue, RecordBatch, RecordKey, RecordKind, RecordOrder, RecordQuery, RecordRef, Records, Stored, get,
    list, log,
};

/// Flows, as [`Records`] keeps them.
pub trait Flows: Records {
    /// A damaged row is rebuilt from the flow's log; one that cannot be is an error.
    fn flow(&self, id: FlowId) -> Result<Option<Flow>, StoreError> {
        get(self, id.as_u128())
    }

    /// Flows that match all of the filter, newest first, those older than `before` only. At most `limit`; fewer only when
    /// there are no more. One that cannot be made from its row or its log is left out and reported by `check`.
    fn flows(
        &self,
        filter: &FlowFilter,
        before: Option<FlowId>,
        limit: usize,
    ) -> Result<Vec<Flow>, StoreError> {
        let order = RecordOrder::Newest { before: before.map(FlowId::as_u128) };
        let query = RecordQuery { kind: RecordKind::Flow, keys: filter.keys(), order };
        list(self, &query, |flow| filter.matches(flow), limit)
    }

    /// Up to `limit` events of a flow's log with `seq > after`, in order. A damaged one among them is an error.
    fn flow_events(&self, flow: FlowId, after: u64, limit: usize) -> Result<Vec<FlowEnvelope>, StoreError> {
        log::<Flow>(self, flow.as_u128(), after, limit)
    }
}

impl<T: Records> Flows for T {}

/// One commit of flows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowBatch {
    /// Entries in the order of their events. Per flow, `seq` continues without a gap.
    pub entries: Vec<FlowEnvelope>,
    /// Each as of its last entry; all that have entries are here.
    pub flows: Vec<Flow>,
}

impl FlowBatch {
    /// The writes of the batch.
    pub fn records(&self) -> Result<RecordBatch, StoreError> {
        let mut batch = RecordBatch::default();
        for entry in &self.entries {
            batch.add_entry(RecordRef { kind: RecordKind::Flow, id: entry.flow.as_u128() }, entry)?;
        }
        batch.rows = self.flows.iter().map(Stored::row).collect::<Result<_, _>>()?;
        Ok(batch)
    }
}

impl Stored for Flow {
    const KIND: RecordKind = RecordKind::Flow;

    fn bits(&self) -> u128 {
        self.id.as_u128()
    }

    fn as_of(&self) -> u64 {
        self.seq
    }

    fn keys(&self) -> Vec<RecordKey> {
        vec![
            ("plan", KeyValue::Text(self.plan.clone())),
            ("workspace", KeyValue::Text(self.workspace.clone())),
            ("ended", self.state.is_ended().into()),
            ("settled", self.settled.into()),
        ]
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// The plan's file.
    pub plan: Option<String>,
    pub workspace: Option<String>,
    /// Only flows that have ended (`true`), or that have not (`false`).
    pub ended: Option<bool>,
    /// Only flows whose folder was cleaned up (`true`), or was not (`false`).
    pub settled: Option<bool>,
}

impl FlowFilter {
    fn keys(&self) -> Vec<RecordKey> {
        let texts = [("plan", &self.plan), ("workspace", &self.workspace)];
        let texts = texts.map(|(key, value)| (key, value.clone().map(KeyValue::Text)));
        // In time nearly all flows have ended and are settled, so these are asked last.
        let states = [("ended", self.ended), ("settled", self.settled)];
        let states = states.map(|(key, value)| (key, value.map(KeyValue::from)));
        texts.into_iter().chain(states).filter_map(|(key, value)| Some((key, value?))).collect()
    }

    fn matches(&self, flow: &Flow) -> bool {
        self.plan.as_ref().is_none_or(|wanted| *wanted == flow.plan)
            && self.workspace.as_ref().is_none_or(|wanted| *wanted == flow.workspace)
            && self.ended.is_none_or(|wanted| wanted == flow.state.is_ended())
            && self.settled.is_none_or(|wanted| wanted == flow.settled)
    }
}
