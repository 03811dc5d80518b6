//! Tables of journals up to schema 10, in which each kind of record had its own, and how they are taken over.

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::error::StoreError;
use crate::records::{RecordKind, RecordRef};
use crate::sqlite::boot::each_row;
use crate::sqlite::records::{PUT_EVENT, PUT_ROW, put_row, put_values, sealed_values};
use crate::sqlite::rows::{blob, column, unsigned};
use crate::sqlite::sealed::is_whole;

/// The last schema with these tables.
const LAST: u32 = 10;

/// A table of one kind. Its first column is the record's id, its last one the checksum, and the body is before that.
struct OldTable {
    name: &'static str,
    columns: &'static str,
    kind: RecordKind,
    /// The column of the event's number; none for a table of rows.
    seq: Option<usize>,
}

const TABLES: [OldTable; 7] = [
    OldTable {
        name: "flow_events",
        columns: "flow, seq, at, body, crc",
        kind: RecordKind::Flow,
        seq: Some(1),
    },
    OldTable {
        name: "flows",
        columns: "id, plan, workspace, state, ended, settled, seq, body, crc",
        kind: RecordKind::Flow,
        seq: None,
    },
    OldTable { name: "task_events", columns: "task, seq, body, crc", kind: RecordKind::Task, seq: Some(1) },
    OldTable {
        name: "tasks",
        columns: "id, plan, parent, reports_to, worker, session, workspace, state, ended, seq, body, crc",
        kind: RecordKind::Task,
        seq: None,
    },
    OldTable {
        name: "mail",
        columns: "id, box, seq, settled, dead, body, crc",
        kind: RecordKind::Mail,
        seq: None,
    },
    OldTable {
        name: "notifications",
        columns: "id, key, status, session, lasting, snoozed_until, change, body, crc",
        kind: RecordKind::Notification,
        seq: None,
    },
    OldTable {
        name: "deliveries",
        columns: "id, notification, target, state, due_at, body, crc",
        kind: RecordKind::Delivery,
        seq: None,
    },
];

/// Moves everything from the old tables that are there into those of records. A damaged row stays a damaged one.
pub(super) fn take_over(conn: &Connection) -> Result<(), StoreError> {
    for table in TABLES.iter().filter(|table| table.is_there(conn)) {
        let mut failed = None;
        let read = table.each(conn, |row, whole| {
            if failed.is_none() {
                failed = table.take(conn, row, whole).err();
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if read {
            conn.execute_batch(&format!("DROP TABLE {}", table.name))?;
        } else {
            // What is behind a lost page may still be saved; `check` reports the table for as long as it is there.
            tracing::error!(
                table = table.name,
                "a table of an older journal cannot be read to its end and is kept"
            );
        }
    }
    Ok(())
}

/// Faults of old tables: rows that differ from what was written, and tables that could not be converted.
pub(super) fn check(conn: &Connection, schema: u32) -> Result<Vec<String>, StoreError> {
    let mut complaints = Vec::new();
    for table in TABLES.iter().filter(|table| table.is_there(conn)) {
        let mut good = true;
        let read = table.each(conn, |_, whole| good &= whole)?;
        if !(good && read) || schema > LAST {
            complaints.push(format!("table {} of an older journal is damaged", table.name));
        }
    }
    Ok(complaints)
}

impl OldTable {
    fn is_there(&self, conn: &Connection) -> bool {
        conn.table_exists(None, self.name).unwrap_or(false)
    }

    /// Feeds every row, and whether it is as it was written. Answers whether the table could be read to its end.
    fn each(
        &self,
        conn: &Connection,
        mut each: impl FnMut(&rusqlite::Row<'_>, bool),
    ) -> Result<bool, StoreError> {
        let columns = self.columns.split(", ").count();
        each_row(conn, &format!("SELECT {} FROM {}", self.columns, self.name), |row| {
            each(row, is_whole(row, columns - 1));
            true
        })
    }

    fn take(&self, conn: &Connection, row: &rusqlite::Row<'_>, whole: bool) -> Result<(), StoreError> {
        let Some(id) = column(row, 0).map(u128::from_be_bytes) else { return Ok(()) };
        let of = RecordRef { kind: self.kind, id };
        let body = blob(row, self.columns.split(", ").count() - 2).unwrap_or_default();
        if self.seq.is_none()
            && let Ok(good) = of.kind.row(body)
            && whole
        {
            return put_row(conn, &good);
        }
        let Some(seq) = self.seq.map_or(Some(0), |seq| column(row, seq).map(unsigned)) else { return Ok(()) };
        let mut values = sealed_values(of, seq, Value::Blob(body.to_vec()));
        if !whole && let Some(Value::Integer(crc)) = values.last_mut() {
            *crc = !*crc;
        }
        Ok(put_values(conn, if self.seq.is_some() { PUT_EVENT } else { PUT_ROW }, values)?)
    }
}
