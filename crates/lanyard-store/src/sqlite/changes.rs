//! Changes of records in the file: a table in order of position, written with the change itself.

use lanyard_core::{FollowedKind, PlanId};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::changes::{
    ChangeFilter, ChangePage, ChangeTeller, ChangedBody, FollowedRef, RecordChange, RecordChanges,
};
use crate::error::StoreError;
use crate::journal::PaperKey;
use crate::records::{RecordBatch, RecordRef};
use crate::sqlite::SqliteJournal;
use crate::sqlite::logs::Complaint;
use crate::sqlite::read::undamaged;
use crate::sqlite::records::{EVENT_COLUMNS, body_of, row as record_row};
use crate::sqlite::rows::{column, is_damage, signed, unsigned};
use crate::sqlite::{papers, sealed};

/// `AUTOINCREMENT`: no position is given twice, also when the last change was replaced or removed.
pub(super) const TABLE: &str = "
    CREATE TABLE record_changes (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        id BLOB NOT NULL,
        seq INTEGER NOT NULL -- number of the event; 0 for a record without a log
    );
    CREATE INDEX record_changes_of ON record_changes (kind, id);
";

/// Positions that one page looks at, where no record is named: a filter that matches little must not read the whole table.
const SCAN_MAX: u64 = 10_000;
/// Bytes after which a page is full.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// The kind of papers that plans are.
const PLAN: &str = FollowedKind::Plan.as_str();

impl RecordChanges for SqliteJournal {
    fn record_changes(
        &self,
        filter: &ChangeFilter,
        after: u64,
        limit: usize,
    ) -> Result<ChangePage, StoreError> {
        self.pool.read(|conn| page(conn, filter, after, limit.max(1)))
    }

    fn last_change(&self) -> Result<u64, StoreError> {
        self.pool.read(last)
    }

    fn tell_changes(&self, tell: ChangeTeller) {
        let _ = self.told.set(tell);
    }
}

impl SqliteJournal {
    /// Tells of changes that were committed.
    pub(super) fn changed(&self, last: Option<u64>) {
        if let (Some(last), Some(tell)) = (last, self.told.get()) {
            tell(last);
        }
    }
}

/// Notes the changes of a batch. Answers the last position; none when nothing that can be followed changed.
pub(super) fn note_batch(conn: &Connection, batch: &RecordBatch) -> Result<Option<u64>, StoreError> {
    let mut last = None;
    for entry in &batch.entries {
        if let Some(of) = FollowedRef::of(entry.of) {
            last = Some(put(conn, of, entry.seq)?);
        }
    }
    let rows = batch.rows.iter().map(|row| row.of).chain(batch.removed.iter().copied());
    for of in rows.filter_map(FollowedRef::of).filter(|of| !of.kind.has_log()) {
        last = Some(replace(conn, of)?);
    }
    Ok(last)
}

/// Notes the change of a paper, if it is a plan.
pub(super) fn note_paper(conn: &Connection, place: &PaperKey) -> Result<Option<u64>, StoreError> {
    plan_at(&place.kind, &place.key).map(|of| replace(conn, of)).transpose()
}

fn plan_at(kind: &str, key: &str) -> Option<FollowedRef> {
    let id = key.parse::<PlanId>().ok().filter(|_| kind == PLAN)?;
    Some(FollowedRef { kind: FollowedKind::Plan, id: id.as_u128() })
}

/// Of a record without a log only the last change is kept.
fn replace(conn: &Connection, of: FollowedRef) -> Result<u64, StoreError> {
    let mut forget = conn.prepare_cached("DELETE FROM record_changes WHERE kind = ?1 AND id = ?2")?;
    forget.execute((of.kind.as_str(), sealed::id(of.id)))?;
    put(conn, of, 0)
}

fn put(conn: &Connection, of: FollowedRef, seq: u64) -> Result<u64, StoreError> {
    let mut put = conn.prepare_cached("INSERT INTO record_changes (kind, id, seq) VALUES (?1, ?2, ?3)")?;
    let position = put.insert((of.kind.as_str(), sealed::id(of.id), signed(seq)))?;
    Ok(unsigned(position))
}

fn last(conn: &Connection) -> Result<u64, StoreError> {
    let mut last = conn.prepare_cached("SELECT max(position) FROM record_changes")?;
    Ok(last.query_row([], |row| row.get::<_, Option<i64>>(0))?.map_or(0, unsigned))
}

fn page(
    conn: &Connection,
    filter: &ChangeFilter,
    after: u64,
    limit: usize,
) -> Result<ChangePage, StoreError> {
    let last = last(conn)?;
    let end = if filter.records.is_empty() { last.min(after.saturating_add(SCAN_MAX)) } else { last };
    let (text, values) = search(filter, after, end, limit);
    let mut find = conn.prepare_cached(&text)?;
    let mut rows = find.query(params_from_iter(values))?;
    let (mut changes, mut bytes) = (Vec::new(), 0);
    let mut full = false;
    while let Some(row) = rows.next()? {
        let Some(change) = read(conn, row)? else { continue };
        if let ChangedBody::Whole(body) = &change.body {
            bytes += body.len();
        }
        changes.push(change);
        full = changes.len() >= limit || bytes >= PAGE_BYTES_MAX;
        if full {
            break;
        }
    }
    let through = match changes.last() {
        Some(change) if full => change.position,
        Some(_) | None => end.max(after),
    };
    Ok(ChangePage { changes, through, more: through < last })
}

/// The positions between `after` and `end` whose change matches.
fn search(filter: &ChangeFilter, after: u64, end: u64, limit: usize) -> (String, Vec<Value>) {
    let numbers = [signed(after), signed(end), i64::try_from(limit).unwrap_or(i64::MAX)];
    let mut values = numbers.map(Value::Integer).to_vec();
    let mut bind = |value: Value| {
        values.push(value);
        format!("?{}", values.len())
    };
    let mut when = vec!["position > ?1 AND position <= ?2".to_owned()];
    if !filter.kinds.is_empty() {
        let kinds = filter.kinds.iter().map(|kind| bind(Value::Text(kind.as_str().to_owned())));
        let kinds: Vec<String> = kinds.collect();
        // `+`: not by the index of records, which would read and sort all changes of these kinds.
        when.push(format!("+kind IN ({})", kinds.join(", ")));
    }
    if !filter.records.is_empty() {
        let records = filter.records.iter().map(|of| {
            let kind = bind(Value::Text(of.kind.as_str().to_owned()));
            format!("({kind}, {})", bind(sealed::id(of.id)))
        });
        let records: Vec<String> = records.collect();
        when.push(format!("(kind, id) IN (VALUES {})", records.join(", ")));
    }
    if let Some(plan) = filter.plan {
        let plan = bind(sealed::id(plan.as_u128()));
        when.push(format!(
            "((kind = '{PLAN}' AND id = {plan}) OR (kind = 'task' AND EXISTS (SELECT 1 FROM record_keys k \
             WHERE k.kind = 'task' AND k.key = 'plan' AND k.value = {plan} AND k.id = record_changes.id)))"
        ));
    }
    let when = when.join(" AND ");
    let columns = "position, kind, id, seq";
    (format!("SELECT {columns} FROM record_changes WHERE {when} ORDER BY position LIMIT ?3"), values)
}

/// The change in a row. A row that names no record is damage that `check` reports.
fn read(conn: &Connection, row: &Row<'_>) -> Result<Option<RecordChange>, StoreError> {
    let position = unsigned(row.get(0)?);
    let kind = column::<String>(row, 1).and_then(|kind| FollowedKind::named(&kind));
    let (Some(kind), Some(id)) = (kind, column(row, 2).map(u128::from_be_bytes)) else {
        tracing::error!(position, "a change of a record is damaged");
        return Ok(None);
    };
    let (of, seq) = (FollowedRef { kind, id }, column(row, 3).map_or(0, unsigned));
    Ok(Some(RecordChange { position, of, seq, body: body(conn, of, seq)? }))
}

fn body(conn: &Connection, of: FollowedRef, seq: u64) -> Result<ChangedBody, StoreError> {
    let record = of.record_kind().map(|kind| RecordRef { kind, id: of.id });
    let found = match record {
        Some(record) if of.kind.has_log() => {
            let mut get = conn.prepare_cached(&format!(
                "SELECT {EVENT_COLUMNS} FROM record_events WHERE kind = ?1 AND record = ?2 AND seq = ?3"
            ))?;
            let place = (record.kind.as_str(), sealed::id(record.id), signed(seq));
            let event = get.query_row(place, |row| Ok(body_of(row).map(<[u8]>::to_vec)));
            // An event is never removed.
            let event = undamaged(event.optional())?.flatten();
            event.unwrap_or_else(|| Err("it is missing or cannot be read".to_owned())).map(Some)
        }
        Some(record) => record_row(conn, record)?,
        None => plan(conn, of.id)?,
    };
    Ok(match found {
        Ok(Some(body)) => ChangedBody::Whole(body),
        Ok(None) => ChangedBody::Removed,
        Err(why) => {
            tracing::error!(record = %of, seq, why, "a change cannot be read");
            ChangedBody::Damaged
        }
    })
}

fn plan(conn: &Connection, id: u128) -> Result<Result<Option<Vec<u8>>, String>, StoreError> {
    let mut get =
        conn.prepare_cached(&format!("SELECT {} FROM papers WHERE kind = ?1 AND key = ?2", papers::COLUMNS))?;
    let found = get.query_row((PLAN, PlanId::from_u128(id).to_string()), papers::read).optional()?;
    Ok(match found {
        None => Ok(None),
        Some(Some(paper)) => Ok(Some(paper.body.into_bytes())),
        Some(None) => Err("it is not as it was written".to_owned()),
    })
}

/// What has no change although it is there, in the order it came. A condition on `record_events` or `record_rows`.
const MISSING_EVENTS: &str = "FROM record_events e WHERE e.kind IN ('task', 'flow') AND NOT EXISTS (SELECT 1 FROM \
     record_changes c WHERE c.kind = e.kind AND c.id = e.record AND c.seq = e.seq)";
const MISSING_ROWS: &str = "FROM record_rows r WHERE r.kind IN ('mail', 'notification') AND NOT EXISTS (SELECT 1 FROM \
     record_changes c WHERE c.kind = r.kind AND c.id = r.id)";

/// Gives a position to everything that has none: in a journal of an older schema, or after damage.
pub(super) fn complete(conn: &Connection) -> Result<(), StoreError> {
    let put = "INSERT INTO record_changes (kind, id, seq)";
    conn.execute(&format!("{put} SELECT e.kind, e.record, e.seq {MISSING_EVENTS} ORDER BY e.rowid"), [])?;
    conn.execute(&format!("{put} SELECT r.kind, r.id, 0 {MISSING_ROWS} ORDER BY r.id"), [])?;
    missing_plans(conn)?.into_iter().try_for_each(|of| replace(conn, of).map(drop))
}

fn missing_plans(conn: &Connection) -> Result<Vec<FollowedRef>, StoreError> {
    let mut list = conn.prepare("SELECT key FROM papers WHERE kind = ?1 ORDER BY key")?;
    let mut known = conn.prepare("SELECT 1 FROM record_changes WHERE kind = ?1 AND id = ?2")?;
    let mut rows = list.query([PLAN])?;
    let mut missing = Vec::new();
    while let Some(row) = rows.next()? {
        let Some(of) = column::<String>(row, 0).and_then(|key| plan_at(PLAN, &key)) else { continue };
        if !known.exists((PLAN, sealed::id(of.id)))? {
            missing.push(of);
        }
    }
    Ok(missing)
}

/// Whether everything that can be followed has its position.
pub(super) fn check(conn: &Connection) -> Result<Vec<Complaint>, StoreError> {
    let count = |of: &str| conn.query_row(&format!("SELECT count(*) {of}"), [], |row| row.get::<_, i64>(0));
    let missing = count(MISSING_EVENTS)
        .and_then(|events| Ok(unsigned(events + count(MISSING_ROWS)?)))
        .map_err(StoreError::from)
        .and_then(|missing| Ok(missing + missing_plans(conn)?.len() as u64));
    Ok(match missing {
        Ok(0) => Vec::new(),
        Ok(missing) => vec![((0, 0), format!("{missing} changes of records have no position"))],
        Err(StoreError::Sqlite(error)) if is_damage(&error) => {
            vec![((0, 0), "the changes of records cannot all be read".to_owned())]
        }
        Err(error) => return Err(error),
    })
}
