//! Entries of memory in the file, with an index of their words that is written in the same transaction.

use lanyard_core::memory::{MemoryEntry, Retention, Where};
use lanyard_core::{MemoryId, SessionId, Timestamp};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use crate::error::StoreError;
use crate::journal::{Durability, Put};
use crate::memories::{Memories, MemoryFilter, MemoryUpkeep, Writing, words};
use crate::sqlite::SqliteJournal;
use crate::sqlite::memory_rows::{COLUMNS, Pos, at_place, by_id, forget, put, read};
use crate::sqlite::rows::signed;
use crate::sqlite::sealed;
use crate::sqlite::vectors;

/// Hits that are looked at before the database is asked to sort out itself which of them match.
const PROBE: usize = 64;

impl Memories for SqliteJournal {
    fn memory(&self, id: MemoryId) -> Result<Option<MemoryEntry>, StoreError> {
        self.pool.read(|conn| Ok(by_id(conn, id)?.map(|(_, entry)| entry)))
    }

    fn memory_at(&self, workspace: &str, key: &str) -> Result<Option<MemoryEntry>, StoreError> {
        self.pool.read(|conn| Ok(at_place(conn, workspace, key)?.map(|(_, entry)| entry)))
    }

    fn memories(
        &self,
        filter: &MemoryFilter,
        before: Option<MemoryId>,
        limit: usize,
    ) -> Result<Vec<MemoryEntry>, StoreError> {
        self.pool.read(|conn| {
            let mut when = Narrowed::by(filter);
            if let Some(before) = before {
                when.than("m.id", "<", sealed::id(before.as_u128()));
            }
            let sql = format!("SELECT {COLUMNS} FROM memories m WHERE {} ORDER BY m.id DESC", when.text());
            collect(conn, &sql, when.values, filter, limit)
        })
    }

    fn search_memories(
        &self,
        filter: &MemoryFilter,
        query: &str,
        limit: usize,
    ) -> Result<Vec<MemoryEntry>, StoreError> {
        let words: Vec<String> =
            words(query).iter().map(|word| format!("\"{}\"", word.replace('"', "\"\""))).collect();
        if words.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        self.pool.read(|conn| {
            let found = matching(conn, filter, &words.join(" "), limit)?;
            if !found.is_empty() || words.len() == 1 {
                return Ok(found);
            }
            matching(conn, filter, &words.join(" OR "), limit)
        })
    }

    fn put_memories(&self, writings: &[Writing]) -> Result<Vec<Put>, StoreError> {
        let mut writer = self.writer();
        let puts = writer.commit(
            Durability::Synced,
            |point| self.pass(point),
            |conn, _| writings.iter().map(|writing| put(conn, writing)).collect(),
        )?;
        self.tend_wal(&mut writer);
        Ok(puts)
    }

    fn forget_memories(&self, ids: &[MemoryId]) -> Result<usize, StoreError> {
        let mut writer = self.writer();
        // What was forgotten is written over, not only unlinked.
        writer.usable()?.pragma_update(None, "secure_delete", true)?;
        let gone = writer.commit(
            Durability::Synced,
            |point| self.pass(point),
            |conn, _| {
                let mut gone = 0;
                for id in ids {
                    gone += usize::from(forget(conn, *id)?);
                }
                Ok(gone)
            },
        );
        if let Ok(conn) = writer.usable() {
            conn.pragma_update(None, "secure_delete", false)?;
        }
        self.tend_wal(&mut writer);
        gone
    }

    fn count_memories(&self, filter: &MemoryFilter) -> Result<u64, StoreError> {
        self.pool.read(|conn| {
            let when = Narrowed::by(filter);
            if filter.tags.is_empty() {
                let sql = format!("SELECT count(*) FROM memories m WHERE {}", when.text());
                let count: i64 =
                    conn.prepare_cached(&sql)?.query_row(params_from_iter(when.values), |row| row.get(0))?;
                return Ok(u64::try_from(count).unwrap_or(0));
            }
            let sql = format!("SELECT {COLUMNS} FROM memories m WHERE {}", when.text());
            Ok(collect(conn, &sql, when.values, filter, usize::MAX)?.len() as u64)
        })
    }
}

impl MemoryUpkeep for SqliteJournal {
    fn expired_memories(
        &self,
        retention: Retention,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<MemoryId>, StoreError> {
        self.pool.read(|conn| {
            let mut find = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM memories m WHERE m.keep = ?1 AND m.at < ?2 ORDER BY m.at"
            ))?;
            let mut rows = find.query((retention.as_str(), before.as_millis()))?;
            let mut due = Vec::new();
            while due.len() < limit
                && let Some(row) = rows.next()?
            {
                // The column may be from a time when `retain` did not outrank other tags: the tags decide. A row that
                // cannot be read may have been tagged `retain`, and stays.
                if let Ok(entry) = read(row)
                    && entry.retention() == retention
                {
                    due.push(entry.id);
                }
            }
            Ok(due)
        })
    }

    fn memory_sessions(&self, after: Option<SessionId>, limit: usize) -> Result<Vec<SessionId>, StoreError> {
        self.pool.read(|conn| {
            let mut find = conn.prepare_cached(
                "SELECT DISTINCT session FROM memories WHERE store = ?1 AND session > ?2 ORDER BY session LIMIT ?3",
            )?;
            let after = sealed::id(after.map_or(0, SessionId::as_u128));
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let found = find.query_map((Where::Session.as_str(), after, limit), |row| row.get(0))?;
            Ok(found
                .map(|id| id.map(u128::from_be_bytes).map(SessionId::from_u128))
                .collect::<Result<_, _>>()?)
        })
    }

    fn without_vector(&self, model: &str, limit: usize) -> Result<Vec<MemoryEntry>, StoreError> {
        self.pool.read(|conn| {
            let sql = format!(
                "SELECT {COLUMNS} FROM memories m LEFT JOIN memory_vectors v ON v.pos = m.pos \
                 WHERE v.pos IS NULL OR v.model <> ?1 ORDER BY m.pos"
            );
            collect(conn, &sql, vec![Value::Text(model.to_owned())], &MemoryFilter::default(), limit)
        })
    }

    fn put_vectors(&self, model: &str, made: &[(MemoryId, u64, Vec<f32>)]) -> Result<(), StoreError> {
        let mut writer = self.writer();
        writer.commit(
            Durability::Synced,
            |_| {},
            |conn, _| {
                for (id, version, vector) in made {
                    if let Some((pos, entry)) = by_id(conn, *id)?
                        && entry.version == *version
                    {
                        vectors::put(conn, pos, model, vector)?;
                    }
                }
                Ok(())
            },
        )?;
        self.tend_wal(&mut writer);
        Ok(())
    }

    fn nearest_memories(
        &self,
        filter: &MemoryFilter,
        (model, vector): (&str, &[f32]),
        among: usize,
        limit: usize,
    ) -> Result<Vec<MemoryEntry>, StoreError> {
        self.pool.read(|conn| {
            let mut when = Narrowed::by(filter);
            when.than("v.model", "=", Value::Text(model.to_owned()));
            let near = vectors::nearest(conn, &when.text(), when.values, vector, among)?;
            let mut found = Vec::new();
            for pos in near {
                if found.len() >= limit {
                    break;
                }
                found.extend(by_pos(conn, pos)?.filter(|entry| filter.matches(entry)));
            }
            Ok(found)
        })
    }
}

/// The best hits that match the filter. Usually most do, so they are looked at one by one; only where few of them match
/// does the database sort all of them out first.
fn matching(
    conn: &Connection,
    filter: &MemoryFilter,
    query: &str,
    limit: usize,
) -> Result<Vec<MemoryEntry>, StoreError> {
    let probe = PROBE.max(limit.saturating_mul(2));
    let mut find = conn.prepare_cached(
        "SELECT rowid FROM memory_words WHERE memory_words MATCH ?1 ORDER BY rank LIMIT ?2",
    )?;
    let hits = find.query_map((query, i64::try_from(probe).unwrap_or(i64::MAX)), |row| row.get(0))?;
    let hits: Vec<Pos> = hits.collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    for pos in &hits {
        if found.len() >= limit {
            return Ok(found);
        }
        found.extend(by_pos(conn, *pos)?.filter(|entry| filter.matches(entry)));
    }
    if hits.len() < probe || found.len() >= limit {
        return Ok(found);
    }
    let mut when = Narrowed::by(filter);
    when.than("memory_words", "MATCH", Value::Text(query.to_owned()));
    let sql = format!(
        "SELECT {COLUMNS} FROM memory_words JOIN memories m ON m.pos = memory_words.rowid WHERE {} ORDER BY rank",
        when.text()
    );
    collect(conn, &sql, when.values, filter, limit)
}

/// The entry at a position; `None` when it is missing or damaged.
fn by_pos(conn: &Connection, pos: Pos) -> Result<Option<MemoryEntry>, StoreError> {
    let mut get = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM memories m WHERE m.pos = ?1"))?;
    let read = get.query_row([pos], |row| Ok(read(row))).optional()?;
    Ok(read.and_then(|read| read.map_err(|why| report(&why)).ok()))
}

fn report(why: &str) {
    tracing::error!(why, "an entry of memory is damaged");
}

/// The matching rows of a query, up to a limit that the database does not know: a skipped row must not make the page
/// look like the last.
fn collect(
    conn: &Connection,
    sql: &str,
    values: Vec<Value>,
    filter: &MemoryFilter,
    limit: usize,
) -> Result<Vec<MemoryEntry>, StoreError> {
    let mut list = conn.prepare_cached(sql)?;
    let mut rows = list.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        match read(row) {
            Ok(entry) if filter.matches(&entry) => found.push(entry),
            Ok(_) => {}
            Err(why) => report(&why),
        }
    }
    Ok(found)
}

/// The part of a filter that SQL can express. It may let through more than matches, never less.
struct Narrowed {
    texts: Vec<String>,
    values: Vec<Value>,
}

impl Narrowed {
    fn by(filter: &MemoryFilter) -> Self {
        let mut when = Self { texts: vec!["1".to_owned()], values: Vec::new() };
        let text = |text: &str| Value::Text(text.to_owned());
        let conditions = [
            ("m.store", filter.store.map(|store| text(store.as_str()))),
            ("m.scope", filter.scope.map(|scope| text(scope.as_str()))),
            ("m.workspace", filter.workspace.as_deref().map(text)),
            ("m.owner", filter.owner.as_deref().map(text)),
            ("m.plan", filter.plan.as_deref().map(text)),
            ("m.session", filter.session.map(|session| sealed::id(session.as_u128()))),
        ];
        for (column, value) in conditions {
            if let Some(value) = value {
                when.than(column, "=", value);
            }
        }
        if let Some(viewer) = &filter.seen_by {
            let mut ways = Vec::new();
            if viewer.long_term {
                let workspace = when.value(text(&viewer.workspace));
                let owner = when.value(text(&viewer.owner));
                ways.push(format!(
                    "(m.store = 'long_term' AND m.workspace = {workspace} AND m.owner = {owner})"
                ));
            }
            let sessions: Vec<String> =
                viewer.sessions.iter().map(|session| when.value(sealed::id(session.as_u128()))).collect();
            ways.push(format!("(m.store = 'session' AND m.session IN ({}))", sessions.join(", ")));
            when.texts.push(format!("({})", ways.join(" OR ")));
        }
        when
    }

    fn value(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("?{}", self.values.len())
    }

    fn than(&mut self, column: &str, how: &str, value: Value) {
        let value = self.value(value);
        self.texts.push(format!("{column} {how} {value}"));
    }

    fn text(&self) -> String {
        self.texts.join(" AND ")
    }
}

/// A timestamp or a count as the file has it.
pub(super) fn number(value: u64) -> Value {
    Value::Integer(signed(value))
}
