//! How flows and their events are laid out in rows. Every answer that is not as it was written says so.

use lanyard_core::FlowId;
use lanyard_core::flow::{Flow, FlowEnvelope};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::error::StoreError;
use crate::fold::FlowFold;
use crate::sqlite::logs::seq_of;
use crate::sqlite::read::undamaged;
use crate::sqlite::rows::{column, signed};
use crate::sqlite::sealed::{self, NOT_WHOLE, encode, is_whole, seal};

pub(super) const FLOW_COLUMNS: &str = "id, plan, workspace, state, ended, settled, seq, body, crc";
pub(super) const EVENT_COLUMNS: &str = "flow, seq, at, body, crc";

pub(super) fn put_flow(conn: &Connection, flow: &Flow) -> Result<(), StoreError> {
    let values = seal(vec![
        sealed::id(flow.id.as_u128()),
        Value::Text(flow.plan.clone()),
        Value::Text(flow.workspace.clone()),
        Value::Text(flow.state.as_str().to_owned()),
        Value::from(flow.state.is_ended()),
        Value::from(flow.settled),
        Value::Integer(signed(flow.seq)),
        encode("the flow", flow)?,
    ]);
    let mut put = conn.prepare_cached(&format!(
        "INSERT OR REPLACE INTO flows ({FLOW_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
    ))?;
    put.execute(params_from_iter(values))?;
    Ok(())
}

/// Reads [`FLOW_COLUMNS`].
pub(super) fn read_flow(row: &Row<'_>) -> Result<Flow, String> {
    if is_whole(row, 8) { sealed::decode(row, 7) } else { Err(NOT_WHOLE.to_owned()) }
}

/// Whose row it is, if that much can be told.
pub(super) fn flow_of(row: &Row<'_>) -> Option<FlowId> {
    column::<[u8; 16]>(row, 0).map(|id| FlowId::from_u128(u128::from_be_bytes(id)))
}

pub(super) fn put_event(conn: &Connection, envelope: &FlowEnvelope) -> Result<(), StoreError> {
    let values = seal(vec![
        sealed::id(envelope.flow.as_u128()),
        Value::Integer(signed(envelope.seq)),
        Value::Integer(envelope.at.as_millis()),
        encode("the event", envelope)?,
    ]);
    let mut put = conn
        .prepare_cached(&format!("INSERT INTO flow_events ({EVENT_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5)"))?;
    put.execute(params_from_iter(values))?;
    Ok(())
}

/// Reads [`EVENT_COLUMNS`].
pub(super) fn read_event(row: &Row<'_>) -> Result<FlowEnvelope, String> {
    if is_whole(row, 4) { sealed::decode(row, 3) } else { Err(NOT_WHOLE.to_owned()) }
}

/// The flow in a row, or what is wrong with it.
pub(super) fn row(conn: &Connection, id: FlowId) -> Result<Result<Flow, String>, StoreError> {
    let mut get = conn.prepare_cached(&format!("SELECT {FLOW_COLUMNS} FROM flows WHERE id = ?1"))?;
    let found = get.query_row([sealed::id(id.as_u128())], |row| Ok(read_flow(row))).optional();
    Ok(match undamaged(found)? {
        Some(Some(read)) => read,
        Some(None) => Err("it is missing".to_owned()),
        None => Err("it cannot be read".to_owned()),
    })
}

/// A flow from its row, or from its log where the row is damaged or lost. `None` when there is neither.
pub(super) fn get_flow(conn: &Connection, id: FlowId) -> Result<Option<Flow>, StoreError> {
    if let Ok(flow) = row(conn, id)? {
        return Ok(Some(flow));
    }
    let fold = fold(conn, id)?;
    match (fold.record, fold.left_out.first()) {
        (None, None) => Ok(None),
        (Some(flow), None) => {
            tracing::error!(flow = %id, "the row of a flow is damaged or missing and was read from its log");
            Ok(Some(flow))
        }
        (_, Some((seq, why))) => Err(StoreError::Damaged(format!(
            "flow {id} cannot be made from its row or its log: event {seq}: {why}"
        ))),
    }
}

/// What the log of a flow adds up to.
fn fold(conn: &Connection, id: FlowId) -> Result<FlowFold, StoreError> {
    let mut fold = FlowFold::default();
    let mut log = conn
        .prepare_cached(&format!("SELECT {EVENT_COLUMNS} FROM flow_events WHERE flow = ?1 ORDER BY seq"))?;
    let mut rows = log.query([sealed::id(id.as_u128())])?;
    while let Some(row) = rows.next()? {
        fold.feed(seq_of(row), read_event(row).as_ref().map_err(String::clone));
    }
    Ok(fold)
}
