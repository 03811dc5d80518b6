//! Taking events into the index of texts, a bounded stretch of the log at a time, and taking documents of purged sessions out
//! of it.

use std::collections::{BTreeMap, HashMap};

use lanyard_core::search::{DOCUMENT_BYTES_MAX, SearchDocument, SearchKind, document, indexed_words};
use rusqlite::{Connection, OptionalExtension};

use crate::error::StoreError;
use crate::sqlite::SqliteJournal;
use crate::sqlite::catalog::Facts;
use crate::sqlite::rows::{EventRow, Judged, Pos, Sid, is_damage, read_event, signed, unsigned};
use crate::sqlite::text_index::LogPlace;
use crate::text_search::IndexState;

/// Bytes of events that one step reads, whatever their number.
const STEP_BYTES_MAX: usize = 4 << 20;

/// A document as `docs` holds it.
#[derive(Debug, Clone)]
pub(super) struct StoredText {
    pub(super) sid: Sid,
    pub(super) seq: u64,
    pub(super) last_seq: u64,
    pub(super) at: i64,
    pub(super) kind: SearchKind,
    pub(super) joins: Option<String>,
    pub(super) text: String,
}

/// A stretch of the log.
struct LogStretch {
    rows: Vec<EventRow>,
    /// The position up to which the log was read.
    pos: Pos,
    /// Position and checksum of the last event.
    seen: Option<(Pos, u32)>,
}

impl SqliteJournal {
    pub(super) fn fill_texts(&self, limit: usize) -> Result<IndexState, StoreError> {
        self.texts_index.write(&self.pool, |conn| {
            let place = place(conn)?;
            let until = self.texts_index.end();
            if place.pos >= until {
                return Ok(());
            }
            let stretch = self.pool.read(|conn| stretch(conn, place.pos, until, limit.max(1)))?;
            let kept = |sid| !self.catalog().facts(sid).is_some_and(Facts::is_deleted);
            let changes = DocumentChanges::of(conn, &stretch.rows, kept)?;
            let next = LogPlace { pos: stretch.pos, seen: stretch.seen.unwrap_or(place.seen) };
            self.texts_index.commit(conn, Some(next), || self.pass("index"), |conn| changes.write(conn))
        })?;
        Ok(self.texts_index.state())
    }

    /// Takes documents of a purged session out. False when there are more. The log's own writer is not held up by this.
    pub(super) fn forget_texts(&self, sid: Sid, limit: usize) -> Result<bool, StoreError> {
        let limit = limit.max(1);
        self.texts_index.write(&self.pool, |conn| {
            let mut find =
                conn.prepare_cached("SELECT doc FROM docs WHERE sid = ?1 ORDER BY doc LIMIT ?2")?;
            let most = i64::try_from(limit).unwrap_or(i64::MAX);
            let docs = find.query_map((sid, most), |row| row.get(0))?.collect::<Result<Vec<Pos>, _>>()?;
            if docs.is_empty() {
                return Ok(true);
            }
            self.texts_index.commit(
                conn,
                None,
                || self.pass("index"),
                |conn| {
                    for &doc in &docs {
                        if let Some(old) = stored(conn, doc)? {
                            remove_words(conn, doc, &old)?;
                        }
                        conn.prepare_cached("DELETE FROM docs WHERE doc = ?1")?.execute([doc])?;
                    }
                    Ok(docs.len() < limit)
                },
            )
        })
    }
}

fn place(conn: &Connection) -> Result<LogPlace, StoreError> {
    let place = conn
        .prepare_cached("SELECT pos, seen, crc FROM place")?
        .query_row([], |row| Ok(LogPlace { pos: row.get(0)?, seen: (row.get(1)?, row.get(2)?) }));
    Ok(place.optional()?.unwrap_or_default())
}

/// Reads the log from a position on. What is damaged is left out: it is reported by `check`.
fn stretch(conn: &Connection, from: Pos, until: Pos, limit: usize) -> Result<LogStretch, StoreError> {
    let mut stretch = LogStretch { rows: Vec::new(), pos: from, seen: None };
    while stretch.pos < until {
        match read_some(conn, &mut stretch, until, limit) {
            Ok(()) => break,
            Err(error) if is_damage(&error) => stretch.pos += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(stretch)
}

fn read_some(conn: &Connection, stretch: &mut LogStretch, until: Pos, limit: usize) -> rusqlite::Result<()> {
    let mut find = conn.prepare_cached(
        "SELECT pos, sid, seq, prev, rung, at, crc, body FROM events WHERE pos > ?1 AND pos <= ?2 ORDER BY pos",
    )?;
    let mut rows = find.query((stretch.pos, until))?;
    let mut bytes: usize = stretch.rows.iter().map(|row| row.body.len()).sum();
    while stretch.rows.len() < limit && bytes < STEP_BYTES_MAX {
        let Some(row) = rows.next()? else {
            stretch.pos = until;
            return Ok(());
        };
        stretch.pos = row.get::<_, Pos>(0)?.max(stretch.pos + 1);
        if let Judged::Intact(event) = read_event(row) {
            stretch.seen = Some((event.pos, row.get(6)?));
            bytes += event.body.len();
            stretch.rows.push(event);
        }
    }
    Ok(())
}

/// The documents that a stretch of the log adds, and those that it extends with their former content.
struct DocumentChanges(BTreeMap<Pos, (Option<StoredText>, StoredText)>);

impl DocumentChanges {
    fn of(conn: &Connection, rows: &[EventRow], kept: impl Fn(Sid) -> bool) -> Result<Self, StoreError> {
        let mut changes = Self(BTreeMap::new());
        // The last document of each session that came by.
        let mut last: HashMap<Sid, Pos> = HashMap::new();
        for row in rows {
            let Some(found) = document(&row.body).filter(|_| kept(row.sid)) else { continue };
            if found.joins.is_some()
                && !last.contains_key(&row.sid)
                && let Some((doc, text)) = last_of(conn, row.sid)?
            {
                last.insert(row.sid, doc);
                changes.0.insert(doc, (Some(text.clone()), text));
            }
            let before = last.get(&row.sid).and_then(|doc| changes.0.get_mut(doc));
            if let Some((_, before)) = before
                && before.takes(row, &found)
            {
                before.text.push_str(&found.text);
                before.last_seq = row.seq;
                continue;
            }
            last.insert(row.sid, row.pos);
            changes.0.insert(row.pos, (None, StoredText::begun(row, found)));
        }
        Ok(changes)
    }

    /// Documents in order of their numbers: words of one step are written as one segment.
    fn write(&self, conn: &Connection) -> Result<(), StoreError> {
        let changed = |old: &StoredText, new: &StoredText| old.last_seq != new.last_seq;
        let mut extended = false;
        for (doc, (old, new)) in &self.0 {
            if let Some(old) = old.as_ref().filter(|old| changed(old, new)) {
                remove_words(conn, *doc, old)?;
                extended = true;
            }
        }
        if extended {
            // A savepoint writes out what was removed. Where a document is removed and put in one piece, SQLite leaves old
            // words with many places in the index.
            conn.execute_batch("SAVEPOINT removed; RELEASE removed")?;
        }
        for (doc, (old, new)) in &self.0 {
            if old.as_ref().is_some_and(|old| !changed(old, new)) {
                continue;
            }
            let words = indexed_words(&new.text);
            conn.prepare_cached("INSERT INTO words (rowid, whole, parts, facets) VALUES (?1, ?2, ?3, ?4)")?
                .execute((doc, words.whole, words.parts, facets(new)))?;
            conn.prepare_cached(
                "INSERT OR REPLACE INTO docs (doc, sid, seq, last_seq, at, kind, joins, text) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute((
                doc,
                new.sid,
                signed(new.seq),
                signed(new.last_seq),
                new.at,
                number(new.kind),
                &new.joins,
                &new.text,
            ))?;
        }
        Ok(())
    }
}

impl StoredText {
    fn begun(row: &EventRow, found: SearchDocument) -> Self {
        let SearchDocument { kind, joins, text } = found;
        Self { sid: row.sid, seq: row.seq, last_seq: row.seq, at: row.at, kind, joins, text }
    }

    /// Whether an event is the next piece of this message.
    fn takes(&self, row: &EventRow, found: &SearchDocument) -> bool {
        self.joins.is_some()
            && self.joins == found.joins
            && self.last_seq + 1 == row.seq
            && self.text.len() + found.text.len() <= DOCUMENT_BYTES_MAX
    }
}

/// The session's newest document.
fn last_of(conn: &Connection, sid: Sid) -> Result<Option<(Pos, StoredText)>, StoreError> {
    let mut find = conn.prepare_cached("SELECT max(doc) FROM docs WHERE sid = ?1")?;
    let Some(doc) = find.query_row([sid], |row| row.get::<_, Option<Pos>>(0))? else { return Ok(None) };
    Ok(stored(conn, doc)?.map(|text| (doc, text)))
}

/// The document with this number.
pub(super) fn stored(conn: &Connection, doc: Pos) -> Result<Option<StoredText>, StoreError> {
    let mut get =
        conn.prepare_cached("SELECT sid, seq, last_seq, at, kind, joins, text FROM docs WHERE doc = ?1")?;
    let text = get.query_row([doc], |row| {
        Ok(StoredText {
            sid: row.get(0)?,
            seq: unsigned(row.get(1)?),
            last_seq: unsigned(row.get(2)?),
            at: row.get(3)?,
            kind: kind(row.get(4)?),
            joins: row.get(5)?,
            text: row.get(6)?,
        })
    });
    Ok(text.optional()?)
}

/// Takes the words of a document out of the index: it has no copy of them, so they are said again.
fn remove_words(conn: &Connection, doc: Pos, old: &StoredText) -> Result<(), StoreError> {
    let words = indexed_words(&old.text);
    conn.prepare_cached(
        "INSERT INTO words (words, rowid, whole, parts, facets) VALUES ('delete', ?1, ?2, ?3, ?4)",
    )?
    .execute((doc, words.whole, words.parts, facets(old)))?;
    Ok(())
}

/// What a search can be narrowed to by the index itself.
fn facets(text: &StoredText) -> String {
    format!("{} {}", session_facet(text.sid), kind_facet(text.kind))
}

pub(super) fn session_facet(sid: Sid) -> String {
    format!("s{sid}")
}

pub(super) fn kind_facet(kind: SearchKind) -> String {
    format!("k{}", number(kind))
}

fn number(kind: SearchKind) -> i64 {
    match kind {
        SearchKind::Message => 1,
        SearchKind::Tool => 2,
        SearchKind::Result => 3,
    }
}

fn kind(number: i64) -> SearchKind {
    SearchKind::ALL.into_iter().find(|kind| self::number(*kind) == number).unwrap_or(SearchKind::Message)
}
