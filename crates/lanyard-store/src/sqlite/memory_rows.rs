//! One row per entry, sealed with a checksum; its words and its vector are in tables beside it. Encoding and decoding
//! only.

use lanyard_core::memory::{MemoryEntry, MemoryScope, Source, Tag, Tags, Where};
use lanyard_core::{Actor, MemoryId, SessionId, Timestamp, TurnId};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::journal::Put;
use crate::memories::Writing;
use crate::sqlite::memories::number;
use crate::sqlite::rows::{column, unsigned};
use crate::sqlite::sealed;

pub(super) type Pos = i64;

/// `pos` comes after the checksum and is no part of it: it is the row's number in the file.
pub(super) const COLUMNS: &str = "m.id, m.store, m.scope, m.workspace, m.owner, m.key, m.plan, m.session, \
     m.keep, m.at, m.version, m.name, m.text, m.tags, m.rest, m.crc, m.pos";
const NAMES: &str = "id, store, scope, workspace, owner, key, plan, session, keep, at, version, name, text, \
     tags, rest, crc, pos";
/// Columns before the checksum.
const SEALED: usize = 15;

/// Fields that no query uses.
#[derive(Serialize, Deserialize)]
struct Rest {
    by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnId>,
    source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<String>,
}

fn row_of(entry: &MemoryEntry, pos: Option<Pos>) -> Result<Vec<Value>, StoreError> {
    let text = |text: &str| Value::Text(text.to_owned());
    let (by, request) = (entry.by.clone(), entry.request.clone());
    let rest = Rest { by, turn: entry.turn, source: entry.source, request };
    let mut row = sealed::seal(vec![
        sealed::id(entry.id.as_u128()),
        text(entry.store.as_str()),
        text(entry.scope.as_str()),
        text(&entry.workspace),
        text(&entry.owner),
        text(&entry.key()),
        sealed::optional(entry.plan.as_deref().map(text)),
        sealed::optional(entry.session.map(|session| sealed::id(session.as_u128()))),
        text(entry.retention().as_str()),
        Value::Integer(entry.at.as_millis()),
        number(entry.version),
        sealed::optional(entry.name.as_deref().map(text)),
        text(&entry.text),
        text(&entry.tags.iter().map(Tag::as_str).collect::<Vec<_>>().join(" ")),
        sealed::encode("an entry of memory", &rest)?,
    ]);
    row.push(sealed::optional(pos.map(Value::Integer)));
    Ok(row)
}

/// Reads [`COLUMNS`], or says what is wrong with them.
pub(super) fn read(row: &Row<'_>) -> Result<MemoryEntry, String> {
    if !sealed::is_whole(row, SEALED) {
        return Err("it is not as it was written".to_owned());
    }
    let text = |at: usize| column::<String>(row, at).ok_or_else(|| "it holds something else".to_owned());
    let word = |at: usize| text(at).map(serde_json::Value::String);
    let bad = |error: serde_json::Error| error.to_string();
    let store: Where = serde_json::from_value(word(1)?).map_err(bad)?;
    let scope: MemoryScope = serde_json::from_value(word(2)?).map_err(bad)?;
    let tags: Result<Tags, _> = text(13)?.split_whitespace().map(str::parse).collect();
    let rest: Rest = sealed::decode(row, 14)?;
    let bits = |at: usize| column::<[u8; 16]>(row, at).map(u128::from_be_bytes);
    Ok(MemoryEntry {
        id: bits(0).map(MemoryId::from_u128).ok_or_else(|| "it has no id".to_owned())?,
        store,
        scope,
        workspace: text(3)?,
        owner: text(4)?,
        plan: column(row, 6),
        name: column(row, 11),
        text: text(12)?,
        tags: tags.map_err(|refusal| refusal.to_string())?,
        by: rest.by,
        session: bits(7).map(SessionId::from_u128),
        turn: rest.turn,
        source: rest.source,
        request: rest.request,
        at: Timestamp::from_millis(column(row, 9).unwrap_or(0)),
        version: column(row, 10).map_or(0, unsigned),
    })
}

/// The position of a row, and its entry or its fault.
type Held = (Pos, Result<MemoryEntry, String>);

fn one(conn: &Connection, condition: &str, values: &[Value]) -> Result<Option<Held>, StoreError> {
    let mut get = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM memories m WHERE {condition}"))?;
    let found = get.query_row(params_from_iter(values), |row| Ok((row.get(SEALED + 1)?, read(row))));
    Ok(found.optional()?)
}

fn whole(found: Option<Held>) -> Result<Option<(Pos, MemoryEntry)>, StoreError> {
    let damaged = |why| StoreError::Damaged(format!("an entry of memory is damaged: {why}"));
    found.map(|(pos, read)| read.map(|entry| (pos, entry)).map_err(damaged)).transpose()
}

pub(super) fn by_id(conn: &Connection, id: MemoryId) -> Result<Option<(Pos, MemoryEntry)>, StoreError> {
    whole(one(conn, "m.id = ?1", &[sealed::id(id.as_u128())])?)
}

fn place(workspace: &str, key: &str) -> [Value; 2] {
    [Value::Text(workspace.to_owned()), Value::Text(key.to_owned())]
}

pub(super) fn at_place(
    conn: &Connection,
    workspace: &str,
    key: &str,
) -> Result<Option<(Pos, MemoryEntry)>, StoreError> {
    whole(one(conn, "m.workspace = ?1 AND m.key = ?2", &place(workspace, key))?)
}

/// Writes an entry in the place of what it was made from, if that is still there.
pub(super) fn put(conn: &Connection, Writing { entry, from }: &Writing) -> Result<Put, StoreError> {
    let held = one(conn, "m.workspace = ?1 AND m.key = ?2", &place(&entry.workspace, &entry.key()))?;
    // A damaged row is no obstacle: the next write takes its place.
    let version = match &held {
        Some((_, Ok(held))) => held.version,
        Some((_, Err(_))) => *from,
        None => 0,
    };
    if version != *from {
        return Ok(Put::Moved(version));
    }
    let other = one(conn, "m.id = ?1", &[sealed::id(entry.id.as_u128())])?;
    if let Some((at, other)) = other
        && held.as_ref().is_none_or(|(pos, _)| *pos != at)
    {
        return Ok(Put::Moved(other.map_or(0, |other| other.version)));
    }
    let pos = held.as_ref().map(|(pos, _)| *pos);
    if let Some((pos, held)) = held {
        remove(conn, pos, held.as_ref().ok())?;
    }
    let mut insert = conn.prepare_cached(&format!(
        "INSERT INTO memories ({NAMES}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)"
    ))?;
    insert.execute(params_from_iter(row_of(entry, pos)?))?;
    let pos = conn.last_insert_rowid();
    let mut index = conn.prepare_cached(
        "INSERT INTO memory_words (rowid, name, text, tags) SELECT pos, name, text, tags FROM memories WHERE pos = ?1",
    )?;
    index.execute([pos])?;
    Ok(Put::Kept(entry.version))
}

/// Answers whether there was one.
pub(super) fn forget(conn: &Connection, id: MemoryId) -> Result<bool, StoreError> {
    let Some((pos, held)) = one(conn, "m.id = ?1", &[sealed::id(id.as_u128())])? else { return Ok(false) };
    remove(conn, pos, held.as_ref().ok())?;
    Ok(true)
}

/// Takes the row, its words and its vector away.
fn remove(conn: &Connection, pos: Pos, held: Option<&MemoryEntry>) -> Result<(), StoreError> {
    if held.is_some() {
        // The index is told what it was given; it keeps no copy of its own.
        let mut unindex = conn.prepare_cached(
            "INSERT INTO memory_words (memory_words, rowid, name, text, tags) \
             SELECT 'delete', pos, name, text, tags FROM memories WHERE pos = ?1",
        )?;
        unindex.execute([pos])?;
    }
    conn.prepare_cached("DELETE FROM memory_vectors WHERE pos = ?1")?.execute([pos])?;
    conn.prepare_cached("DELETE FROM memories WHERE pos = ?1")?.execute([pos])?;
    if held.is_none() {
        // What a damaged row once said to the index is not known any more.
        conn.execute("INSERT INTO memory_words (memory_words) VALUES ('rebuild')", [])?;
    }
    Ok(())
}
