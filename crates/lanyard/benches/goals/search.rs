//! Full text over the logs of all sessions: how long a query of three words takes, and what keeping the index up costs
//! those who append.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use lanyard_base::clock::Clock;
use lanyard_core::search::SearchQuery;
use lanyard_daemon::indexer;
use lanyard_store::{
    Batch, Durability, EventEntry, Journal, SearchStop, SqliteJournal, TextFound, TextQuery, TextSearch,
};

use crate::fixture::{self, BATCH_EVENTS, Log, Scribe, now};
use crate::report::{Better, Judge, Row, median, quantile};
use crate::{Plan, progress};

const SESSIONS: usize = 1_000;
/// Words of a text, and words there are; the first ones are common and the last ones rare.
const LENGTH: usize = 30;
const WORDS: usize = 30_000;
/// Queries of one repetition.
const QUERIES: usize = 300;
const HITS: usize = 20;
const BAR_MS: f64 = 50.0;
/// Events of one commit while appends are measured, as in an engine with many writers.
const GROUP: usize = 64;
const STEP_EVENTS: usize = 5_000;
/// Appending with the index on, of appending without.
const BAR: f64 = 0.85;
const STRETCH: f64 = 0.95;

pub(crate) fn run(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let mut random = fastrand::Rng::with_seed(20_261_119);
    let mut rows = vec![appends(plan, dir, &mut random)?];
    rows.extend(queries(plan, dir, &mut random)?);
    Ok(rows)
}

fn queries(plan: &Plan, dir: &Path, random: &mut fastrand::Rng) -> Result<Vec<Row>> {
    let journal = fixture::open(&dir.join("full"))?;
    let mut author = Author::new(&journal)?;
    progress(&format!("writing and indexing {} events", plan.events));
    for _ in 0..plan.events.div_ceil(BATCH_EVENTS) {
        author.append(&journal, BATCH_EVENTS, Durability::Written, random)?;
    }
    let began = Instant::now();
    while !journal.index_some(STEP_EVENTS)?.is_complete() {}
    let each_us = began.elapsed().as_secs_f64() * 1e6 / plan.events as f64;
    let mut rows = Vec::new();
    let cases = [
        ("three words", false, Judge::Below(BAR_MS)),
        ("three words, the last one without its end and `*`", true, Judge::Shown),
    ];
    for (what, prefix, judge) in cases {
        let what = format!("{what} in {} events, best {HITS}: p99", plan.events);
        let mut row = Row::new("search", what, "ms", judge);
        let mut halves = Vec::new();
        for repetition in 0..plan.repetitions {
            let millis = (0..QUERIES)
                .map(|_| timed(&journal, &query(random, prefix)))
                .collect::<Result<Vec<f64>>>()?;
            row.figures.push(quantile(&millis, 0.99));
            halves.push(median(&millis));
            progress(&format!("search {}/{}", repetition + 1, plan.repetitions));
        }
        rows.push(row.note(format!("p50 {:.2} ms; indexing {each_us:.0} µs an event", median(&halves))));
    }
    Ok(rows)
}

/// Appends as fast as one thread can, beside the daemon's own indexing and without it.
fn appends(plan: &Plan, dir: &Path, random: &mut fastrand::Rng) -> Result<Row> {
    let what = format!("durable append of texts, {GROUP} a commit, index kept up");
    let mut row =
        Row::new("search", what, "ev/s", Judge::Ratio(Better::AtLeast, BAR, STRETCH)).beside("no index");
    let without = fixture::open(&dir.join("without"))?;
    let with = Arc::new(fixture::open(&dir.join("with"))?);
    let (mut one, mut other) = (Author::new(&without)?, Author::new(&with)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let clock = Arc::new(Clock::from_env()?);
    for repetition in 0..plan.repetitions {
        let bare = one.rate(&without, plan.span, random)?;
        let keeping = runtime.spawn(indexer::keep_up(with.clone(), clock.clone()));
        let indexed = other.rate(&with, plan.span, random)?;
        keeping.abort();
        let _ = runtime.block_on(keeping);
        row.add(indexed, bare);
        progress(&format!("appends with the index {}/{}", repetition + 1, plan.repetitions));
    }
    let state = with.index_state()?;
    Ok(row.note(format!("{} of {} events were indexed meanwhile", state.indexed, state.end)))
}

/// Writes texts of words, a few of which are common.
struct Author {
    logs: Vec<Log>,
    next: usize,
}

impl Author {
    fn new(journal: &SqliteJournal) -> Result<Self> {
        Ok(Self { logs: Scribe::new(journal).beginnings(SESSIONS)?, next: 0 })
    }

    fn entry(&mut self, random: &mut fastrand::Rng) -> EventEntry {
        let count = self.logs.len();
        let log = &mut self.logs[self.next % count];
        self.next += 1;
        log.seq += 1;
        let words: Vec<String> = (0..LENGTH).map(|_| word(random)).collect();
        let (id, seq, at, number) = (log.id, log.seq, now(), self.next);
        let body = format!(
            "{{\"seq\":{seq},\"session\":\"{id}\",\"at\":\"{at}\",\"actor\":{{\"kind\":\"agent\",\"name\":\"bench\"}},\
             \"type\":\"message\",\"data\":{{\"role\":\"agent\",\"message_id\":\"m{number}\",\"text\":\"{}\"}}}}",
            words.join(" ")
        );
        EventEntry { session: id, seq, at, body: Bytes::from(body) }
    }

    fn append(
        &mut self,
        journal: &SqliteJournal,
        count: usize,
        durability: Durability,
        random: &mut fastrand::Rng,
    ) -> Result<()> {
        let entries = (0..count).map(|_| self.entry(random)).collect();
        journal.append(&Batch { entries, durability, ..Batch::default() }).context("cannot append")
    }

    /// Events appended in a second. The texts are made before.
    fn rate(&mut self, journal: &SqliteJournal, span: Duration, random: &mut fastrand::Rng) -> Result<f64> {
        let (mut took, mut events) = (Duration::ZERO, 0_usize);
        while took < span {
            let entries = (0..GROUP).map(|_| self.entry(random)).collect();
            let batch = Batch { entries, ..Batch::default() };
            let began = Instant::now();
            journal.append(&batch).context("cannot append")?;
            took += began.elapsed();
            events += GROUP;
        }
        Ok(events as f64 / took.as_secs_f64())
    }
}

/// A word; the lower its number, the more common it is.
fn word(random: &mut fastrand::Rng) -> String {
    let share = random.f64();
    let number = (WORDS as f64).powf(share) as usize;
    let mut letters = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..5 + number % 5)
        .map(|_| {
            let letter = char::from(b'a' + (letters % 26) as u8);
            letters /= 26;
            letter
        })
        .collect()
}

fn query(random: &mut fastrand::Rng, prefix: bool) -> String {
    let (one, two, mut three) = (word(random), word(random), word(random));
    if prefix {
        three.truncate(three.len() - 2);
        three.push('*');
    }
    format!("{one} {two} {three}")
}

fn timed(journal: &SqliteJournal, text: &str) -> Result<f64> {
    let began = Instant::now();
    let query = SearchQuery::parse(text, now())?;
    let wanted = TextQuery { query, ..TextQuery::default() };
    let TextFound::Page(_) = journal.search_texts(&wanted, None, HITS, &SearchStop::default())? else {
        bail!("nobody stopped it");
    };
    Ok(began.elapsed().as_secs_f64() * 1e3)
}
