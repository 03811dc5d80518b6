//! OpenCode: the database `opencode.db`, tables `session`, `message` and `part`. Seen with 1.18.33.
//!
//! It is opened for reading only, and what it runs is bounded by [`STEPS_MAX`].

use std::path::Path;

use lanyard_core::Timestamp;
use lanyard_core::session::Role;
use lanyard_git::workspace_files::{FileError, beneath};
use rusqlite::{Connection, OpenFlags, Row, params};
use serde_json::Value;

use super::past::{PastConversation, PastEvents, words};
use super::{
    HistoryError, HistoryHeader, HistoryKind, HistoryQuery, chosen, sound_folder, sound_native, title_of,
};

const DATABASE: &str = "opencode.db";
/// Steps of SQLite's machine that one read may take, counted in thousands: a few seconds.
const STEPS_MAX: u64 = 2_000_000;
const STEPS_AT_A_TIME: i32 = 1_000;
/// Bytes of one part of a message; images are kept in them.
const PART_BYTES_MAX: i64 = 8 << 20;
/// Ids with the same beginning that are looked at.
const SAME_BEGINNING_MAX: i64 = 64;

/// The database, of which nothing that it holds is run.
fn open(root: &Path) -> Result<Connection, FileError> {
    let root = root.canonicalize()?;
    // It is a regular file, and no link.
    drop(beneath::open(&root, Path::new(DATABASE))?);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut conn = Connection::open_with_flags(root.join(DATABASE), flags).map_err(failed)?;
    conn.pragma_update(None, "trusted_schema", false).map_err(failed)?;
    conn.pragma_update(None, "query_only", true).map_err(failed)?;
    let mut left = STEPS_MAX;
    let enough = move || {
        left = left.saturating_sub(1);
        left == 0
    };
    conn.progress_handler(STEPS_AT_A_TIME, Some(enough)).map_err(failed)?;
    Ok(conn)
}

fn failed(error: rusqlite::Error) -> FileError {
    FileError::Io(std::io::Error::other(error))
}

pub(super) fn list(root: &Path, query: &HistoryQuery) -> Result<(Vec<HistoryHeader>, bool), FileError> {
    let conn = open(root)?;
    // A session with a parent is a subagent's.
    let mut find = conn
        .prepare(
            "SELECT id, title, directory, time_updated,
                 (SELECT count(*) FROM message WHERE message.session_id = session.id)
             FROM session
             WHERE parent_id IS NULL AND (?1 IS NULL OR directory = ?1)
                 AND (?2 IS NULL OR (time_updated, id) < (?2, ?3))
             ORDER BY time_updated DESC, id DESC LIMIT ?4",
        )
        .map_err(failed)?;
    let (ms, native) = query.after.as_ref().map(|mark| (mark.updated_ms, mark.native.as_str())).unzip();
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
    let rows = find.query_map(params![query.folder, ms, native, limit], header).map_err(failed)?;
    let mut items = Vec::new();
    for row in rows {
        items.extend(Some(row.map_err(failed)?).filter(|header| sound_native(&header.native).is_some()));
    }
    let more = items.len() > query.limit;
    Ok((items, more))
}

fn header(row: &Row<'_>) -> rusqlite::Result<HistoryHeader> {
    let (native, title, folder): (String, Option<String>, Option<String>) =
        (row.get(0)?, row.get(1)?, row.get(2)?);
    let header = HistoryHeader::new(HistoryKind::Opencode, native, Timestamp::from_millis(row.get(3)?));
    Ok(HistoryHeader {
        title: title.as_deref().and_then(title_of),
        folder: folder.as_deref().and_then(sound_folder),
        messages: row.get::<_, i64>(4)?.try_into().ok(),
        ..header
    })
}

pub(super) fn read(root: &Path, native: &str) -> Result<PastConversation, HistoryError> {
    const KIND: HistoryKind = HistoryKind::Opencode;
    let conn = match open(root) {
        Ok(conn) => conn,
        Err(FileError::Missing) => return Err(HistoryError::not_found(KIND, native)),
        Err(error) => return Err(HistoryError::unreadable(KIND, native, &error)),
    };
    let named = named(&conn, native).map_err(|error| HistoryError::unreadable(KIND, native, &error))?;
    let (native, header) = chosen(KIND, native, named)?;
    let mut gathered = PastEvents::default();
    gather(&conn, &native, &mut gathered).map_err(|error| HistoryError::unreadable(KIND, &native, &error))?;
    if gathered.is_empty() {
        return Err(HistoryError::unreadable(KIND, &native, &"it holds no message"));
    }
    Ok(gathered.done(header))
}

fn named(conn: &Connection, native: &str) -> rusqlite::Result<Vec<(String, HistoryHeader)>> {
    let mut find = conn.prepare(
        "SELECT id, title, directory, time_updated, 0 FROM session
         WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT ?2",
    )?;
    let rows = find.query_map(params![native, SAME_BEGINNING_MAX], header)?;
    rows.map(|header| header.map(|header| (header.native.clone(), header))).collect()
}

fn gather(conn: &Connection, native: &str, out: &mut PastEvents) -> rusqlite::Result<()> {
    let mut find = conn.prepare(
        "SELECT message.id, message.data, part.time_created,
             CASE WHEN length(part.data) <= ?2 THEN part.data END
         FROM message JOIN part ON part.message_id = message.id
         WHERE message.session_id = ?1
         ORDER BY message.time_created, message.id, part.id",
    )?;
    let mut rows = find.query(params![native, PART_BYTES_MAX])?;
    while let Some(row) = rows.next()? {
        let (id, message): (String, String) = (row.get(0)?, row.get(1)?);
        let (at, part): (i64, Option<String>) = (row.get(2)?, row.get(3)?);
        let message = serde_json::from_str::<Value>(&message);
        let part = part.map(|part| serde_json::from_str::<Value>(&part));
        let (Ok(message), Some(Ok(part))) = (message, part) else {
            out.unreadable += 1;
            continue;
        };
        let role = if message["role"] == "user" { Role::User } else { Role::Agent };
        tell(Timestamp::from_millis(at), (role, &id), &part, out);
    }
    Ok(())
}

fn tell(at: Timestamp, (role, id): (Role, &str), part: &Value, out: &mut PastEvents) {
    let at = Some(at);
    match part["type"].as_str() {
        // What OpenCode itself adds to the words of the user.
        Some("text") if part["synthetic"].as_bool() == Some(true) => {}
        Some("text") => {
            let id = Some(id).filter(|_| role == Role::Agent);
            out.message(at, role, &words(&part["text"]), id);
        }
        Some("reasoning") => out.thought(at, &words(&part["text"])),
        Some("tool") => {
            let (call, state) = (part["callID"].as_str().unwrap_or_default(), &part["state"]);
            out.called(at, call, part["tool"].as_str().unwrap_or("tool"), &state["input"]);
            match state["status"].as_str() {
                Some("completed") => out.returned(at, call, false, &words(&state["output"])),
                Some("error") => out.returned(at, call, true, &words(&state["error"])),
                Some(_) | None => {}
            }
        }
        Some(_) | None => {}
    }
}
