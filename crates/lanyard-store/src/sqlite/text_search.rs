//! Asking the index of texts. Every query becomes an expression of quoted words, so none can be an error of the database.
//! The newest matches are read until a stretch is full, and only these are compared with each other: the cost does not grow
//! with the number of matches.

use std::fmt::Write as _;

use lanyard_core::search::{SearchKind, SearchPiece, SearchQuery, SearchTerm, relevance, snippet};
use lanyard_core::{SessionId, Timestamp};
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use crate::error::StoreError;
use crate::sqlite::SqliteJournal;
use crate::sqlite::rows::{Pos, Sid};
use crate::sqlite::text_fill::{StoredText, kind_facet, session_facet, stored};
use crate::text_search::{
    IndexState, SearchStop, TextCursor, TextFound, TextHit, TextPage, TextQuery, TextSearch, WINDOW,
};

/// Matches that one search looks at. With fewer hits among them than a stretch has, the next page goes on after them.
const SCAN_MAX: usize = 10_000;
/// Sessions that a search can be narrowed to by the index itself; with more of them, matches are looked at one by one.
const SESSIONS_NAMED_MAX: usize = 200;
/// What the newest text has over the last of a full stretch, in points of relevance.
const RECENCY: usize = 12;

impl TextSearch for SqliteJournal {
    fn index_some(&self, limit: usize) -> Result<IndexState, StoreError> {
        self.fill_texts(limit)
    }

    fn index_state(&self) -> Result<IndexState, StoreError> {
        self.texts_index.write(&self.pool, |_| Ok(()))?;
        Ok(self.texts_index.state())
    }

    fn search_texts(
        &self,
        wanted: &TextQuery,
        from: Option<&TextCursor>,
        limit: usize,
        stop: &SearchStop,
    ) -> Result<TextFound, StoreError> {
        let Some(scope) = self.scope(wanted) else {
            let state = self.index_state()?;
            return Ok(TextFound::Page(TextPage { hits: Vec::new(), next: None, state }));
        };
        let found = self.texts_index.read(&self.pool, |conn| {
            let interrupt = conn.get_interrupt_handle();
            stop.during(
                move || interrupt.interrupt(),
                || IndexSearch { conn, journal: self, wanted, scope: &scope, stop }.page(from, limit),
            )
        });
        match found {
            Ok(Some((hits, next))) => {
                Ok(TextFound::Page(TextPage { hits, next, state: self.texts_index.state() }))
            }
            Ok(None) => Ok(TextFound::Stopped),
            Err(StoreError::Sqlite(error))
                if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) =>
            {
                Ok(TextFound::Stopped)
            }
            Err(error) => Err(error),
        }
    }
}

/// The sessions that are searched.
enum Scope {
    All,
    /// Few enough to be named.
    Named(Vec<Sid>),
    /// In order.
    Many(Vec<Sid>),
}

impl SqliteJournal {
    /// `None` when no session can match.
    fn scope(&self, wanted: &TextQuery) -> Option<Scope> {
        let catalog = self.catalog();
        if let Some(session) = wanted.session {
            let fits = |sid: &Sid| catalog.is_at(*sid, wanted.agent.as_deref(), wanted.folder.as_deref());
            return catalog.sid_of(session).filter(fits).map(|sid| Scope::Named(vec![sid]));
        }
        if wanted.agent.is_none() && wanted.folder.is_none() {
            return Some(Scope::All);
        }
        let sids = catalog.sids_at(wanted.agent.as_deref(), wanted.folder.as_deref());
        match sids.len() {
            0 => None,
            count if count <= SESSIONS_NAMED_MAX => Some(Scope::Named(sids)),
            _ => Some(Scope::Many(sids)),
        }
    }

    /// The session's id, when it is there and not deleted.
    fn listed(&self, sid: Sid) -> Option<SessionId> {
        self.catalog().facts(sid).filter(|facts| facts.is_listed()).map(|facts| facts.id)
    }
}

struct IndexSearch<'a> {
    conn: &'a Connection,
    journal: &'a SqliteJournal,
    wanted: &'a TextQuery,
    scope: &'a Scope,
    stop: &'a SearchStop,
}

/// The newest matches before a position.
#[derive(Default)]
struct HitWindow {
    /// Newest first.
    found: Vec<(Pos, SessionId, StoredText)>,
    /// Where the next stretch begins; none where there is no more.
    below: Option<Pos>,
}

/// Hits, and where the next page begins; none when the search was stopped.
type GivenPage = Option<(Vec<TextHit>, Option<TextCursor>)>;

impl IndexSearch<'_> {
    fn page(&self, from: Option<&TextCursor>, limit: usize) -> Result<GivenPage, StoreError> {
        let (top, given) = from.map_or((Pos::MAX, 0), |from| (from.top, from.given));
        let Some(HitWindow { found, below }) = self.window(top)? else { return Ok(None) };
        // A stretch that began at the end of the log goes on from its newest hit, whatever is added meanwhile.
        let top = found.first().map_or(top, |(doc, ..)| *doc);
        let given = usize::try_from(given).unwrap_or(usize::MAX);
        let mark = self.wanted.mark();
        let end = given.saturating_add(limit);
        let next = if end < found.len() {
            let given = u32::try_from(end).unwrap_or(u32::MAX);
            Some(TextCursor { top, given, mark })
        } else {
            below.map(|top| TextCursor { top, given: 0, mark })
        };
        let hits = ordered(found, &self.wanted.query).into_iter().skip(given).take(limit);
        Ok(Some((hits.map(|(session, text)| self.hit(session, &text)).collect(), next)))
    }

    fn hit(&self, session: SessionId, text: &StoredText) -> TextHit {
        TextHit {
            session,
            seq: text.seq,
            last_seq: text.last_seq,
            at: Timestamp::from_millis(text.at),
            kind: text.kind,
            snippet: snippet(&text.text, &self.wanted.query),
        }
    }

    fn window(&self, top: Pos) -> Result<Option<HitWindow>, StoreError> {
        let floor = match self.wanted.since {
            Some(since) => first_at(self.conn, since)?,
            None => 0,
        };
        let mut find = self.conn.prepare_cached(
            "SELECT rowid FROM words WHERE words MATCH ?1 AND rowid <= ?2 AND rowid >= ?3 ORDER BY rowid DESC",
        )?;
        let expression = expression(&self.wanted.query, self.scope, self.wanted.kind);
        let mut rows = find.query((expression, top, floor))?;
        let mut window = HitWindow::default();
        let mut scanned = 0;
        while let Some(row) = rows.next()? {
            if self.stop.is_stopped() {
                return Ok(None);
            }
            let doc: Pos = row.get(0)?;
            if window.found.len() == WINDOW || scanned == SCAN_MAX {
                window.below = Some(doc);
                break;
            }
            scanned += 1;
            if let Some(text) = stored(self.conn, doc)?
                && self.is_in_scope(text.sid)
                && let Some(session) = self.journal.listed(text.sid)
            {
                window.found.push((doc, session, text));
            }
        }
        Ok(Some(window))
    }

    fn is_in_scope(&self, sid: Sid) -> bool {
        match self.scope {
            Scope::All | Scope::Named(_) => true,
            Scope::Many(sids) => sids.binary_search(&sid).is_ok(),
        }
    }
}

/// The best first. Among equally good ones the newer comes first.
fn ordered(
    found: Vec<(Pos, SessionId, StoredText)>,
    query: &SearchQuery,
) -> impl IntoIterator<Item = (SessionId, StoredText)> {
    let mut scored: Vec<_> = found
        .into_iter()
        .enumerate()
        .map(|(age, (_, session, text))| {
            let recency = u32::try_from((WINDOW - age.min(WINDOW)) * RECENCY / WINDOW).unwrap_or(0);
            let weight = match text.kind {
                SearchKind::Message => 4,
                SearchKind::Tool => 2,
                SearchKind::Result => 0,
            };
            let score = relevance(&text.text, query).saturating_add(recency).saturating_add(weight);
            (std::cmp::Reverse(score), age, session, text)
        })
        .collect();
    scored.sort_by_key(|(score, age, ..)| (*score, *age));
    scored.into_iter().map(|(_, _, session, text)| (session, text))
}

/// The first document that is not older than a time. Times rise with positions.
fn first_at(conn: &Connection, since: Timestamp) -> Result<Pos, StoreError> {
    let mut find = conn.prepare_cached("SELECT doc, at FROM docs WHERE doc >= ?1 ORDER BY doc LIMIT 1")?;
    let last: Option<Pos> = conn.query_row("SELECT max(doc) FROM docs", [], |row| row.get(0))?;
    let (mut low, mut high) = (0, last.unwrap_or(0).saturating_add(1));
    while low < high {
        let middle = low + (high - low) / 2;
        let found: Option<(Pos, i64)> =
            find.query_row([middle], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        match found {
            Some((doc, at)) if at < since.as_millis() => low = doc + 1,
            Some(_) | None => high = middle,
        }
    }
    Ok(low)
}

/// The query in the words of the index. All that a caller wrote is between quotes, and made of letters and digits.
fn expression(query: &SearchQuery, scope: &Scope, kind: Option<SearchKind>) -> String {
    let mut expression = format!("{{whole parts}} : ({})", joined(query.wanted(), " AND "));
    if let Some(kind) = kind {
        let _ = write!(expression, " AND facets : \"{}\"", kind_facet(kind));
    }
    match scope {
        Scope::All | Scope::Many(_) => {}
        Scope::Named(sids) => {
            let sids: Vec<String> = sids.iter().map(|sid| format!("\"{}\"", session_facet(*sid))).collect();
            let _ = write!(expression, " AND facets : ({})", sids.join(" OR "));
        }
    }
    let unwanted = joined(query.unwanted(), " OR ");
    if !unwanted.is_empty() {
        expression = format!("({expression}) NOT {{whole parts}} : ({unwanted})");
    }
    expression
}

fn joined<'a>(terms: impl Iterator<Item = &'a SearchTerm>, with: &str) -> String {
    terms.map(term).collect::<Vec<_>>().join(with)
}

fn term(term: &SearchTerm) -> String {
    let last = term.pieces.len().saturating_sub(1);
    let pieces = term.pieces.iter().enumerate().map(|(nth, piece)| match piece {
        SearchPiece::Words(words) => {
            let star = if term.prefix && nth == last { " *" } else { "" };
            format!("\"{}\"{star}", words.join(" "))
        }
        SearchPiece::Unspaced(chars) => match chars.as_slice() {
            // Each character begins a pair, or stands alone at the end of its run.
            [one] => format!("\"{one}\" *"),
            chars => {
                let pairs = chars.windows(2).map(|pair| pair.iter().collect::<String>());
                format!("\"{}\"", pairs.collect::<Vec<_>>().join(" "))
            }
        },
    });
    format!("({})", pieces.collect::<Vec<_>>().join(" AND "))
}
