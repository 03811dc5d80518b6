//! The shape of the file and the steps that lead to it. Steps only go forward, each in its own transaction.
//!
//! The log is in order of arrival and has no index: a locator per session would dirty a page per event. Everything
//! but the logs, the outcomes, the tokens, the papers, the mail, the counts, the notifications, the memory and the
//! tombstones is a projection that `rebuild` can make again.

use rusqlite::Connection;

use crate::card::search_text;
use crate::error::StoreError;
use crate::sqlite::rows::{Sid, read_record};
use crate::sqlite::{
    Failpoints, changes, insight, memory_upkeep, old_records, rebuild, record_upkeep, records, tombstones,
    turns,
};

/// "LNYD": marks the file as a Lanyard journal.
pub(super) const APPLICATION_ID: u32 = 0x4C4E_5944;

/// The schema this program writes. The steps are `STEPS[0]` to reach 1, and so on.
pub(super) const KNOWN: u32 = 13;

/// The first schema with the sessions and records of this program; steps after it only add tables beside them.
pub(super) const SAME_SINCE: u32 = 13;

type Step = fn(&Connection) -> Result<(), StoreError>;

const STEPS: [Step; KNOWN as usize] = [
    log_and_projections,
    search_index,
    papers,
    turn_rows,
    papers_by_key,
    |_| Ok(()),
    counts,
    memory,
    tombstones_of_purges,
    // Made the projections of sessions again, which the step after it does anyway.
    |_| Ok(()),
    one_set_of_tables,
    positions_of_changes,
    sums_of_usage,
];

/// Tables of sessions that `rebuild` drops and makes again.
const OF_SESSIONS: [&str; 7] = ["sessions", "records", "heads", "marks", "aliases", "search", "turns"];

const LOG: &str = "
    CREATE TABLE events (
        pos INTEGER PRIMARY KEY,
        sid INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        prev INTEGER NOT NULL, -- pos of the session's event before this one; 0 for none
        rung INTEGER NOT NULL, -- pos of its last event before this one with a seq divisible by 8; 0 for none
        at INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        body BLOB NOT NULL
    );
    CREATE TABLE outcomes (
        key BLOB PRIMARY KEY,
        request BLOB NOT NULL,
        at INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        outcome BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX outcomes_at ON outcomes (at);
    CREATE TABLE tokens (
        id BLOB PRIMARY KEY,
        hash BLOB NOT NULL,
        actor TEXT NOT NULL,
        session BLOB,
        created_at INTEGER NOT NULL,
        crc INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE meta (
        key TEXT PRIMARY KEY,
        value INTEGER NOT NULL,
        crc INTEGER NOT NULL
    ) WITHOUT ROWID;
";

/// Records are apart from the slim rows of the directory: opening reads all of those and none of these.
const PROJECTED: &str = "
    CREATE TABLE sessions (
        sid INTEGER PRIMARY KEY,
        crc INTEGER NOT NULL,
        card BLOB NOT NULL
    );
    CREATE TABLE records (
        sid INTEGER PRIMARY KEY,
        as_of INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        body BLOB NOT NULL
    );
    CREATE TABLE heads (
        sid INTEGER PRIMARY KEY,
        seq INTEGER NOT NULL,
        pos INTEGER NOT NULL,
        rung INTEGER NOT NULL,
        at INTEGER NOT NULL,
        crc INTEGER NOT NULL
    );
    CREATE TABLE marks (
        sid INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        pos INTEGER NOT NULL,
        PRIMARY KEY (sid, seq)
    ) WITHOUT ROWID;
    CREATE TABLE aliases (
        alias TEXT NOT NULL,
        sid INTEGER NOT NULL,
        PRIMARY KEY (alias, sid)
    ) WITHOUT ROWID;
";

/// The searched texts, read into memory at the first search.
const SEARCH: &str = "CREATE TABLE search (sid INTEGER PRIMARY KEY, text TEXT NOT NULL);";

const PAPERS: &str = "
    CREATE TABLE papers (
        kind TEXT NOT NULL,
        workspace TEXT NOT NULL,
        key TEXT NOT NULL,
        version INTEGER NOT NULL,
        at INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (kind, workspace, key)
    );
";

/// One row per turn; a turn's id is in order of its time.
const TURNS: &str = "
    CREATE TABLE turns (
        sid INTEGER NOT NULL,
        turn BLOB NOT NULL,
        crc INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (sid, turn)
    ) WITHOUT ROWID;
";

/// Counts are no projection: nothing else tells of them.
const TALLIES: &str = "
    CREATE TABLE tallies (
        slot INTEGER NOT NULL, -- a minute since 1970; 0 for all of them
        counter TEXT NOT NULL,
        times INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        PRIMARY KEY (slot, counter)
    ) WITHOUT ROWID;
";

/// Memory is no projection: no log holds it. An entry's key is unique in its workspace.
const MEMORY: &str = "
    CREATE TABLE memories (
        pos INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        store TEXT NOT NULL,
        scope TEXT NOT NULL,
        workspace TEXT NOT NULL,
        owner TEXT NOT NULL,
        key TEXT NOT NULL,
        plan TEXT,
        session BLOB,
        keep TEXT NOT NULL,
        at INTEGER NOT NULL,
        version INTEGER NOT NULL,
        name TEXT,
        text TEXT NOT NULL,
        tags TEXT NOT NULL,
        rest BLOB NOT NULL,
        crc INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX memories_place ON memories (workspace, key);
    CREATE INDEX memories_owner ON memories (workspace, owner, id);
    CREATE INDEX memories_session ON memories (session, store, id);
    CREATE INDEX memories_keep ON memories (keep, at);
    CREATE TABLE memory_vectors (
        pos INTEGER PRIMARY KEY,
        model TEXT NOT NULL,
        vector BLOB NOT NULL,
        crc INTEGER NOT NULL
    );
";

/// The index of their words: no copy of them, and what is forgotten is really taken out. A name says more about an entry
/// than a word of its text, and a tag more than that.
const MEMORY_WORDS: &str = "
    CREATE VIRTUAL TABLE memory_words USING fts5 (
        name, text, tags,
        content = 'memories', content_rowid = 'pos', tokenize = 'unicode61 remove_diacritics 2'
    );
    INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', 1);
    INSERT INTO memory_words (memory_words, rank) VALUES ('rank', 'bm25(4.0, 1.0, 2.0)');
";

fn log_and_projections(conn: &Connection) -> Result<(), StoreError> {
    conn.execute_batch(LOG)?;
    Ok(conn.execute_batch(PROJECTED)?)
}

fn search_index(conn: &Connection) -> Result<(), StoreError> {
    conn.execute_batch(SEARCH)?;
    let mut records = conn.prepare("SELECT as_of, crc, body, sid FROM records")?;
    let mut insert = conn.prepare("INSERT INTO search (sid, text) VALUES (?1, ?2)")?;
    let mut rows = records.query([])?;
    while let Some(row) = rows.next()? {
        let sid: Sid = row.get(3)?;
        // A damaged record keeps its session out of the index until `rebuild`; it must not keep the daemon out.
        if let Ok(session) = read_record(row, sid)
            && !session.deleted
        {
            insert.execute((sid, search_text(&session)))?;
        }
    }
    Ok(())
}

fn papers(conn: &Connection) -> Result<(), StoreError> {
    Ok(conn.execute_batch(PAPERS)?)
}

/// The turns of sessions that are there already are read from their logs.
fn turn_rows(conn: &Connection) -> Result<(), StoreError> {
    conn.execute_batch(TURNS)?;
    turns::fill(conn, |_| false)
}

/// The tables of tasks, mail, flows and notifications that this and the next two steps once made are no longer used:
/// [`old_records`] takes over those of older journals.
fn papers_by_key(conn: &Connection) -> Result<(), StoreError> {
    Ok(conn.execute_batch("CREATE INDEX papers_key ON papers (kind, key)")?)
}

fn counts(conn: &Connection) -> Result<(), StoreError> {
    Ok(conn.execute_batch(TALLIES)?)
}

/// Pieces of context were papers before.
fn memory(conn: &Connection) -> Result<(), StoreError> {
    conn.execute_batch(MEMORY)?;
    conn.execute_batch(MEMORY_WORDS)?;
    memory_upkeep::take_over_papers(conn)
}

fn tombstones_of_purges(conn: &Connection) -> Result<(), StoreError> {
    Ok(conn.execute_batch(tombstones::TABLE)?)
}

/// One set of tables for all kinds of records takes the place of tables for each. Sessions are projected again: rows and
/// records that an older program wrote do not know how a session's last turn ended and what is still to be done for it.
fn one_set_of_tables(conn: &Connection) -> Result<(), StoreError> {
    conn.execute_batch(records::EVENTS)?;
    conn.execute_batch(records::ROWS)?;
    old_records::take_over(conn)?;
    // Names are in the logs.
    conn.execute_batch("DROP TABLE IF EXISTS task_names")?;
    record_upkeep::remake(conn)?;
    rebuild::sessions(conn)
}

/// Every change of a record that can be followed gets a position.
fn positions_of_changes(conn: &Connection) -> Result<(), StoreError> {
    conn.execute_batch("DROP TABLE IF EXISTS record_changes")?;
    conn.execute_batch(changes::TABLE)?;
    changes::complete(conn)
}

/// The sums of cost, tokens, turns and approvals are read from the logs. Records are made again with them: those of older
/// programs do not know what their running turns used.
fn sums_of_usage(conn: &Connection) -> Result<(), StoreError> {
    conn.execute_batch("DROP TABLE IF EXISTS insight")?;
    conn.execute_batch(insight::TABLE)?;
    rebuild::sessions(conn)
}

/// Makes the projections of sessions again, empty. What is left of purged sessions stays.
pub(super) fn reset_sessions(conn: &Connection) -> rusqlite::Result<()> {
    reset(conn, &OF_SESSIONS, &[PROJECTED, SEARCH, TURNS])?;
    insight::reset(conn)
}

/// Makes the index of memory again, empty.
pub(super) fn reset_memory(conn: &Connection) -> rusqlite::Result<()> {
    reset(conn, &["memory_words"], &[MEMORY_WORDS])
}

fn reset(conn: &Connection, tables: &[&str], made: &[&str]) -> rusqlite::Result<()> {
    for table in tables {
        conn.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
    }
    made.iter().try_for_each(|made| conn.execute_batch(made))
}

pub(super) fn version(conn: &Connection) -> rusqlite::Result<u32> {
    conn.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Takes the file from the version it has to the one this program knows.
pub(super) fn migrate(conn: &Connection, failpoint: Option<&Failpoints>) -> Result<(), StoreError> {
    let pass = || {
        if let Some(failpoint) = failpoint {
            failpoint("migration");
        }
    };
    let from = version(conn)?;
    for (step, to) in STEPS.iter().zip(1..=KNOWN).skip(from as usize) {
        let transaction = conn.unchecked_transaction()?;
        step(&transaction)?;
        transaction.pragma_update(None, "user_version", to)?;
        pass();
        transaction.commit()?;
        pass();
    }
    Ok(())
}
