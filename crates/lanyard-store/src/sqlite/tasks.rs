//! Tasks and mail in the file. A batch is checked against what is there before anything of it is written.

use std::collections::BTreeMap;

use lanyard_core::task::{Mail, MailTo, REQUEST_KEY, SPAWN_KEY, Task, TaskEnvelope};
use lanyard_core::{MailId, TaskId, Timestamp};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use crate::error::{AppendError, StoreError};
use crate::journal::{Durability, FIND_MAX};
use crate::sqlite::SqliteJournal;
use crate::sqlite::conditions::Conditions;
use crate::sqlite::logs::{self, seq_of};
use crate::sqlite::rows::{signed, unsigned};
use crate::sqlite::sealed;
use crate::sqlite::task_rows::{
    EVENT_COLUMNS, MAIL_COLUMNS, TASK_COLUMNS, box_key, get_task, put_event, put_mail, put_name, put_task,
    read_event, read_mail, read_task, task_of,
};
use crate::tasks::{MailFilter, TaskFilter, Tasks, WorkBatch};

impl Tasks for SqliteJournal {
    fn write_work(&self, batch: &WorkBatch) -> Result<(), AppendError> {
        let mut writer = self.writer();
        let conn = writer.usable().map_err(AppendError::Unavailable)?;
        match contradiction(conn, batch) {
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

    fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        self.pool.read(|conn| get_task(conn, id))
    }

    fn tasks(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Vec<Task>, StoreError> {
        self.pool.read(|conn| list_tasks(conn, filter, after, limit))
    }

    fn task_events(&self, task: TaskId, after: u64, limit: usize) -> Result<Vec<TaskEnvelope>, StoreError> {
        self.pool.read(|conn| {
            let mut list = conn.prepare_cached(&format!(
                "SELECT {EVENT_COLUMNS} FROM task_events WHERE task = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
            ))?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let mut rows = list.query((sealed::id(task.as_u128()), signed(after), limit))?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                let damaged = |why| {
                    StoreError::Damaged(format!("event {} of task {task} is damaged: {why}", seq_of(row)))
                };
                events.push(read_event(row).map_err(damaged)?);
            }
            Ok(events)
        })
    }

    fn tasks_named(&self, name: &str) -> Result<Vec<TaskId>, StoreError> {
        self.pool.read(|conn| {
            let mut find = conn
                .prepare_cached("SELECT task FROM task_names WHERE name = ?1 ORDER BY task DESC LIMIT ?2")?;
            let id = |row: &rusqlite::Row<'_>| row.get(0).map(u128::from_be_bytes).map(TaskId::from_u128);
            let found = find.query_map((name, i64::try_from(FIND_MAX).unwrap_or(i64::MAX)), id)?;
            Ok(found.collect::<Result<_, _>>()?)
        })
    }

    fn mail(&self, id: MailId) -> Result<Option<Mail>, StoreError> {
        self.pool.read(|conn| {
            let mut get = conn.prepare_cached(&format!("SELECT {MAIL_COLUMNS} FROM mail WHERE id = ?1"))?;
            let found = get.query_row([sealed::id(id.as_u128())], |row| Ok(read_mail(row))).optional()?;
            found.transpose().map_err(|why| StoreError::Damaged(format!("mail {id} is damaged: {why}")))
        })
    }

    fn last_mail(&self, to: MailTo) -> Result<u64, StoreError> {
        self.pool.read(|conn| {
            let mut last = conn.prepare_cached("SELECT max(seq) FROM mail WHERE box = ?1")?;
            let last: Option<i64> = last.query_row([box_key(to)], |row| row.get(0))?;
            Ok(last.map_or(0, unsigned))
        })
    }

    fn mails(
        &self,
        filter: &MailFilter,
        after: Option<(MailTo, u64)>,
        limit: usize,
    ) -> Result<Vec<Mail>, StoreError> {
        self.pool.read(|conn| list_mails(conn, filter, after, limit))
    }
}

pub(super) fn forget_names(conn: &Connection, names: &[(String, TaskId)]) -> Result<usize, StoreError> {
    let mut forget = conn.prepare_cached("DELETE FROM task_names WHERE name = ?1 AND task = ?2")?;
    for (name, task) in names {
        forget.execute((name, sealed::id(task.as_u128())))?;
    }
    Ok(names.len())
}

/// Keys of tasks that ended before then. One that was made since cannot have, which its id tells without its row.
pub(super) fn old_keys(
    conn: &Connection,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<(String, TaskId)>, StoreError> {
    let mut list = conn.prepare_cached(
        "SELECT name, task FROM task_names WHERE name >= ?1 AND name < ?2 AND task < ?3 \
         AND (SELECT ended FROM tasks WHERE id = task)",
    )?;
    let made_since = sealed::id(TaskId::mint(before, 0).as_u128());
    let mut old = Vec::new();
    for key in [REQUEST_KEY, SPAWN_KEY] {
        let mut rows = list.query((key, format!("{key}{}", char::MAX), &made_since))?;
        while let Some(row) = rows.next()? {
            let task = TaskId::from_u128(u128::from_be_bytes(row.get(1)?));
            let held = match get_task(conn, task) {
                // It is reported by `check`, and in nobody's way here.
                Err(StoreError::Damaged(_)) => None,
                held => held?,
            };
            if held.is_some_and(|task| task.state.is_ended() && task.since < before) {
                old.push((row.get(0)?, task));
            }
            if old.len() >= limit {
                return Ok(old);
            }
        }
    }
    Ok(old)
}

/// What of the batch does not follow from what is there.
fn contradiction(conn: &Connection, batch: &WorkBatch) -> Result<Option<String>, StoreError> {
    let entries = batch.entries.iter().map(|entry| (entry.task, entry.seq));
    let rows: Vec<_> = batch.tasks.iter().map(|task| (task.id, task.seq)).collect();
    match logs::contradiction(entries, &rows, |task| head(conn, task))? {
        None => crowded(conn, &batch.mail),
        found => Ok(found),
    }
}

/// The number of a task's last event; 0 for none.
fn head(conn: &Connection, task: TaskId) -> Result<u64, StoreError> {
    let mut last = conn.prepare_cached("SELECT max(seq) FROM task_events WHERE task = ?1")?;
    let last: Option<i64> = last.query_row([sealed::id(task.as_u128())], |row| row.get(0))?;
    Ok(last.map_or(0, unsigned))
}

/// A place in a box that would be taken twice.
fn crowded(conn: &Connection, mail: &[Mail]) -> Result<Option<String>, StoreError> {
    let mut places: BTreeMap<(MailTo, u64), MailId> = BTreeMap::new();
    for one in mail {
        let held = match places.get(&(one.to, one.seq)) {
            Some(held) => Some(*held),
            None => holder(conn, one.to, one.seq)?,
        };
        if held.is_some_and(|held| held != one.id) {
            return Ok(Some(format!("place {} of the box of {} is taken", one.seq, one.to)));
        }
        places.insert((one.to, one.seq), one.id);
    }
    Ok(None)
}

/// The mail that has this place in a box.
fn holder(conn: &Connection, to: MailTo, seq: u64) -> Result<Option<MailId>, StoreError> {
    let mut find = conn.prepare_cached("SELECT id FROM mail WHERE box = ?1 AND seq = ?2")?;
    let held = find.query_row((box_key(to), signed(seq)), |row| row.get(0)).optional()?;
    Ok(held.map(|id| MailId::from_u128(u128::from_be_bytes(id))))
}

fn write(conn: &Connection, batch: &WorkBatch) -> Result<(), StoreError> {
    for entry in &batch.entries {
        put_event(conn, entry)?;
        entry.names().iter().try_for_each(|name| put_name(conn, name, entry.task))?;
    }
    batch.tasks.iter().try_for_each(|task| put_task(conn, task))?;
    batch.mail.iter().try_for_each(|mail| put_mail(conn, mail))
}

fn list_tasks(
    conn: &Connection,
    filter: &TaskFilter,
    after: Option<TaskId>,
    limit: usize,
) -> Result<Vec<Task>, StoreError> {
    let mut when = Conditions::default();
    when.is("plan", filter.plan.map(|plan| sealed::id(plan.as_u128())));
    when.is("parent", filter.parent.map(|parent| sealed::id(parent.as_u128())));
    when.is("reports_to", filter.reports_to.map(box_key));
    when.is("worker", filter.worker.map(|worker| sealed::id(worker.as_u128())));
    when.is("session", filter.session.map(|session| sealed::id(session.as_u128())));
    when.is("workspace", filter.workspace.clone().map(Value::Text));
    // Half of all tasks may have the same state. The plus keeps the database from looking there first when it is asked for
    // anything else.
    let few = !when.is_empty();
    when.is(if few { "+state" } else { "state" }, filter.state.map(|state| Value::Text(state.to_string())));
    when.is(if few { "+ended" } else { "ended" }, filter.ended.map(Value::from));
    if let Some(after) = after {
        when.holds("id >", sealed::id(after.as_u128()));
    }
    let mut list =
        conn.prepare_cached(&format!("SELECT {TASK_COLUMNS} FROM tasks {} ORDER BY id", when.text()))?;
    let mut rows = list.query(params_from_iter(when.values))?;
    let mut tasks = Vec::new();
    // Not limited by the database: one that is left out must not make the page look like the last.
    while tasks.len() < limit
        && let Some(row) = rows.next()?
    {
        let task = match read_task(row) {
            Ok(task) => Some(task),
            Err(_) => mended(conn, task_of(row))?,
        };
        tasks.extend(task.filter(|task| filter.matches(task)));
    }
    Ok(tasks)
}

/// The task of a damaged row, from its log. One that cannot be made does not hide the others.
fn mended(conn: &Connection, id: Option<TaskId>) -> Result<Option<Task>, StoreError> {
    let Some(id) = id else {
        tracing::error!("the row of a task is damaged, and whose it is cannot be told");
        return Ok(None);
    };
    match get_task(conn, id) {
        Err(StoreError::Damaged(what)) => {
            tracing::error!(what);
            Ok(None)
        }
        found => found,
    }
}

fn list_mails(
    conn: &Connection,
    filter: &MailFilter,
    after: Option<(MailTo, u64)>,
    limit: usize,
) -> Result<Vec<Mail>, StoreError> {
    let mut when = Conditions::default();
    when.is("box", filter.to.map(box_key));
    when.is("settled", filter.settled.map(Value::from));
    when.is("dead", filter.dead.map(Value::from));
    if let Some((to, seq)) = after {
        when.values.extend([box_key(to), Value::Integer(signed(seq))]);
        when.texts.push(format!("(box, seq) > (?{}, ?{})", when.values.len() - 1, when.values.len()));
    }
    let mut list =
        conn.prepare_cached(&format!("SELECT {MAIL_COLUMNS} FROM mail {} ORDER BY box, seq", when.text()))?;
    let mut rows = list.query(params_from_iter(when.values))?;
    let mut mails = Vec::new();
    while mails.len() < limit
        && let Some(row) = rows.next()?
    {
        match read_mail(row) {
            Ok(mail) => mails.extend(Some(mail).filter(|mail| filter.matches(mail))),
            Err(why) => tracing::error!(why, "a kept mail is damaged"),
        }
    }
    Ok(mails)
}
