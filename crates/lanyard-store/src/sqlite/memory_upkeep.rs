//! Looking after memory: checking rows and the index of their words, making the index again, and taking over the pieces
//! of context that were papers before there was memory.

use std::collections::HashMap;

use lanyard_core::memory::{MemoryEntry, MemoryScope, Source, Tag, Tags};
use lanyard_core::text::content_hash;
use lanyard_core::{Actor, MemoryId, SessionId, Timestamp};
use rusqlite::Connection;
use serde::Deserialize;

use crate::error::StoreError;
use crate::memories::Writing;
use crate::sqlite::boot::each_row;
use crate::sqlite::memory_rows::{COLUMNS, put, read};
use crate::sqlite::papers;
use crate::sqlite::read::undamaged;
use crate::sqlite::rows::{Sid, read_record};
use crate::sqlite::vectors;

/// Of whom nothing is known any more.
const NOBODY: &str = "local";

/// Checks the entries of memory and returns their faults.
pub(super) fn check(conn: &Connection) -> Result<Vec<String>, StoreError> {
    let mut complaints = Vec::new();
    if !each_row(conn, &format!("SELECT {COLUMNS} FROM memories m"), |row| read(row).is_ok())? {
        complaints.push("an entry of memory is damaged".to_owned());
    }
    if !each_row(conn, "SELECT pos, model, vector, crc FROM memory_vectors", |row| {
        vectors::read(row).is_some()
    })? {
        complaints.push("a vector of an entry of memory is damaged".to_owned());
    }
    let count = |sql: &str| undamaged(conn.query_row(sql, [], |row| row.get::<_, i64>(0)));
    let strays = "SELECT (SELECT count(*) FROM memory_words_docsize d LEFT JOIN memories m ON m.pos = d.id \
                  WHERE m.pos IS NULL) + (SELECT count(*) FROM memories m LEFT JOIN memory_words_docsize d \
                  ON m.pos = d.id WHERE d.id IS NULL)";
    if count(strays)? != Some(0) {
        complaints.push("the index of memory's words is not what its entries say".to_owned());
    }
    let lone =
        "SELECT count(*) FROM memory_vectors v LEFT JOIN memories m ON m.pos = v.pos WHERE m.pos IS NULL";
    if count(lone)? != Some(0) {
        complaints.push("there are vectors of entries that are not there".to_owned());
    }
    Ok(complaints)
}

/// Fills the index, which is empty, and drops vectors that are of no use.
pub(super) fn fill(conn: &Connection) -> Result<(), StoreError> {
    conn.execute("INSERT INTO memory_words (memory_words) VALUES ('rebuild')", [])?;
    let mut useless = Vec::new();
    let mut all = conn.prepare("SELECT pos, model, vector, crc FROM memory_vectors")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        if vectors::read(row).is_none() {
            useless.push(row.get::<_, i64>(0)?);
        }
    }
    drop(rows);
    for pos in useless {
        conn.execute("DELETE FROM memory_vectors WHERE pos = ?1", [pos])?;
    }
    conn.execute("DELETE FROM memory_vectors WHERE pos NOT IN (SELECT pos FROM memories)", [])?;
    Ok(())
}

/// A piece of context as it was kept as a paper.
#[derive(Deserialize)]
struct Piece {
    name: String,
    scope: MemoryScope,
    plan: Option<String>,
    owner: Option<SessionId>,
    text: String,
    #[serde(default)]
    tags: Vec<String>,
    by: Actor,
    session: Option<SessionId>,
    at: Timestamp,
}

/// Pieces of context move over with all that is known of them. One that cannot be read stays where it is, and `check`
/// goes on reporting it.
pub(super) fn take_over_papers(conn: &Connection) -> Result<(), StoreError> {
    let sql = format!("SELECT {} FROM papers WHERE kind = 'context'", papers::COLUMNS);
    let mut list = conn.prepare(&sql)?;
    let mut rows = list.query([])?;
    let mut moved = Vec::new();
    let mut owners = None;
    while let Some(row) = rows.next()? {
        let Ok(Some(paper)) = papers::read(row) else { continue };
        let Ok(piece) = serde_json::from_str::<Piece>(&paper.body) else { continue };
        let owners = match &owners {
            Some(owners) => owners,
            None => owners.insert(owners_of(conn)?),
        };
        let writer = piece.owner.or(piece.session);
        let owner = writer.and_then(|session| owners.get(&session)).map_or(NOBODY, String::as_str);
        let entry = entry_of(piece, paper.place.workspace.clone(), owner, &paper.place.key);
        moved.push((paper.place, entry));
    }
    drop(rows);
    for (place, entry) in moved {
        put(conn, &Writing { entry, from: 0 })?;
        conn.execute(
            "DELETE FROM papers WHERE kind = ?1 AND workspace = ?2 AND key = ?3",
            (&place.kind, &place.workspace, &place.key),
        )?;
    }
    Ok(())
}

fn entry_of(piece: Piece, workspace: String, owner: &str, key: &str) -> MemoryEntry {
    let bits = content_hash(format!("{workspace}\0{key}").as_bytes());
    let tags: Tags = piece.tags.iter().filter_map(|tag| Tag::salvage(tag)).collect();
    MemoryEntry {
        id: MemoryId::mint(piece.at, u128::from_str_radix(&bits, 16).unwrap_or(0)),
        store: piece.scope.store(),
        scope: piece.scope,
        workspace,
        owner: owner.to_owned(),
        plan: piece.plan,
        name: Some(piece.name),
        text: piece.text,
        tags,
        by: piece.by,
        session: piece.owner.or(piece.session),
        turn: None,
        source: Source::Tool,
        request: None,
        at: piece.at,
        version: 1,
    }
}

/// The owner of each session's family: the owner of its root.
fn owners_of(conn: &Connection) -> Result<HashMap<SessionId, String>, StoreError> {
    let mut records = conn.prepare("SELECT as_of, crc, body, sid FROM records")?;
    let mut rows = records.query([])?;
    let mut known: HashMap<SessionId, (Option<SessionId>, String)> = HashMap::new();
    while let Some(row) = rows.next()? {
        let sid: Sid = row.get(3)?;
        if let Ok(session) = read_record(row, sid) {
            known.insert(session.id, (session.parent, session.hands.owner));
        }
    }
    let root = |session: &SessionId| {
        let mut at = *session;
        // No family is deeper than there are sessions.
        for _ in 0..known.len() {
            match known.get(&at) {
                Some((Some(parent), _)) if known.contains_key(parent) => at = *parent,
                Some(_) | None => break,
            }
        }
        known.get(&at).map(|(_, owner)| owner.clone())
    };
    Ok(known.keys().filter_map(|session| Some((*session, root(session)?))).collect())
}
