//! A journal of schema 9 opens as one of the newest schema, and so does a backup of one. Its projections lack what later
//! programs derive from the log, and are made again.

use std::path::Path;

use lanyard_core::SessionId;
use lanyard_core::session::{Ending, Pending};
use lanyard_store::{Directory, Filter, SqliteJournal, Upkeep};
use rusqlite::Connection;

use crate::kit::{Teller, open};

/// The schema whose journals these tests make.
const OLDER: u32 = 9;
/// Fields of a session's record that a program of that schema did not write.
const LATER: [&str; 7] =
    ["last_turn", "seen", "stopped_runs", "notice_unheard", "run_wanted", "calls_in_flight", "log_bytes"];
/// The layout of its cards. They end with the word for who runs the session's agent.
const OLDER_LAYOUT: u8 = 3;
/// Bytes that later layouts add, beside the word for how the last turn ended: a flag, that word's length, two flags, and the
/// limit that a turn waits for: a flag and a time.
const LATER_BYTES: usize = 1 + 4 + 2 + 1 + 8;

fn rows(conn: &Connection, query: &str) -> Vec<(i64, Vec<u8>)> {
    let mut all = conn.prepare(query).unwrap();
    let rows = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// A card as a program of schema 9 wrote it.
fn older_card(card: &[u8], sessions: &Teller) -> Vec<u8> {
    let id = SessionId::from_u128(u128::from_le_bytes(card[1..17].try_into().unwrap()));
    let word = sessions.sessions[&id].last_turn.as_ref().map_or(0, |turn| turn.how.as_str().len());
    let mut older = card[..card.len() - LATER_BYTES - word].to_vec();
    older[0] = OLDER_LAYOUT;
    older
}

/// The same of a record, with its seq.
fn older_record(body: &[u8]) -> (i64, Vec<u8>) {
    let mut record: serde_json::Value = serde_json::from_slice(body).unwrap();
    for field in LATER {
        record.as_object_mut().unwrap().remove(field);
    }
    (record["seq"].as_i64().unwrap(), serde_json::to_vec(&record).unwrap())
}

fn record_sum(sid: i64, seq: i64, body: &[u8]) -> u32 {
    let length = body.len() as u64;
    let parts: [&[u8]; 4] = [&sid.to_le_bytes(), &seq.to_le_bytes(), &length.to_le_bytes(), body];
    crc32fast::hash(&parts.concat())
}

/// Turns a journal into what a program of schema 9 left.
fn make_older(path: &Path, sessions: &Teller) {
    let conn = Connection::open(path).unwrap();
    for (sid, card) in rows(&conn, "SELECT sid, card FROM sessions") {
        let older = older_card(&card, sessions);
        let crc = crc32fast::hash(&[older.as_slice(), &sid.to_le_bytes()].concat());
        conn.execute("UPDATE sessions SET crc = ?2, card = ?3 WHERE sid = ?1", (sid, crc, older)).unwrap();
    }
    for (sid, body) in rows(&conn, "SELECT sid, body FROM records") {
        let (seq, body) = older_record(&body);
        let crc = record_sum(sid, seq, &body);
        conn.execute("UPDATE records SET crc = ?2, body = ?3 WHERE sid = ?1", (sid, crc, body)).unwrap();
    }
    conn.execute_batch("DROP TABLE record_events; DROP TABLE record_rows; DROP TABLE record_keys").unwrap();
    conn.pragma_update(None, "user_version", OLDER).unwrap();
}

/// Sessions at rest after a turn, at work, ended and untouched; as the older program left them.
fn older_journal(path: &Path) -> Teller {
    let mut teller = Teller::default();
    let journal = open(path);
    for _ in 0..2 {
        let rested = teller.plain();
        teller.start_turn(rested);
        teller.say(rested, "done");
        teller.finish_turn(rested);
        let busy = teller.plain();
        teller.start_turn(busy);
        let over = teller.plain();
        teller.end(over, Ending::Completed);
        teller.plain();
        teller.append(&journal);
    }
    drop(journal);
    make_older(path, &teller);
    teller
}

/// Everything is there, with what the older program did not know of, and nothing is damaged.
fn is_whole(path: &Path, teller: &Teller) {
    let journal = open(path);
    teller.assert_kept(&journal);
    let rows = journal.list(&Filter::default(), None, 100).unwrap().rows;
    for row in &rows {
        assert_eq!(row.pending, Pending::of(&teller.sessions[&row.id]), "{row:?}");
    }
    assert_eq!(rows.iter().filter(|row| row.pending.ended_as.is_some()).count(), 2);
    let report = journal.check().unwrap();
    assert!(report.schema > OLDER, "{report:?}");
    assert_eq!((report.damage, report.structure, report.sessions), (Vec::new(), Vec::new(), 8));
}

#[test]
fn a_journal_of_schema_9_is_brought_forward() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let teller = older_journal(&path);
    let before = Connection::open(&path).unwrap();
    let version: u32 = before.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, OLDER);
    drop(before);
    is_whole(&path, &teller);
    // And once more, as the newest schema left it.
    is_whole(&path, &teller);
}

/// A backup of schema 9 is verified as it is, copied into place, and opened.
#[test]
fn a_backup_of_schema_9_is_verified_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (backup, path) = (folder.path().join("backup.db"), folder.path().join("journal.db"));
    let teller = older_journal(&backup);
    let report = SqliteJournal::verify(&backup).unwrap();
    assert_eq!((report.schema, report.sessions), (OLDER, 8));
    assert_eq!((report.damage, report.structure), (Vec::new(), Vec::new()));
    std::fs::copy(&backup, &path).unwrap();
    is_whole(&path, &teller);
    assert_eq!(SqliteJournal::verify(&backup).unwrap().schema, OLDER, "the backup itself is left as it was");
}
