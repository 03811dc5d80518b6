//! Looking after tasks and mail: comparing rows and names with what the logs add up to, and making them again.

use std::collections::{BTreeMap, BTreeSet};

use lanyard_core::TaskId;
use lanyard_core::task::{Task, is_key};
use rusqlite::{Connection, OptionalExtension};

use crate::error::StoreError;
use crate::fold::TaskFold;
use crate::sqlite::boot::each_row;
use crate::sqlite::logs::{self, Complaint, Complaints};
use crate::sqlite::read::undamaged;
use crate::sqlite::sealed;
use crate::sqlite::task_rows::{
    EVENT_COLUMNS, MAIL_COLUMNS, TASK_COLUMNS, put_name, put_task, read_event, read_mail, read_task, task_of,
};

/// What is wrong with tasks, their names, and mail.
pub(super) fn check(conn: &Connection) -> Result<Vec<Complaint>, StoreError> {
    let mut complaints = Complaints::default();
    let (mut tasks, mut named) = (0, 0);
    let whole = each_log(conn, |id, fold| {
        tasks += 1;
        complaints.compare(id, &fold, &row(conn, id)?);
        let held = names(conn, id, &fold.names)?;
        named += held.len() as u64;
        let mut missing = fold.names.difference(&held);
        if missing.any(|name| !(fold.has_ended && is_key(name))) {
            complaints.add((0, 0), format!("a name of {id} is missing"));
        }
        Ok(())
    })?;
    if !whole {
        complaints.add((0, 0), "the logs of tasks cannot all be read".to_owned());
    }
    complaints.count(conn, "tasks", tasks)?;
    complaints.count(conn, "task_names", named)?;
    let mail = each_row(conn, &format!("SELECT {MAIL_COLUMNS} FROM mail"), |row| read_mail(row).is_ok())?;
    if !mail {
        complaints.add((0, 0), "a kept mail is damaged".to_owned());
    }
    Ok(complaints.0)
}

/// The task in a row, or what is wrong with it.
fn row(conn: &Connection, id: TaskId) -> Result<Result<Task, String>, StoreError> {
    let mut get = conn.prepare_cached(&format!("SELECT {TASK_COLUMNS} FROM tasks WHERE id = ?1"))?;
    let found = get.query_row([sealed::id(id.as_u128())], |row| Ok(read_task(row))).optional();
    Ok(match undamaged(found)? {
        Some(Some(read)) => read,
        Some(None) => Err("it is missing".to_owned()),
        None => Err("it cannot be read".to_owned()),
    })
}

/// Those of the names under which the task is found.
fn names(conn: &Connection, id: TaskId, told: &BTreeSet<String>) -> Result<BTreeSet<String>, StoreError> {
    let mut find = conn.prepare_cached("SELECT 1 FROM task_names WHERE name = ?1 AND task = ?2")?;
    let mut held = BTreeSet::new();
    for name in told {
        if undamaged(find.exists((name, sealed::id(id.as_u128()))))? == Some(true) {
            held.insert(name.clone());
        }
    }
    Ok(held)
}

fn each_log(
    conn: &Connection,
    each: impl FnMut(TaskId, TaskFold) -> Result<(), StoreError>,
) -> Result<bool, StoreError> {
    let all = format!("SELECT {EVENT_COLUMNS} FROM task_events ORDER BY task, seq");
    logs::each_log(conn, &all, task_of, read_event, each)
}

/// What the logs can no longer tell and the rows still can. To be asked before the rows are thrown away.
pub(super) fn rest(conn: &Connection) -> Result<BTreeMap<TaskId, Task>, StoreError> {
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

/// Makes all rows and names from the logs, into empty tables.
pub(super) fn fill(conn: &Connection, mut rest: BTreeMap<TaskId, Task>) -> Result<(), StoreError> {
    each_log(conn, |id, fold| {
        for name in &fold.names {
            put_name(conn, name, id)?;
        }
        let Some(task) = rest.remove(&id).or(fold.record) else {
            tracing::error!(task = %id, "a task cannot be made from its log");
            return Ok(());
        };
        put_task(conn, &task)
    })?;
    Ok(())
}
