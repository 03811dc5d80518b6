//! Finding something among a hundred thousand entries of memory, beside the bare index doing the same in the same run:
//! one table with FTS5 over it, a query for the best twenty, and their rows.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use lanyard_core::memory::{MemoryEntry, MemoryScope, Source, Tags, Where};
use lanyard_core::{Actor, MemoryId, Timestamp};
use lanyard_store::{Memories, MemoryFilter, SqliteJournal, Viewer, Writing};
use rusqlite::Connection;

use crate::report::{Better, Judge, Row, median, quantile};
use crate::{Plan, fixture, progress};

const ENTRIES: usize = 100_000;
/// Entries written at a time.
const BATCH: usize = 5_000;
/// Hits that are asked for.
const HITS: usize = 20;
/// Searches of one repetition.
const SEARCHES: usize = 400;
/// Words there are; the first ones are common and the last ones rare.
const WORDS: u64 = 20_000;
/// Words of an entry.
const LENGTH: usize = 40;
/// What it may cost to judge, check and read an entry instead of a bare row.
const BAR: f64 = 1.3;
const STRETCH: f64 = 1.1;

pub(crate) fn run(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let journal = fixture::open(dir)?;
    let bare = Connection::open(dir.join("bare.db"))?;
    bare.execute_batch(
        "PRAGMA journal_mode = wal; PRAGMA cache_size = -16384;
         CREATE TABLE entries (pos INTEGER PRIMARY KEY, text TEXT NOT NULL);
         CREATE VIRTUAL TABLE words USING fts5 (text, content = 'entries', content_rowid = 'pos',
             tokenize = 'unicode61 remove_diacritics 2');",
    )?;
    progress(&format!("writing {ENTRIES} entries of memory, twice"));
    let mut random = fastrand::Rng::with_seed(20_261_116);
    for batch in 0..ENTRIES / BATCH {
        fill(&journal, &bare, batch * BATCH, &mut random)?;
    }
    let mut rows = Vec::new();
    for (what, words) in [("one word, common or rare", 1), ("two words", 2), ("three words", 3)] {
        let mut row = Row::new(
            "recall",
            format!("best {HITS} of {ENTRIES} entries, {what}: p99"),
            "ms",
            Judge::Ratio(Better::AtMost, BAR, STRETCH),
        )
        .beside("bare FTS5");
        let mut halves = Vec::new();
        for repetition in 0..plan.repetitions {
            let queries: Vec<String> = (0..SEARCHES).map(|_| query(&mut random, words)).collect();
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            // In turns, so that whatever else the machine does meets both.
            for text in &queries {
                theirs.push(timed(|| bare_search(&bare, text))?);
                ours.push(timed(|| search(&journal, text))?);
            }
            row.add(quantile(&ours, 0.99), quantile(&theirs, 0.99));
            halves.push(median(&ours));
            progress(&format!("recall, {what} {}/{}", repetition + 1, plan.repetitions));
        }
        rows.push(row.note(format!("p50 {:.2} ms", median(&halves))));
    }
    Ok(rows)
}

/// A word; few of them are in most texts, and most in few.
fn word(random: &mut fastrand::Rng) -> String {
    let share = random.f64();
    format!("w{}", (share * share * share * WORDS as f64) as u64)
}

fn query(random: &mut fastrand::Rng, words: usize) -> String {
    (0..words).map(|_| word(random)).collect::<Vec<_>>().join(" ")
}

fn fill(journal: &SqliteJournal, bare: &Connection, from: usize, random: &mut fastrand::Rng) -> Result<()> {
    let mut writings = Vec::with_capacity(BATCH);
    bare.execute_batch("BEGIN")?;
    for number in from..from + BATCH {
        let text = (0..LENGTH).map(|_| word(random)).collect::<Vec<_>>().join(" ");
        bare.prepare_cached("INSERT INTO entries (text) VALUES (?1)")?.execute([&text])?;
        bare.prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?
            .execute((bare.last_insert_rowid(), &text))?;
        writings.push(Writing { entry: entry(number, text), from: 0 });
    }
    bare.execute_batch("COMMIT")?;
    journal.put_memories(&writings)?;
    Ok(())
}

fn entry(number: usize, text: String) -> MemoryEntry {
    MemoryEntry {
        id: MemoryId::from_u128(number as u128 + 1),
        store: Where::LongTerm,
        scope: MemoryScope::Workspace,
        workspace: "/w".to_owned(),
        owner: "ann".to_owned(),
        plan: None,
        name: None,
        text,
        tags: Tags::new(),
        by: Actor::operator("ann"),
        session: None,
        turn: None,
        source: Source::Api,
        request: None,
        at: Timestamp::from_millis(1_794_729_600_000),
        version: 1,
    }
}

fn timed(search: impl FnOnce() -> Result<usize>) -> Result<f64> {
    let began = Instant::now();
    search()?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

/// As an agent of the workspace sees it.
fn search(journal: &SqliteJournal, query: &str) -> Result<usize> {
    let viewer =
        Viewer { workspace: "/w".to_owned(), owner: "ann".to_owned(), long_term: true, ..Viewer::default() };
    let filter = MemoryFilter { seen_by: Some(viewer), ..MemoryFilter::default() };
    Ok(journal.search_memories(&filter, query, HITS)?.len())
}

fn bare_search(bare: &Connection, query: &str) -> Result<usize> {
    let count = |query: &str| -> Result<usize> {
        let mut find = bare.prepare_cached(
            "SELECT e.pos, e.text FROM (SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rank LIMIT ?2) f \
             JOIN entries e ON e.pos = f.rowid",
        )?;
        let rows = find.query_map((query, i64::try_from(HITS)?), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows: Vec<(i64, String)> = rows.collect::<Result<_, _>>().context("the bare index")?;
        Ok(rows.len())
    };
    // All words, or any where nothing has all: the same question.
    match count(query)? {
        0 if query.contains(' ') => count(&query.replace(' ', " OR ")),
        found => Ok(found),
    }
}
