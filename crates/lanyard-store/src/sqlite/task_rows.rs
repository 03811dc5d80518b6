//! How tasks, their events and mail are laid out in rows. Every answer that is not as it was written says so.

use lanyard_core::TaskId;
use lanyard_core::task::{Mail, MailTo, Task, TaskEnvelope};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::error::StoreError;
use crate::fold::TaskFold;
use crate::sqlite::logs::seq_of;
use crate::sqlite::read::undamaged;
use crate::sqlite::rows::{column, signed};
use crate::sqlite::sealed::{self, NOT_WHOLE, encode, is_whole, optional, seal};

pub(super) const TASK_COLUMNS: &str =
    "id, plan, parent, reports_to, worker, session, workspace, state, ended, seq, body, crc";
pub(super) const EVENT_COLUMNS: &str = "task, seq, body, crc";
pub(super) const MAIL_COLUMNS: &str = "id, box, seq, settled, dead, body, crc";

/// A box as a key: tasks' before sessions', as [`MailTo`] is ordered.
pub(super) fn box_key(to: MailTo) -> Value {
    let kind = match to {
        MailTo::Task(_) => 0,
        MailTo::Session(_) => 1,
    };
    Value::Blob([[kind].as_slice(), &to.bits().to_be_bytes()].concat())
}

pub(super) fn put_task(conn: &Connection, task: &Task) -> Result<(), StoreError> {
    let values = seal(vec![
        sealed::id(task.id.as_u128()),
        optional(task.plan.map(|plan| sealed::id(plan.as_u128()))),
        optional(task.parent.map(|parent| sealed::id(parent.as_u128()))),
        optional(task.reports_to.map(box_key)),
        optional(task.worker.map(|worker| sealed::id(worker.as_u128()))),
        optional(task.session.map(|session| sealed::id(session.as_u128()))),
        optional(task.workspace.clone().map(Value::Text)),
        Value::Text(task.state.as_str().to_owned()),
        Value::from(task.state.is_ended()),
        Value::Integer(signed(task.seq)),
        encode("the task", task)?,
    ]);
    let mut put = conn.prepare_cached(&format!(
        "INSERT OR REPLACE INTO tasks ({TASK_COLUMNS}) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
    ))?;
    put.execute(params_from_iter(values))?;
    Ok(())
}

/// Reads [`TASK_COLUMNS`].
pub(super) fn read_task(row: &Row<'_>) -> Result<Task, String> {
    if is_whole(row, 11) { sealed::decode(row, 10) } else { Err(NOT_WHOLE.to_owned()) }
}

/// Whose row it is, if that much can be told.
pub(super) fn task_of(row: &Row<'_>) -> Option<TaskId> {
    column::<[u8; 16]>(row, 0).map(|id| TaskId::from_u128(u128::from_be_bytes(id)))
}

pub(super) fn put_event(conn: &Connection, envelope: &TaskEnvelope) -> Result<(), StoreError> {
    let values = seal(vec![
        sealed::id(envelope.task.as_u128()),
        Value::Integer(signed(envelope.seq)),
        encode("the event", envelope)?,
    ]);
    let mut put =
        conn.prepare_cached(&format!("INSERT INTO task_events ({EVENT_COLUMNS}) VALUES (?1, ?2, ?3, ?4)"))?;
    put.execute(params_from_iter(values))?;
    Ok(())
}

/// Reads [`EVENT_COLUMNS`].
pub(super) fn read_event(row: &Row<'_>) -> Result<TaskEnvelope, String> {
    if is_whole(row, 3) { sealed::decode(row, 2) } else { Err(NOT_WHOLE.to_owned()) }
}

pub(super) fn put_name(conn: &Connection, name: &str, task: TaskId) -> rusqlite::Result<()> {
    let mut put = conn.prepare_cached("INSERT OR IGNORE INTO task_names (name, task) VALUES (?1, ?2)")?;
    put.execute((name, sealed::id(task.as_u128())))?;
    Ok(())
}

pub(super) fn put_mail(conn: &Connection, mail: &Mail) -> Result<(), StoreError> {
    let values = seal(vec![
        sealed::id(mail.id.as_u128()),
        box_key(mail.to),
        Value::Integer(signed(mail.seq)),
        Value::from(mail.state.is_settled()),
        Value::from(mail.state.is_dead()),
        encode("the mail", mail)?,
    ]);
    // Not `OR REPLACE`: that would also take away another one that has its place.
    let mut put = conn.prepare_cached(&format!(
        "INSERT INTO mail ({MAIL_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
         ON CONFLICT (id) DO UPDATE SET box = ?2, seq = ?3, settled = ?4, dead = ?5, body = ?6, crc = ?7"
    ))?;
    put.execute(params_from_iter(values))?;
    Ok(())
}

/// Reads [`MAIL_COLUMNS`].
pub(super) fn read_mail(row: &Row<'_>) -> Result<Mail, String> {
    if is_whole(row, 6) { sealed::decode(row, 5) } else { Err(NOT_WHOLE.to_owned()) }
}

/// A task from its row, or from its log where the row is damaged or lost. `None` when there is neither.
pub(super) fn get_task(conn: &Connection, id: TaskId) -> Result<Option<Task>, StoreError> {
    let mut get = conn.prepare_cached(&format!("SELECT {TASK_COLUMNS} FROM tasks WHERE id = ?1"))?;
    let found = get.query_row([sealed::id(id.as_u128())], |row| Ok(read_task(row))).optional();
    if let Some(Some(Ok(task))) = undamaged(found)? {
        return Ok(Some(task));
    }
    let fold = fold(conn, id)?;
    match (fold.record, fold.left_out.first()) {
        (None, None) => Ok(None),
        (Some(task), None) => {
            tracing::error!(task = %id, "the row of a task is damaged or missing and was read from its log");
            Ok(Some(task))
        }
        (_, Some((seq, why))) => Err(StoreError::Damaged(format!(
            "task {id} cannot be made from its row or its log: event {seq}: {why}"
        ))),
    }
}

/// What the log of a task adds up to.
fn fold(conn: &Connection, id: TaskId) -> Result<TaskFold, StoreError> {
    let mut fold = TaskFold::default();
    let mut log = conn
        .prepare_cached(&format!("SELECT {EVENT_COLUMNS} FROM task_events WHERE task = ?1 ORDER BY seq"))?;
    let mut rows = log.query([sealed::id(id.as_u128())])?;
    while let Some(row) = rows.next()? {
        fold.feed(seq_of(row), read_event(row).as_ref().map_err(String::clone));
    }
    Ok(fold)
}
