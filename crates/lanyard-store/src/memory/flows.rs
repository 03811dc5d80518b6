//! Flows, kept in memory.

use std::collections::BTreeMap;

use lanyard_core::FlowId;
use lanyard_core::flow::{Flow, FlowEnvelope};

use crate::error::{AppendError, StoreError};
use crate::flows::{FlowBatch, FlowFilter, Flows};
use crate::fold::FlowFold;
use crate::memory::MemoryJournal;

#[derive(Debug, Default, Clone)]
pub(super) struct Conducted {
    flows: BTreeMap<FlowId, Flow>,
    /// Event `seq` is at `seq - 1`.
    logs: BTreeMap<FlowId, Vec<FlowEnvelope>>,
}

impl Conducted {
    fn add(&mut self, batch: &FlowBatch) -> Result<(), String> {
        for entry in &batch.entries {
            let id = entry.flow;
            let log = self.logs.entry(id).or_default();
            if entry.seq != log.len() as u64 + 1 {
                return Err(format!("event {} of {id} after event {}", entry.seq, log.len()));
            }
            if batch.flows.iter().all(|flow| flow.id != id) {
                return Err(format!("events of {id} without its row"));
            }
            log.push(entry.clone());
        }
        for flow in &batch.flows {
            let head = self.logs.get(&flow.id).map_or(0, Vec::len) as u64;
            if flow.seq != head || head == 0 {
                return Err(format!("a row of {} as of {}, not {head}", flow.id, flow.seq));
            }
            self.flows.insert(flow.id, flow.clone());
        }
        Ok(())
    }

    pub(super) fn rebuild(&mut self) -> Result<(), StoreError> {
        self.flows.clear();
        for (id, log) in &self.logs {
            let mut fold = FlowFold::default();
            for entry in log {
                fold.feed(entry.seq, Ok(entry));
            }
            let Some(flow) = fold.record.filter(|_| fold.left_out.is_empty()) else {
                return Err(StoreError::Damaged(format!("flow {id} cannot be made from its log")));
            };
            self.flows.insert(*id, flow);
        }
        Ok(())
    }
}

impl Flows for MemoryJournal {
    fn write_flows(&self, batch: &FlowBatch) -> Result<(), AppendError> {
        let mut kept = self.kept();
        kept.writable()?;
        // On a copy, so that a batch is written whole or not at all.
        let mut next = kept.conducted.clone();
        next.add(batch).map_err(AppendError::Contradiction)?;
        kept.conducted = next;
        Ok(())
    }

    fn flow(&self, id: FlowId) -> Result<Option<Flow>, StoreError> {
        Ok(self.kept().conducted.flows.get(&id).cloned())
    }

    fn flows(
        &self,
        filter: &FlowFilter,
        before: Option<FlowId>,
        limit: usize,
    ) -> Result<Vec<Flow>, StoreError> {
        let kept = self.kept();
        let newest = kept.conducted.flows.values().rev();
        let older = newest.filter(|flow| before.is_none_or(|before| flow.id < before));
        Ok(older.filter(|flow| filter.matches(flow)).take(limit).cloned().collect())
    }

    fn flow_events(&self, flow: FlowId, after: u64, limit: usize) -> Result<Vec<FlowEnvelope>, StoreError> {
        let kept = self.kept();
        let log = kept.conducted.logs.get(&flow).into_iter().flatten();
        Ok(log.filter(|entry| entry.seq > after).take(limit).cloned().collect())
    }
}
