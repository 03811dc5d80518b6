//! Finding sessions: by address, by filter, by state. The catalog says which; the rows say the rest.

use std::collections::{BinaryHeap, HashSet};

use lanyard_core::session::StateName;
use lanyard_core::{Address, SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension};

use crate::card::{Card, words};
use crate::error::StoreError;
use crate::journal::{Directory, FIND_MAX, Found};
use crate::query::{Cursor, Filter, Listing, Row};
use crate::sqlite::SqliteJournal;
use crate::sqlite::catalog::{Facts, Wanted};
use crate::sqlite::plan::holders;
use crate::sqlite::read::{Log, card};
use crate::sqlite::rows::Sid;

/// Sessions whose texts are looked into one by one before the search index is asked.
const TRIED_MAX: usize = 1_000;
/// The shortest text the search index can look up.
const INDEXED_CHARS: usize = 3;

impl Directory for SqliteJournal {
    fn find(&self, address: &Address) -> Result<Vec<Found>, StoreError> {
        let (workspace, plan) = (address.workspace.as_deref(), address.plan.as_deref());
        if let Ok(id) = address.session.parse::<SessionId>() {
            let catalog = self.catalog();
            if let Some((_, facts)) = catalog.of(id) {
                let here = catalog.is_in(facts, workspace, plan);
                return Ok(here
                    .then_some(Found { session: id, deleted: facts.is_deleted() })
                    .into_iter()
                    .collect());
            }
        }
        let sids = self.pool.read(|conn| Ok(holders(conn, &address.session)?))?;
        let catalog = self.catalog();
        let here = sids.iter().filter_map(|&sid| catalog.facts(sid));
        let here: Vec<&Facts> = here.filter(|facts| catalog.is_in(facts, workspace, plan)).collect();
        let found = |facts: &&Facts| Found { session: facts.id, deleted: facts.is_deleted() };
        let live: Vec<Found> =
            here.iter().filter(|facts| facts.is_listed()).map(found).take(FIND_MAX).collect();
        if !live.is_empty() {
            return Ok(live);
        }
        // Only tombstones: of those in one place, the last that had the alias.
        let mut places = HashSet::new();
        Ok(here.iter().filter(|facts| places.insert(facts.place())).map(found).take(FIND_MAX).collect())
    }

    fn alias_taken(
        &self,
        alias: &str,
        workspace: Option<&str>,
        plan: Option<&str>,
    ) -> Result<bool, StoreError> {
        let sids = self.prompt.read(|conn| Ok(holders(conn, alias)?))?;
        let catalog = self.catalog();
        let mut holders = sids.iter().filter_map(|&sid| catalog.facts(sid));
        Ok(holders.any(|facts| facts.is_listed() && catalog.is_beside(facts, workspace, plan)))
    }

    fn list(&self, filter: &Filter, after: Option<&Cursor>, limit: usize) -> Result<Listing, StoreError> {
        let below = after.map_or(Sid::MAX, |cursor| cursor.key);
        let words = words(filter);
        let mut page = Page { filter, limit, rows: Vec::new(), last: None, more: false };
        if limit == 0 {
            return Ok(page.done());
        }
        self.pool.read(|conn| {
            if words.is_empty() {
                self.list_all(conn, &mut page, below)
            } else {
                self.list_found(conn, &mut page, below, &words)
            }
        })?;
        Ok(page.done())
    }

    fn in_state_since(
        &self,
        state: StateName,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<SessionId>, StoreError> {
        // A heap of the longest so far, its top being the one to give way.
        let mut longest = BinaryHeap::new();
        self.survey(|sid, facts| {
            if facts.is_listed() && facts.state == state && facts.since <= before {
                longest.push((facts.since, sid, facts.id));
                if longest.len() > limit {
                    longest.pop();
                }
            }
        });
        Ok(longest.into_sorted_vec().into_iter().map(|(_, _, id)| id).collect())
    }

    fn states(&self) -> Result<Vec<(StateName, u64)>, StoreError> {
        let mut counts = StateName::ALL.map(|state| (state, 0));
        self.survey(|_, facts| {
            if facts.is_listed() {
                counts
                    .iter_mut()
                    .filter(|(state, _)| *state == facts.state)
                    .for_each(|(_, count)| *count += 1);
            }
        });
        Ok(counts.into())
    }

    fn latest_at(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.catalog().latest_at())
    }
}

impl SqliteJournal {
    /// Looks at every session, newest first, without holding up the writer.
    pub(super) fn survey(&self, mut each: impl FnMut(Sid, &Facts)) {
        let mut below = Some(Sid::MAX);
        while let Some(start) = below {
            let catalog = self.catalog();
            let (facts, next) = catalog.before(start);
            facts.for_each(|(sid, facts)| each(sid, facts));
            below = next;
        }
    }

    fn list_all(&self, conn: &Connection, page: &mut Page<'_>, below: Sid) -> Result<(), StoreError> {
        let mut below = Some(below);
        while let Some(start) = below {
            let (sids, next): (Vec<Sid>, _) = {
                let catalog = self.catalog();
                let Some(wanted) = Wanted::compile(&catalog, page.filter) else { return Ok(()) };
                let (facts, next) = catalog.before(start);
                let hits = facts.filter(|(_, facts)| wanted.matches(facts)).map(|(sid, _)| sid);
                // One more than fits tells whether there is a next page.
                let sids: Vec<Sid> = hits.take(page.limit + 1 - page.rows.len()).collect();
                // Rows that changed under the search leave room; then the rest of this chunk is looked at again.
                let next =
                    if sids.len() > page.limit - page.rows.len() { sids.last().copied() } else { next };
                (sids, next)
            };
            for sid in sids {
                if !self.add_row(conn, page, sid)? {
                    return Ok(());
                }
            }
            below = next;
        }
        Ok(())
    }

    fn list_found(
        &self,
        conn: &Connection,
        page: &mut Page<'_>,
        below: Sid,
        words: &[String],
    ) -> Result<(), StoreError> {
        if self.list_tried(conn, page, below, words)? {
            return Ok(());
        }
        // Quoted, so that nothing in them is an operator; a NUL would end the query early.
        let indexed =
            words.iter().filter(|word| word.chars().count() >= INDEXED_CHARS && !word.contains('\0'));
        let query = indexed
            .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
            .collect::<Vec<_>>()
            .join(" AND ");
        let sql = if query.is_empty() {
            "SELECT rowid, text FROM search WHERE ?1 = '' AND rowid < ?2 ORDER BY rowid DESC"
        } else {
            "SELECT rowid, text FROM search WHERE search MATCH ?1 AND rowid < ?2 ORDER BY rowid DESC"
        };
        let mut find = conn.prepare_cached(sql)?;
        let mut rows = find.query((query, below))?;
        while let Some(row) = rows.next()? {
            let sid: Sid = row.get(0)?;
            let wanted = {
                let catalog = self.catalog();
                let Some(wanted) = Wanted::compile(&catalog, page.filter) else { return Ok(()) };
                catalog.facts(sid).is_some_and(|facts| wanted.matches(facts))
            };
            let text = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
            if wanted && words.iter().all(|word| text.contains(word)) && !self.add_row(conn, page, sid)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Looks into the texts of the newest sessions that fit the rest of the filter. That settles it when there are few
    /// of them or the words are common; answers whether it did. Otherwise the page is as it was.
    fn list_tried(
        &self,
        conn: &Connection,
        page: &mut Page<'_>,
        below: Sid,
        words: &[String],
    ) -> Result<bool, StoreError> {
        let mut fitting = Vec::new();
        let mut below = Some(below);
        while let Some(start) = below.take_if(|_| fitting.len() <= TRIED_MAX) {
            let catalog = self.catalog();
            let Some(wanted) = Wanted::compile(&catalog, page.filter) else { return Ok(true) };
            let (facts, next) = catalog.before(start);
            let hits = facts.filter(|(_, facts)| wanted.matches(facts)).map(|(sid, _)| sid);
            fitting.extend(hits.take(TRIED_MAX + 1 - fitting.len()));
            below = next;
        }
        let all = fitting.len() <= TRIED_MAX;
        let mut get = conn.prepare_cached("SELECT text FROM search WHERE rowid = ?1")?;
        let mut found = Vec::new();
        for sid in fitting {
            let text: Option<String> = get.query_row([sid], |row| row.get(0)).optional()?;
            if text.is_some_and(|text| words.iter().all(|word| text.contains(word))) {
                found.push(sid);
            }
            if found.len() > page.limit {
                break;
            }
        }
        let settled = all || found.len() > page.limit;
        if settled {
            for sid in found {
                if !self.add_row(conn, page, sid)? {
                    break;
                }
            }
            // Rows that changed under the search may have left room; there is more below them all the same.
            page.more |= !all;
        }
        Ok(settled)
    }

    /// Adds a session's row to the page if it is still what the filter wants. Answers whether there is room for more.
    fn add_row(&self, conn: &Connection, page: &mut Page<'_>, sid: Sid) -> Result<bool, StoreError> {
        let (log, level) = {
            let catalog = self.catalog();
            let Some(facts) = catalog.facts(sid) else { return Ok(true) };
            (Log { id: facts.id, sid, head: facts.head }, catalog.lineage(facts.id).level())
        };
        let Some(card) = card(conn, &log)? else { return Ok(true) };
        Ok(page
            .add(sid, card, |card| card.into_row(level, (log.head.seq, Timestamp::from_millis(log.head.at)))))
    }
}

/// A page while it fills.
struct Page<'a> {
    filter: &'a Filter,
    limit: usize,
    rows: Vec<Row>,
    last: Option<Sid>,
    more: bool,
}

impl Page<'_> {
    fn add(&mut self, sid: Sid, card: Card, row: impl FnOnce(Card) -> Row) -> bool {
        if !card.matches(self.filter) {
            return true;
        }
        if self.rows.len() >= self.limit {
            self.more = true;
            return false;
        }
        self.rows.push(row(card));
        self.last = Some(sid);
        true
    }

    fn done(self) -> Listing {
        let next = self.last.filter(|_| self.more).map(|key| Cursor { key, filter: self.filter.mark() });
        Listing { rows: self.rows, next }
    }
}
