//! Records in the file: rows, logs and keys of every kind. A batch is checked against what is there before anything of it
//! is written. Every answer that is not as it was written says so.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use lanyard_core::naming::IdPart;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::error::StoreError;
use crate::journal::FIND_MAX;
use crate::records::{
    BodyReader, KeyRange, KeyValue, RecordBatch, RecordEntry, RecordKey, RecordKind, RecordQuery, RecordRef,
    RecordRow, Records, SummedLog,
};
use crate::sqlite::SqliteJournal;
use crate::sqlite::changes;
use crate::sqlite::logs::{self, seq_of};
use crate::sqlite::read::undamaged;
use crate::sqlite::record_search::{search, sql};
use crate::sqlite::rows::{blob, column, signed, unsigned};
use crate::sqlite::sealed::{self, NOT_WHOLE, is_whole, seal};

/// Logs are short and read whole, so they have an index, and each is read in its order.
pub(super) const EVENTS: &str = "
    CREATE TABLE IF NOT EXISTS record_events (
        kind TEXT NOT NULL,
        record BLOB NOT NULL,
        seq INTEGER NOT NULL,
        body BLOB NOT NULL,
        crc INTEGER NOT NULL,
        PRIMARY KEY (kind, record, seq)
    );
";

/// Records with a log are projections of it. Keys are projections of the rows, and names of the logs.
pub(super) const ROWS: &str = "
    CREATE TABLE IF NOT EXISTS record_rows (
        kind TEXT NOT NULL,
        id BLOB NOT NULL,
        as_of INTEGER NOT NULL,
        body BLOB NOT NULL,
        crc INTEGER NOT NULL,
        PRIMARY KEY (kind, id)
    );
    CREATE TABLE IF NOT EXISTS record_keys (
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        value NOT NULL,
        id BLOB NOT NULL,
        PRIMARY KEY (kind, key, value, id)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS record_keys_of ON record_keys (kind, id);
";

pub(super) const EVENT_COLUMNS: &str = "kind, record, seq, body, crc";
pub(super) const ROW_COLUMNS: &str = "kind, id, as_of, body, crc";
pub(super) const PUT_EVENT: &str =
    "INSERT INTO record_events (kind, record, seq, body, crc) VALUES (?1, ?2, ?3, ?4, ?5)";
pub(super) const PUT_ROW: &str =
    "INSERT OR REPLACE INTO record_rows (kind, id, as_of, body, crc) VALUES (?1, ?2, ?3, ?4, ?5)";

/// The key of the names that a record's log gave it.
pub(super) const NAME: &str = "name";

impl Records for SqliteJournal {
    fn contradiction(&self, batch: &RecordBatch) -> Result<Option<String>, StoreError> {
        // The engine asks while it decides.
        self.prompt.read(|conn| contradiction(conn, batch))
    }

    fn read_record(&self, of: RecordRef, read: BodyReader<'_>) -> Result<(), StoreError> {
        // Without a log the read is one row by its key, and the engine asks for it while it decides.
        let pool = if of.kind.has_log() { &self.pool } else { &self.prompt };
        pool.read(|conn| {
            let damaged = |why| StoreError::Damaged(format!("{} {of} is damaged: {why}", of.kind.as_str()));
            let why = match row(conn, of)? {
                Ok(Some(body)) => match read(&body) {
                    Ok(_) => return Ok(()),
                    Err(why) => Some(why),
                },
                Ok(None) => None,
                Err(why) => Some(why),
            };
            match (mended(conn, of)?, why) {
                (Some(body), _) => read(&body).map(drop).map_err(damaged),
                (None, Some(why)) => Err(damaged(why)),
                (None, None) => Ok(()),
            }
        })
    }

    fn read_records(&self, query: &RecordQuery, read: BodyReader<'_>) -> Result<(), StoreError> {
        self.pool.read(|conn| read_all(conn, query, read))
    }

    fn read_log(&self, of: RecordRef, after: u64, read: BodyReader<'_>) -> Result<(), StoreError> {
        self.pool.read(|conn| {
            let mut list = conn.prepare_cached(&format!(
                "SELECT {EVENT_COLUMNS} FROM record_events WHERE kind = ?1 AND record = ?2 AND seq > ?3 \
                 ORDER BY seq"
            ))?;
            let mut rows = list.query((of.kind.as_str(), sealed::id(of.id), signed(after)))?;
            while let Some(row) = rows.next()? {
                let kind = of.kind.as_str();
                let damaged = |why| {
                    StoreError::Damaged(format!("event {} of {kind} {of} is damaged: {why}", seq_of(row)))
                };
                if body_of(row).and_then(&mut *read).map_err(damaged)?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn records_named(&self, kind: RecordKind, name: &str) -> Result<Vec<u128>, StoreError> {
        self.pool.read(|conn| {
            let mut find = conn.prepare_cached(
                "SELECT id FROM record_keys WHERE kind = ?1 AND key = ?2 AND value = ?3 ORDER BY id DESC LIMIT ?4",
            )?;
            let limit = i64::try_from(FIND_MAX).unwrap_or(i64::MAX);
            let found = find
                .query_map((kind.as_str(), NAME, name, limit), |row| row.get(0).map(u128::from_be_bytes))?;
            Ok(found.collect::<Result<_, _>>()?)
        })
    }

    fn records_like(&self, kind: RecordKind, part: &IdPart, limit: usize) -> Result<Vec<u128>, StoreError> {
        let mut found: BTreeSet<u128> = BTreeSet::new();
        self.pool.read(|conn| {
            if let Some((first, last)) = part.range() {
                let mut begins = conn.prepare_cached(
                    "SELECT id FROM record_rows WHERE kind = ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id DESC LIMIT ?4",
                )?;
                let count = i64::try_from(limit).unwrap_or(i64::MAX);
                let range = (kind.as_str(), sealed::id(first), sealed::id(last), count);
                for id in begins.query_map(range, |row| row.get(0).map(u128::from_be_bytes))? {
                    found.insert(id?);
                }
            }
            // The index of the primary key holds the ids, so no row is read.
            let mut ends =
                conn.prepare_cached("SELECT id FROM record_rows WHERE kind = ?1 AND substr(id, 15) = ?2 ORDER BY id DESC")?;
            let ids = ends.query_map((kind.as_str(), part.last_bytes()), |row| row.get(0).map(u128::from_be_bytes))?;
            let mut places = limit;
            for id in ids {
                let id = id?;
                if places == 0 {
                    break;
                }
                if part.matches(id) && found.insert(id) {
                    places -= 1;
                }
            }
            Ok(())
        })?;
        Ok(found.into_iter().rev().take(limit).collect())
    }

    fn count_records(&self, kind: RecordKind, (key, value): &RecordKey) -> Result<u64, StoreError> {
        self.pool.read(|conn| {
            let mut count = conn.prepare_cached(
                "SELECT count(*) FROM record_keys WHERE kind = ?1 AND key = ?2 AND value = ?3",
            )?;
            Ok(count.query_row((kind.as_str(), key, sql(value)), |row| row.get(0)).map(unsigned)?)
        })
    }

    fn last_key(&self, kind: RecordKind, range: &KeyRange) -> Result<Option<KeyValue>, StoreError> {
        self.pool.read(|conn| {
            let mut last = conn.prepare_cached(
                "SELECT ?5, max(value) FROM (SELECT value FROM record_keys WHERE kind = ?1 AND key = ?2 \
                 AND value > ?3 AND value < ?4 UNION ALL SELECT value FROM meta WHERE key = ?5)",
            )?;
            let counter = kind.counter().filter(|counter| *counter == range.key);
            let counter = counter.map(|counter| counter_name(kind, counter));
            let range = (kind.as_str(), range.key, sql(&range.after), sql(&range.before), counter);
            Ok(last.query_row(range, |row| Ok(value_of(row)))?)
        })
    }
}

/// Writes a batch. Answers the last position of its changes; none when nothing that can be followed changed.
pub(super) fn write(conn: &Connection, batch: &RecordBatch) -> Result<Option<u64>, StoreError> {
    if batch.is_empty() {
        return Ok(None);
    }
    batch.entries.iter().try_for_each(|entry| put_entry(conn, entry))?;
    batch.rows.iter().try_for_each(|row| put_row(conn, row))?;
    batch.removed.iter().try_for_each(|of| remove(conn, *of))?;
    changes::note_batch(conn, batch)
}

/// The first contradiction between the batch and the stored records.
pub(super) fn contradiction(conn: &Connection, batch: &RecordBatch) -> Result<Option<String>, StoreError> {
    if batch.is_empty() {
        return Ok(None);
    }
    let entries = batch.entries.iter().map(|entry| (entry.of, entry.seq));
    let logged = batch.rows.iter().filter(|row| row.of.kind.has_log());
    let rows: Vec<_> = logged.map(|row| (row.of, row.as_of)).collect();
    match logs::contradiction(entries, &rows, |of| head(conn, of))? {
        None => taken_twice(conn, batch),
        found => Ok(found),
    }
}

/// A value of a unique key that two records would have.
fn taken_twice(conn: &Connection, batch: &RecordBatch) -> Result<Option<String>, StoreError> {
    let mut find =
        conn.prepare_cached("SELECT id FROM record_keys WHERE kind = ?1 AND key = ?2 AND value = ?3")?;
    let mut taken = BTreeMap::new();
    for row in &batch.rows {
        let kind = row.of.kind;
        for (key, value) in row.keys.iter().filter(|(key, _)| kind.unique() == Some(*key)) {
            let held = find.query_row((kind.as_str(), key, sql(value)), |row| row.get(0)).optional()?;
            let held = held.map(u128::from_be_bytes);
            // What the batch writes anew or removes may leave its value.
            let stays = |id: &u128| {
                let of = RecordRef { kind, id: *id };
                !batch.rows.iter().any(|other| other.of == of) && !batch.removed.contains(&of)
            };
            let other = taken.insert((kind, value), row.of.id).or(held.filter(stays));
            if other.is_some_and(|other| other != row.of.id) {
                return Ok(Some(format!("the {key} of {} is taken", row.of)));
            }
        }
    }
    Ok(None)
}

/// The number of a record's last event; 0 for none.
fn head(conn: &Connection, of: RecordRef) -> Result<u64, StoreError> {
    let mut last =
        conn.prepare_cached("SELECT max(seq) FROM record_events WHERE kind = ?1 AND record = ?2")?;
    let last: Option<i64> = last.query_row((of.kind.as_str(), sealed::id(of.id)), |row| row.get(0))?;
    Ok(last.map_or(0, unsigned))
}

fn put_entry(conn: &Connection, entry: &RecordEntry) -> Result<(), StoreError> {
    let values = sealed_values(entry.of, entry.seq, Value::Blob(entry.body.clone()));
    put_values(conn, PUT_EVENT, values)?;
    Ok(entry.names.iter().try_for_each(|name| put_name(conn, entry.of, name))?)
}

/// The values of a row of events or records, with their checksum.
pub(super) fn sealed_values(of: RecordRef, seq: u64, body: Value) -> Vec<Value> {
    let kind = Value::Text(of.kind.as_str().to_owned());
    seal(vec![kind, sealed::id(of.id), Value::Integer(signed(seq)), body])
}

/// Writes sealed values with [`PUT_EVENT`] or [`PUT_ROW`].
pub(super) fn put_values(conn: &Connection, put: &str, values: Vec<Value>) -> rusqlite::Result<()> {
    conn.prepare_cached(put)?.execute(params_from_iter(values)).map(drop)
}

/// Writes a row and its keys.
pub(super) fn put_row(conn: &Connection, row: &RecordRow) -> Result<(), StoreError> {
    let values = sealed_values(row.of, row.as_of, Value::Blob(row.body.clone()));
    put_values(conn, PUT_ROW, values)?;
    put_keys(conn, row)
}

/// Writes the keys of a row. Most writes change few of them: only the difference is written.
pub(super) fn put_keys(conn: &Connection, row: &RecordRow) -> Result<(), StoreError> {
    let (kind, id) = (row.of.kind.as_str(), sealed::id(row.of.id));
    let wanted: BTreeSet<(String, KeyValue)> =
        row.keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let held: BTreeSet<_> = keys(conn, row.of)?.into_iter().filter(|(key, _)| key != NAME).collect();
    let mut forget = conn
        .prepare_cached("DELETE FROM record_keys WHERE kind = ?1 AND key = ?2 AND value = ?3 AND id = ?4")?;
    for (key, value) in held.difference(&wanted) {
        forget.execute((kind, key, sql(value), &id))?;
    }
    for (key, value) in wanted.difference(&held) {
        put_key(conn, row.of, key, value)?;
    }
    Ok(())
}

/// Removes a record and its keys. The largest value of its counter stays.
fn remove(conn: &Connection, of: RecordRef) -> Result<(), StoreError> {
    let (kind, id) = (of.kind.as_str(), sealed::id(of.id));
    if let Some(counter) = of.kind.counter() {
        conn.prepare_cached(
            "INSERT INTO meta (key, value, crc) SELECT ?3, max(value), 0 FROM record_keys WHERE kind = ?1 AND key = ?2 \
             HAVING max(value) IS NOT NULL ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)",
        )?
        .execute((kind, counter, counter_name(of.kind, counter)))?;
    }
    conn.prepare_cached("DELETE FROM record_rows WHERE kind = ?1 AND id = ?2")?.execute((kind, &id))?;
    conn.prepare_cached("DELETE FROM record_keys WHERE kind = ?1 AND id = ?2")?.execute((kind, &id))?;
    Ok(())
}

/// The name under which the largest value of a counter is kept.
fn counter_name(kind: RecordKind, counter: &str) -> String {
    format!("{}_{counter}", kind.as_str())
}

pub(super) fn put_name(conn: &Connection, of: RecordRef, name: &str) -> rusqlite::Result<()> {
    put_key(conn, of, NAME, &KeyValue::Text(name.to_owned()))
}

fn put_key(conn: &Connection, of: RecordRef, key: &str, value: &KeyValue) -> rusqlite::Result<()> {
    let mut put = conn
        .prepare_cached("INSERT OR IGNORE INTO record_keys (kind, key, value, id) VALUES (?1, ?2, ?3, ?4)")?;
    put.execute((of.kind.as_str(), key, sql(value), sealed::id(of.id))).map(drop)
}

/// All keys and names of a record. A value of another type than keys have is damage, and not among them.
pub(super) fn keys(conn: &Connection, of: RecordRef) -> Result<BTreeSet<(String, KeyValue)>, StoreError> {
    let mut list = conn.prepare_cached("SELECT key, value FROM record_keys WHERE kind = ?1 AND id = ?2")?;
    let mut rows = list.query((of.kind.as_str(), sealed::id(of.id)))?;
    let mut keys = BTreeSet::new();
    while let Some(row) = rows.next()? {
        keys.extend(column::<String>(row, 0).zip(value_of(row)));
    }
    Ok(keys)
}

/// The value of a key in the second column; none of a type that keys do not have.
fn value_of(row: &Row<'_>) -> Option<KeyValue> {
    match row.get_ref(1).ok()? {
        ValueRef::Integer(number) => Some(KeyValue::Number(number)),
        ValueRef::Text(_) => column(row, 1).map(KeyValue::Text),
        ValueRef::Blob(bytes) => Some(KeyValue::Bytes(bytes.to_vec())),
        ValueRef::Null | ValueRef::Real(_) => None,
    }
}

/// The key under which a name of a log is kept.
pub(super) fn name_key(name: &str) -> (String, KeyValue) {
    (NAME.to_owned(), KeyValue::Text(name.to_owned()))
}

/// The body in a row of events or records, if the row is as it was written.
pub(super) fn body_of<'a>(row: &'a Row<'_>) -> Result<&'a [u8], String> {
    let body = blob(row, 3).filter(|_| is_whole(row, 4));
    body.ok_or_else(|| NOT_WHOLE.to_owned())
}

/// The record a row belongs to, if that much can be told.
pub(super) fn record_of(row: &Row<'_>) -> Option<RecordRef> {
    let kind = RecordKind::named(&column::<String>(row, 0)?)?;
    Some(RecordRef { kind, id: u128::from_be_bytes(column(row, 1)?) })
}

/// The body of a record's row, or what is wrong with the row. `None` when there is no row.
pub(super) fn row(conn: &Connection, of: RecordRef) -> Result<Result<Option<Vec<u8>>, String>, StoreError> {
    let mut get =
        conn.prepare_cached(&format!("SELECT {ROW_COLUMNS} FROM record_rows WHERE kind = ?1 AND id = ?2"))?;
    let found =
        get.query_row((of.kind.as_str(), sealed::id(of.id)), |row| Ok(body_of(row).map(<[u8]>::to_vec)));
    Ok(match undamaged(found.optional())? {
        Some(Some(read)) => read.map(Some),
        Some(None) => Ok(None),
        None => Err("it cannot be read".to_owned()),
    })
}

/// The body of a record from its log, for a row that is damaged or lost. `None` when there is no log either.
pub(super) fn mended(conn: &Connection, of: RecordRef) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(fold) = fold(conn, of)? else { return Ok(None) };
    let kind = of.kind.as_str();
    match (fold.row()?, fold.findings().left_out.first()) {
        (None, None) => Ok(None),
        (Some(row), None) => {
            tracing::error!(kind, record = %of, "a record's row is damaged or missing and was read from its log");
            Ok(Some(row.body))
        }
        (_, Some((seq, why))) => Err(StoreError::Damaged(format!(
            "{kind} {of} cannot be made from its row or its log: event {seq}: {why}"
        ))),
    }
}

/// The sum of a record's log, if its kind has logs.
fn fold(conn: &Connection, of: RecordRef) -> Result<Option<Box<dyn SummedLog>>, StoreError> {
    let Some(mut fold) = of.kind.fold() else { return Ok(None) };
    let mut log = conn.prepare_cached(&format!(
        "SELECT {EVENT_COLUMNS} FROM record_events WHERE kind = ?1 AND record = ?2 ORDER BY seq"
    ))?;
    let mut rows = log.query((of.kind.as_str(), sealed::id(of.id)))?;
    while let Some(row) = rows.next()? {
        fold.feed(seq_of(row), body_of(row));
    }
    Ok(Some(fold))
}

fn read_all(conn: &Connection, query: &RecordQuery, read: BodyReader<'_>) -> Result<(), StoreError> {
    let (text, values) = search(query);
    let mut list = conn.prepare_cached(&text)?;
    let mut rows = list.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        let step = match body_of(row).and_then(&mut *read) {
            Ok(step) => step,
            Err(_) => match read_mended(conn, record_of(row), read)? {
                Some(step) => step,
                None => continue,
            },
        };
        if step.is_break() {
            break;
        }
    }
    Ok(())
}

/// Reads a record of a damaged row from its log, if it has one. One that cannot be made does not hide the others.
fn read_mended(
    conn: &Connection,
    of: Option<RecordRef>,
    read: BodyReader<'_>,
) -> Result<Option<ControlFlow<()>>, StoreError> {
    let Some(of) = of else {
        tracing::error!("the row of a record is damaged, and whose it is cannot be told");
        return Ok(None);
    };
    let read = match mended(conn, of) {
        Ok(body) => body.map(|body| read(&body)).transpose(),
        Err(StoreError::Damaged(what)) => Err(what),
        Err(error) => return Err(error),
    };
    Ok(read.unwrap_or_else(|what| {
        tracing::error!(what);
        None
    }))
}
