//! Reading everything and saying what is wrong. Changes nothing, and trusts nothing but the log: heads, marks, cards,
//! records, aliases, the search index, tasks and other records are compared with what the logs add up to.

use std::collections::BTreeMap;

use lanyard_core::journal::{Damage, Report};
use lanyard_core::session::Envelope;
use lanyard_core::{Session, SessionId};
use rusqlite::{Connection, OptionalExtension};

use crate::card::{Card, search_text};
use crate::error::StoreError;
use crate::fold::{Fold, note};
use crate::sqlite::boot::{each_row, settled};
use crate::sqlite::read::{FETCH, Fetched, Log, MARK_EVERY, fetch, record, scan, stored_card, undamaged};
use crate::sqlite::rows::{EventRow, HEAD_COLUMNS, Head, Judged, Pos, Sid, read_head, signed};
use crate::sqlite::{
    changes, insight, memory_upkeep, old_records, papers, record_upkeep, schema, tallies, tokens, tombstones,
    turns, writer,
};

/// Complaints of SQLite that are passed on; one damaged page can cause thousands.
const STRUCTURE_MAX: u32 = 100;
/// Gaps of the log that are named, where they are not all of purges.
const RANGES_MAX: usize = 1_000;
/// Longer gaps than this come from damage.
const GAP_MAX: Pos = 1 << 30;

pub(super) fn check(conn: &Connection) -> Result<Report, StoreError> {
    let mut checkup = Checkup {
        conn,
        settled: settled(conn)?,
        report: Report::default(),
        tallies: BTreeMap::new(),
        turns: turns::Audit::default(),
        last: 0,
        purged: tombstones::sids(conn)?,
        gaps: Gaps::default(),
        current: schema::version(conn)? >= schema::SAME_SINCE,
    };
    checkup.report.schema = schema::version(conn)?;
    checkup.structure()?;
    scan(conn, 0, Pos::MAX, |pos, row| checkup.event(pos, row))?;
    checkup.gaps()?;
    checkup.turns()?;
    let tallies = std::mem::take(&mut checkup.tallies);
    checkup.report.sessions = tallies.len() as u64;
    let (mut marks, mut aliases) = (0, 0);
    for (sid, tally) in tallies {
        marks += tally.head.seq / MARK_EVERY;
        aliases += checkup.session(sid, &tally)?;
    }
    checkup.count("sessions", checkup.report.sessions)?;
    checkup.count("records", checkup.report.sessions)?;
    checkup.count("heads", checkup.report.sessions)?;
    checkup.count("marks", marks)?;
    checkup.count("aliases", aliases)?;
    checkup.beside_the_log()?;
    let mut records = if checkup.current { record_upkeep::check(conn)? } else { Vec::new() };
    if checkup.report.schema == schema::KNOWN {
        records.extend(changes::check(conn)?);
    }
    for (seq, what) in records {
        checkup.complain(None, seq, what);
    }
    for what in
        old_records::check(conn, checkup.report.schema)?.into_iter().chain(memory_upkeep::check(conn)?)
    {
        checkup.complain(None, (0, 0), what);
    }
    Ok(checkup.report)
}

struct Checkup<'a> {
    conn: &'a Connection,
    settled: Pos,
    report: Report,
    tallies: BTreeMap<Sid, Tally>,
    turns: turns::Audit,
    /// The last position seen.
    last: Pos,
    /// Sessions that are purged, or being purged.
    purged: BTreeMap<Sid, SessionId>,
    gaps: Gaps,
    /// The journal has the sessions and records of this program. Records of an older one lack what only this fold adds up, and are
    /// made again when it is opened.
    current: bool,
}

/// Positions of the log at which there is nothing: purges leave some, and damage.
#[derive(Default)]
struct Gaps {
    count: u64,
    places: i64,
    ranges: Vec<(Pos, Pos)>,
}

impl Gaps {
    fn add(&mut self, first: Pos, last: Pos) {
        if last.saturating_sub(first) > GAP_MAX {
            // A position no log has: the number itself is damaged.
            self.count = u64::MAX / 2;
        } else {
            for pos in first..=last {
                self.count += 1;
                self.places = self.places.wrapping_add(tombstones::mark(pos));
            }
        }
        if first <= last && self.ranges.len() < RANGES_MAX {
            self.ranges.push((first, last));
        }
    }
}

/// The findings of the log about one session.
#[derive(Default)]
struct Tally {
    id: Option<SessionId>,
    head: Head,
    /// The last event that the head on disk must include.
    settled: u64,
}

impl Checkup<'_> {
    fn complain(&mut self, session: Option<SessionId>, seq: (u64, u64), what: impl Into<String>) {
        let damage = Damage { session, first_seq: seq.0, last_seq: seq.1, what: what.into() };
        note(&mut self.report.damage, damage);
    }

    fn structure(&mut self) -> Result<(), StoreError> {
        let structure = &mut self.report.structure;
        let read = each_row(self.conn, &format!("PRAGMA integrity_check({STRUCTURE_MAX})"), |row| {
            let line: String = row.get(0).unwrap_or_else(|error| error.to_string());
            structure.extend(Some(line).filter(|line| line != "ok"));
            true
        })?;
        if !read {
            structure.push("the file is too damaged for its structure to be checked".to_owned());
        }
        Ok(())
    }

    /// An event in order of arrival: whether it is there, and whether it goes on where its session's log was.
    fn event(&mut self, pos: Pos, row: Judged<EventRow>) {
        self.gaps.add(self.last + 1, pos - 1);
        self.last = pos;
        let (row, intact) = match row {
            Judged::Intact(row) => (row, true),
            Judged::Suspect(row) => (row, false),
            Judged::Unreadable(why) => {
                return self.complain(
                    None,
                    (0, 0),
                    format!("position {pos} of the log cannot be read: {why}"),
                );
            }
        };
        if self.purged.contains_key(&row.sid) {
            return;
        }
        self.report.events += 1;
        self.report.bytes += row.body.len() as u64;
        let settled = pos <= self.settled;
        let due = self.tallies.get(&row.sid).map_or(1, |tally| tally.head.seq + 1);
        // One that is not as it was written is reported where its session is read, when it can be told whose it is.
        if !intact && row.seq != due {
            return self.complain(
                None,
                (0, 0),
                format!("position {pos} of the log is not as it was written"),
            );
        }
        let tally = self.tallies.entry(row.sid).or_default();
        let before = tally.head;
        tally.head = if intact { Head::at(&row) } else { before.advanced(row.seq, pos, row.at) };
        tally.settled = if settled { row.seq } else { tally.settled };
        if tally.id.is_none() && intact {
            tally.id = serde_json::from_slice::<Envelope>(&row.body).ok().map(|envelope| envelope.session);
        }
        let id = tally.id;
        if intact && row.seq == due && (row.prev, row.rung) != (before.pos, before.rung) {
            self.complain(id, (row.seq, row.seq), "the event does not lead to the one before it");
        }
        if row.seq < due {
            self.complain(id, (row.seq, row.seq), "the number was given twice");
        }
        if intact && row.seq % MARK_EVERY == 0 {
            self.mark(id, &row);
        }
        if intact {
            self.turns.event(self.conn, &row);
            self.attached(&row);
        }
    }

    /// What the event refers to beside the journal. Most events are not read for it.
    fn attached(&mut self, row: &EventRow) {
        if memchr::memmem::find(&row.body, b"\"media_type\":").is_none() {
            return;
        }
        let Ok(envelope) = serde_json::from_slice::<Envelope>(&row.body) else { return };
        for id in envelope.event.attachments() {
            self.report.attached.entry((envelope.session, id)).or_insert(envelope.seq);
        }
    }

    /// Whether what is missing in the log is just what purges removed.
    fn gaps(&mut self) -> Result<(), StoreError> {
        let end = tombstones::log_end(self.conn)?;
        self.gaps.add(self.last + 1, end);
        let (mut count, mut places) = (0, 0_i64);
        let whole = tombstones::each(self.conn, |stone| {
            count += stone.removed;
            places = places.wrapping_add(stone.places);
        })?;
        if !whole {
            self.complain(None, (0, 0), "a tombstone of a deleted session is damaged");
        }
        let gaps = std::mem::take(&mut self.gaps);
        if (gaps.count, gaps.places) != (count, places) {
            for (first, last) in gaps.ranges {
                let what = format!("the log has nothing from position {first} to {last}");
                self.complain(None, (0, 0), what);
            }
        }
        Ok(())
    }

    fn turns(&mut self) -> Result<(), StoreError> {
        let (turns, wrong) = std::mem::take(&mut self.turns).done(self.conn);
        if wrong > 0 {
            self.complain(None, (0, 0), format!("{wrong} rows of turns are not what the log says"));
        }
        self.count("turns", turns)
    }

    fn mark(&mut self, id: Option<SessionId>, row: &EventRow) {
        let find = || {
            let mut find = self.conn.prepare_cached("SELECT pos FROM marks WHERE sid = ?1 AND seq = ?2")?;
            find.query_row((row.sid, signed(row.seq)), |found| found.get::<_, Pos>(0))
        };
        if find().ok() != Some(row.pos) {
            self.complain(id, (row.seq, row.seq), "the event's mark is damaged");
        }
    }

    /// Compares everything kept of a session with what its log adds up to. Answers how many aliases it has.
    fn session(&mut self, sid: Sid, tally: &Tally) -> Result<u64, StoreError> {
        let conn = self.conn;
        let (record, card) = (record(conn, sid)?, stored_card(conn, sid)?);
        let told =
            tally.id.or(record.as_ref().ok().map(|record| record.id)).or(card.as_ref().map(|card| card.id));
        let Some(id) = told else {
            self.complain(
                None,
                (0, 0),
                format!("session number {sid} cannot be told from anything left of it"),
            );
            return Ok(0);
        };
        let log = Log { id, sid, head: tally.head };
        self.head(sid, id, tally)?;
        let as_of = record.as_ref().map_or(log.head.seq, |record| record.seq.min(log.head.seq));
        let mut fold = Fold::new(id, None);
        log.feed(conn, &mut fold, 1, as_of)?;
        let logged = fold.session.clone();
        log.feed(conn, &mut fold, as_of + 1, log.head.seq)?;
        // A damaged log cannot tell whether the record is right; a good record then is what is left.
        let whole = fold.damage.is_empty();
        if whole && self.current && !insight::agrees(conn, sid, &fold.sums)? {
            self.complain(Some(id), (0, 0), "what the session used is not summed up as its log says");
        }
        for damage in fold.damage {
            note(&mut self.report.damage, damage);
        }
        match (&record, &logged) {
            (Err(what), _) => self.complain(Some(id), (0, 0), what.clone()),
            (Ok(record), Some(logged)) if whole && self.current && record != logged => {
                self.complain(Some(id), (0, 0), "the session's record is not what its log adds up to");
            }
            (Ok(_), _) => {}
        }
        let Some(best) = record.ok().or(logged) else { return Ok(0) };
        if best.deleted {
            // Its attachments go before its log does.
            self.report.attached.retain(|(session, _), _| *session != id);
        }
        if card.is_none_or(|card| {
            card.id != id
                || (self.current && card.as_of == best.seq && card != Card::of(&best))
                || card.as_of > log.head.seq
        }) {
            self.complain(Some(id), (0, 0), "the session's row in the directory is damaged");
        }
        self.texts(sid, &best)
    }

    fn head(&mut self, sid: Sid, id: SessionId, tally: &Tally) -> Result<(), StoreError> {
        let mut get =
            self.conn.prepare_cached(&format!("SELECT {HEAD_COLUMNS} FROM heads WHERE sid = ?1"))?;
        let head = get.query_row([sid], |row| Ok(read_head(row))).optional();
        let head = undamaged(head)?.flatten().flatten().map(|(_, head)| head);
        let good = match head {
            Some(head) => {
                let there = fetch(&mut self.conn.prepare_cached(FETCH)?, head.pos)?;
                let there = match there {
                    Fetched::Row(Judged::Intact(row) | Judged::Suspect(row)) => {
                        row.sid == sid && row.seq == head.seq
                    }
                    Fetched::Row(Judged::Unreadable(_)) | Fetched::Missing => false,
                };
                there && head.seq >= tally.settled && head.seq <= tally.head.seq
            }
            // A session that is newer than the settled part of the log need not have one yet.
            None => tally.settled == 0,
        };
        if !good {
            self.complain(Some(id), (0, 0), "the session's head is damaged");
        }
        Ok(())
    }

    fn texts(&mut self, sid: Sid, session: &Session) -> Result<u64, StoreError> {
        let mut aliases: Vec<&String> = session.aliases.iter().collect();
        aliases.sort_unstable();
        aliases.dedup();
        for alias in &aliases {
            let mut find = self.conn.prepare_cached("SELECT 1 FROM aliases WHERE alias = ?1 AND sid = ?2")?;
            if undamaged(find.exists((alias, sid)))? != Some(true) {
                self.complain(Some(session.id), (0, 0), "an alias of the session is missing");
            }
        }
        let mut find = self.conn.prepare_cached("SELECT text FROM search WHERE sid = ?1")?;
        let found = undamaged(find.query_row([sid], |row| row.get::<_, String>(0)).optional())?.flatten();
        if found != (!session.deleted).then(|| search_text(session)) {
            self.complain(Some(session.id), (0, 0), "the session is not in the search index as it should be");
        }
        Ok(aliases.len() as u64)
    }

    fn count(&mut self, table: &str, expected: u64) -> Result<(), StoreError> {
        // A purge that has begun may not have come to all of them.
        let sql = match table {
            "turns" | "marks" => {
                format!("SELECT count(*) FROM {table} WHERE sid NOT IN (SELECT sid FROM tombstones)")
            }
            _ => format!("SELECT count(*) FROM {table}"),
        };
        let counted: Option<i64> = undamaged(self.conn.query_row(&sql, [], |row| row.get(0)))?;
        // Heads follow the log at some distance, so there may be fewer of them.
        let good = match counted {
            Some(counted) if table == "heads" => counted <= signed(expected),
            Some(counted) => counted == signed(expected),
            None => false,
        };
        if !good {
            let counted = counted.map_or_else(|| "unreadable".to_owned(), |counted| counted.to_string());
            self.complain(
                None,
                (0, 0),
                format!("table {table} has {counted} rows where the log says {expected}"),
            );
        }
        Ok(())
    }

    fn beside_the_log(&mut self) -> Result<(), StoreError> {
        let outcomes = each_row(self.conn, "SELECT key, request, at, crc, outcome FROM outcomes", |row| {
            let good = || -> rusqlite::Result<bool> {
                let (key, request): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
                let (at, crc, body): (i64, u32, Vec<u8>) = (row.get(2)?, row.get(3)?, row.get(4)?);
                Ok(crc == writer::outcome_sum(&key, &request, at, &body))
            };
            good().unwrap_or(false)
        })?;
        if !outcomes {
            self.complain(None, (0, 0), "a kept outcome is damaged");
        }
        let tokens =
            each_row(self.conn, "SELECT id, hash, actor, session, created_at, crc FROM tokens", |row| {
                matches!(tokens::read(row), Ok(Some(_)))
            })?;
        if !tokens {
            self.complain(None, (0, 0), "a stored token is damaged");
        }
        let papers = each_row(self.conn, &format!("SELECT {} FROM papers", papers::COLUMNS), |row| {
            matches!(papers::read(row), Ok(Some(_)))
        })?;
        if !papers {
            self.complain(None, (0, 0), "a kept paper is damaged");
        }
        if self.current {
            let all = format!("SELECT {} FROM insight", insight::COLUMNS);
            if !each_row(self.conn, &all, |row| insight::read(row).is_some())? {
                self.complain(None, (0, 0), "a sum of usage is damaged");
            }
        }
        let all = format!("SELECT {} FROM tallies", tallies::COLUMNS);
        if !each_row(self.conn, &all, |row| tallies::read(row).is_some())? {
            self.complain(None, (0, 0), "a kept count is damaged");
        }
        Ok(())
    }
}
