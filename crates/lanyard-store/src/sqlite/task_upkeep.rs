//! Looking after tasks and mail: comparing rows and names with what the logs add up to, and making them again.

use std::collections::{BTreeMap, BTreeSet};

use lanyard_core::TaskId;
use lanyard_core::task::{Task, is_key};
use rusqlite::{Connection, OptionalExtension};

use crate::error::StoreError;
use crate::fold::TaskFold;
use crate::sqlite::boot::each_row;
use crate::sqlite::read::undamaged;
use crate::sqlite::sealed;
use crate::sqlite::task_rows::{
    EVENT_COLUMNS, MAIL_COLUMNS, TASK_COLUMNS, put_name, put_task, read_event, read_mail, read_task, seq_of,
    task_of,
};

/// Complaints about tasks that are passed on; a lost page can be in the way of thousands.
const COMPLAINTS_MAX: usize = 1_000;

/// Something that is wrong with a task: the numbers of its events concerned, or zeros, and what it is.
pub(super) type Complaint = ((u64, u64), String);

/// What is wrong with tasks, their names, and mail.
pub(super) fn check(conn: &Connection) -> Result<Vec<Complaint>, StoreError> {
    let mut audit = Audit::default();
    let whole = each_log(conn, |id, fold| audit.log(conn, id, &fold))?;
    if !whole {
        audit.complain((0, 0), "the logs of tasks cannot all be read".to_owned());
    }
    audit.count(conn, "tasks", audit.tasks)?;
    audit.count(conn, "task_names", audit.names)?;
    let mail = each_row(conn, &format!("SELECT {MAIL_COLUMNS} FROM mail"), |row| read_mail(row).is_ok())?;
    if !mail {
        audit.complain((0, 0), "a kept mail is damaged".to_owned());
    }
    Ok(audit.complaints)
}

#[derive(Default)]
struct Audit {
    complaints: Vec<Complaint>,
    tasks: u64,
    names: u64,
}

impl Audit {
    fn complain(&mut self, seq: (u64, u64), what: String) {
        if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints.push((seq, what));
        }
    }

    fn log(&mut self, conn: &Connection, id: TaskId, fold: &TaskFold) -> Result<(), StoreError> {
        self.tasks += 1;
        for (seq, why) in &fold.left_out {
            self.complain((*seq, *seq), format!("the log of {id} is damaged: {why}"));
        }
        let row = row(conn, id)?;
        // A damaged log cannot tell whether the row is right; a good row then is what is left.
        match &row {
            Err(why) => self.complain((0, 0), format!("the row of {id} is damaged: {why}")),
            Ok(row) if fold.left_out.is_empty() && fold.task.as_ref() != Some(row) => {
                self.complain((0, 0), format!("the row of {id} is not what its log adds up to"));
            }
            Ok(_) => {}
        }
        let held = names(conn, id, &fold.names)?;
        self.names += held.len() as u64;
        let mut missing = fold.names.difference(&held);
        if missing.any(|name| !(fold.has_ended && is_key(name))) {
            self.complain((0, 0), format!("a name of {id} is missing"));
        }
        Ok(())
    }

    fn count(&mut self, conn: &Connection, table: &str, expected: u64) -> Result<(), StoreError> {
        let counted =
            conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0));
        let counted = undamaged(counted)?;
        if counted.and_then(|counted| u64::try_from(counted).ok()) != Some(expected) {
            let counted = counted.map_or_else(|| "unreadable".to_owned(), |counted| counted.to_string());
            self.complain((0, 0), format!("table {table} has {counted} rows where the log says {expected}"));
        }
        Ok(())
    }
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

/// Feeds what each log adds up to. Answers whether all of them could be read to their end.
fn each_log(
    conn: &Connection,
    mut each: impl FnMut(TaskId, TaskFold) -> Result<(), StoreError>,
) -> Result<bool, StoreError> {
    let mut open: Option<(TaskId, TaskFold)> = None;
    let mut failed = None;
    let mut close = |open: Option<(TaskId, TaskFold)>| {
        if let (Some((id, fold)), None) = (open, &failed) {
            failed = each(id, fold).err();
        }
    };
    let all = format!("SELECT {EVENT_COLUMNS} FROM task_events ORDER BY task, seq");
    let whole = each_row(conn, &all, |row| {
        let Some(id) = task_of(row) else { return false };
        if open.as_ref().is_none_or(|(of, _)| *of != id) {
            close(open.replace((id, TaskFold::default())));
        }
        if let Some((_, fold)) = &mut open {
            fold.feed(seq_of(row), read_event(row).as_ref().map_err(String::clone));
        }
        true
    })?;
    close(open);
    failed.map_or(Ok(whole), Err)
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
        let Some(task) = rest.remove(&id).or(fold.task) else {
            tracing::error!(task = %id, "a task cannot be made from its log");
            return Ok(());
        };
        put_task(conn, &task)
    })?;
    Ok(())
}
