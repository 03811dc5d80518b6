//! Flows in the file. A batch is checked against what is there before anything of it is written.

use lanyard_core::FlowId;
use lanyard_core::flow::{Flow, FlowEnvelope};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::error::{AppendError, StoreError};
use crate::flows::{FlowBatch, FlowFilter, Flows};
use crate::journal::Durability;
use crate::sqlite::SqliteJournal;
use crate::sqlite::conditions::Conditions;
use crate::sqlite::flow_rows::{
    EVENT_COLUMNS, FLOW_COLUMNS, flow_of, get_flow, put_event, put_flow, read_event, read_flow,
};
use crate::sqlite::logs::{self, seq_of};
use crate::sqlite::rows::{signed, unsigned};
use crate::sqlite::sealed;

impl Flows for SqliteJournal {
    fn write_flows(&self, batch: &FlowBatch) -> Result<(), AppendError> {
        let mut writer = self.writer();
        let conn = writer.usable().map_err(AppendError::Unavailable)?;
        let entries = batch.entries.iter().map(|entry| (entry.flow, entry.seq));
        let rows: Vec<_> = batch.flows.iter().map(|flow| (flow.id, flow.seq)).collect();
        match logs::contradiction(entries, &rows, |flow| head(conn, flow)) {
            Ok(None) => {}
            Ok(Some(what)) => return Err(AppendError::Contradiction(what)),
            Err(error) => {
                writer.fail(&error);
                return Err(AppendError::Unavailable(error));
            }
        }
        let written =
            writer.commit(Durability::Synced, |point| self.pass(point), |conn, _| write(conn, batch));
        written.map_err(AppendError::Unavailable)?;
        self.tend_wal(&mut writer);
        Ok(())
    }

    fn flow(&self, id: FlowId) -> Result<Option<Flow>, StoreError> {
        self.pool.read(|conn| get_flow(conn, id))
    }

    fn flows(
        &self,
        filter: &FlowFilter,
        before: Option<FlowId>,
        limit: usize,
    ) -> Result<Vec<Flow>, StoreError> {
        self.pool.read(|conn| list_flows(conn, filter, before, limit))
    }

    fn flow_events(&self, flow: FlowId, after: u64, limit: usize) -> Result<Vec<FlowEnvelope>, StoreError> {
        self.pool.read(|conn| {
            let mut list = conn.prepare_cached(&format!(
                "SELECT {EVENT_COLUMNS} FROM flow_events WHERE flow = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
            ))?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let mut rows = list.query((sealed::id(flow.as_u128()), signed(after), limit))?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                let damaged = |why| {
                    StoreError::Damaged(format!("event {} of flow {flow} is damaged: {why}", seq_of(row)))
                };
                events.push(read_event(row).map_err(damaged)?);
            }
            Ok(events)
        })
    }
}

/// The number of a flow's last event; 0 for none.
fn head(conn: &Connection, flow: FlowId) -> Result<u64, StoreError> {
    let mut last = conn.prepare_cached("SELECT max(seq) FROM flow_events WHERE flow = ?1")?;
    let last: Option<i64> = last.query_row([sealed::id(flow.as_u128())], |row| row.get(0))?;
    Ok(last.map_or(0, unsigned))
}

fn write(conn: &Connection, batch: &FlowBatch) -> Result<(), StoreError> {
    batch.entries.iter().try_for_each(|entry| put_event(conn, entry))?;
    batch.flows.iter().try_for_each(|flow| put_flow(conn, flow))
}

fn list_flows(
    conn: &Connection,
    filter: &FlowFilter,
    before: Option<FlowId>,
    limit: usize,
) -> Result<Vec<Flow>, StoreError> {
    let mut when = Conditions::default();
    when.is("plan", filter.plan.clone().map(Value::Text));
    when.is("workspace", filter.workspace.clone().map(Value::Text));
    // In time nearly all flows have ended and are settled. The plus keeps the database from looking there first when it is
    // asked for anything else.
    let few = !when.is_empty();
    when.is(if few { "+ended" } else { "ended" }, filter.ended.map(Value::from));
    let few = !when.is_empty();
    when.is(if few { "+settled" } else { "settled" }, filter.settled.map(Value::from));
    if let Some(before) = before {
        when.holds("id <", sealed::id(before.as_u128()));
    }
    let mut list =
        conn.prepare_cached(&format!("SELECT {FLOW_COLUMNS} FROM flows {} ORDER BY id DESC", when.text()))?;
    let mut rows = list.query(params_from_iter(when.values))?;
    let mut flows = Vec::new();
    // Not limited by the database: one that is left out must not make the page look like the last.
    while flows.len() < limit
        && let Some(row) = rows.next()?
    {
        let flow = match read_flow(row) {
            Ok(flow) => Some(flow),
            Err(_) => mended(conn, flow_of(row))?,
        };
        flows.extend(flow.filter(|flow| filter.matches(flow)));
    }
    Ok(flows)
}

/// The flow of a damaged row, from its log. One that cannot be made does not hide the others.
fn mended(conn: &Connection, id: Option<FlowId>) -> Result<Option<Flow>, StoreError> {
    let Some(id) = id else {
        tracing::error!("the row of a flow is damaged, and whose it is cannot be told");
        return Ok(None);
    };
    match get_flow(conn, id) {
        Err(StoreError::Damaged(what)) => {
            tracing::error!(what);
            Ok(None)
        }
        found => found,
    }
}
