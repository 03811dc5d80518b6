//! Looking after flows: comparing rows with what the logs add up to, and making them again.

use std::collections::BTreeMap;

use lanyard_core::FlowId;
use lanyard_core::flow::Flow;
use rusqlite::Connection;

use crate::error::StoreError;
use crate::fold::FlowFold;
use crate::sqlite::flow_rows::{EVENT_COLUMNS, flow_of, put_flow, read_event, row};
use crate::sqlite::logs::{self, Complaint, Complaints};

/// What is wrong with flows.
pub(super) fn check(conn: &Connection) -> Result<Vec<Complaint>, StoreError> {
    let mut complaints = Complaints::default();
    let mut flows = 0;
    let whole = each_log(conn, |id, fold| {
        flows += 1;
        complaints.compare(id, &fold, &row(conn, id)?);
        Ok(())
    })?;
    if !whole {
        complaints.add((0, 0), "the logs of flows cannot all be read".to_owned());
    }
    complaints.count(conn, "flows", flows)?;
    Ok(complaints.0)
}

fn each_log(
    conn: &Connection,
    each: impl FnMut(FlowId, FlowFold) -> Result<(), StoreError>,
) -> Result<bool, StoreError> {
    let all = format!("SELECT {EVENT_COLUMNS} FROM flow_events ORDER BY flow, seq");
    logs::each_log(conn, &all, flow_of, read_event, each)
}

/// What the logs can no longer tell and the rows still can. To be asked before the rows are thrown away.
pub(super) fn rest(conn: &Connection) -> Result<BTreeMap<FlowId, Flow>, StoreError> {
    let mut rest = BTreeMap::new();
    each_log(conn, |id, fold| {
        if !fold.left_out.is_empty()
            && let Ok(row) = row(conn, id)?
        {
            rest.insert(id, row);
        }
        Ok(())
    })?;
    Ok(rest)
}

/// Makes all rows from the logs, into an empty table.
pub(super) fn fill(conn: &Connection, mut rest: BTreeMap<FlowId, Flow>) -> Result<(), StoreError> {
    each_log(conn, |id, fold| {
        let Some(flow) = rest.remove(&id).or(fold.record) else {
            tracing::error!(flow = %id, "a flow cannot be made from its log");
            return Ok(());
        };
        put_flow(conn, &flow)
    })?;
    Ok(())
}
