//! Forgetting the keys of requests that made tasks, some time after the tasks ended.

use lanyard_core::task::{REQUEST_KEY, SPAWN_KEY, Task};
use lanyard_core::{TaskId, Timestamp};
use rusqlite::Connection;

use crate::error::StoreError;
use crate::records::{RecordKind, RecordRef, decode};
use crate::sqlite::records::{NAME, mended, row};
use crate::sqlite::sealed;

/// Keys of tasks that ended before then. A task that was made since cannot have, which its id tells without its row.
pub(super) fn old(
    conn: &Connection,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<(String, TaskId)>, StoreError> {
    let mut list = conn.prepare_cached(
        "SELECT value, id FROM record_keys k WHERE kind = 'task' AND key = ?1 AND value >= ?2 AND value < ?3 \
         AND id < ?4 AND EXISTS (SELECT 1 FROM record_keys e WHERE e.kind = 'task' AND e.key = 'ended' \
         AND e.value = 1 AND e.id = k.id)",
    )?;
    let made_since = sealed::id(TaskId::mint(before, 0).as_u128());
    let mut old = Vec::new();
    for key in [REQUEST_KEY, SPAWN_KEY] {
        let mut rows = list.query((NAME, key, format!("{key}{}", char::MAX), &made_since))?;
        while let Some(row) = rows.next()? {
            let id = TaskId::from_u128(u128::from_be_bytes(row.get(1)?));
            if task(conn, id)?.is_some_and(|task| task.state.is_ended() && task.since < before) {
                old.push((row.get(0)?, id));
            }
            if old.len() >= limit {
                return Ok(old);
            }
        }
    }
    Ok(old)
}

/// The task as it is stored. One that is damaged is reported by `check`, and keeps its keys.
fn task(conn: &Connection, id: TaskId) -> Result<Option<Task>, StoreError> {
    let of = RecordRef { kind: RecordKind::Task, id: id.as_u128() };
    let body = match row(conn, of)? {
        Ok(Some(body)) => Some(body),
        Ok(None) | Err(_) => match mended(conn, of) {
            Err(StoreError::Damaged(_)) => None,
            body => body?,
        },
    };
    Ok(body.and_then(|body| decode(&body).ok()))
}

pub(super) fn forget(conn: &Connection, names: &[(String, TaskId)]) -> Result<usize, StoreError> {
    let mut forget = conn.prepare_cached(
        "DELETE FROM record_keys WHERE kind = 'task' AND key = ?1 AND value = ?2 AND id = ?3",
    )?;
    for (name, task) in names {
        forget.execute((NAME, name, sealed::id(task.as_u128())))?;
    }
    Ok(names.len())
}
