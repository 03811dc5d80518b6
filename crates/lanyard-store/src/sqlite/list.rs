//! Finding sessions: by address, by filter, by state. The catalog says which; the rows say the rest.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use lanyard_core::journal::Row;
use lanyard_core::naming::IdPart;
use lanyard_core::session::{OperatorState, StateName};
use lanyard_core::{Address, SessionId, Timestamp};
use memchr::memmem::Finder;
use rusqlite::Connection;

use crate::card::{Card, Kin, words};
use crate::error::StoreError;
use crate::journal::{Directory, FIND_MAX, Found};
use crate::query::{Cursor, Filter, Listing, Rank, Sort};
use crate::sqlite::SqliteJournal;
use crate::sqlite::catalog::{Facts, Wanted};
use crate::sqlite::plan::holders;
use crate::sqlite::read::{Log, card};
use crate::sqlite::rows::Sid;

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

    fn ids_like(&self, part: &IdPart, limit: usize) -> Result<Vec<SessionId>, StoreError> {
        let mut found = Vec::new();
        if part.is_of(SessionId::PREFIX) {
            self.survey(|_, facts| {
                if found.len() < limit && part.matches(facts.id.as_u128()) && facts.is_listed() {
                    found.push(facts.id);
                }
            });
        }
        Ok(found)
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
        let words: Vec<Finder<'_>> = words.iter().map(Finder::new).collect();
        loop {
            if !words.is_empty() {
                self.texts.ensure(&self.pool)?;
            }
            let mut page = Page { filter, limit, rows: Vec::new(), last: None, more: false, place: None };
            // The texts are forgotten when the journal recovers; then the search begins again.
            let read = |conn: &Connection| {
                if filter.is_ordered() {
                    self.list_in_order(conn, &mut page, after, &words)
                } else {
                    self.list_all(conn, &mut page, below, &words)
                }
            };
            if limit == 0 || self.pool.read(read)? {
                return Ok(page.done());
            }
        }
    }

    fn rows(&self, sessions: &[SessionId], filter: &Filter) -> Result<Vec<Row>, StoreError> {
        let words = words(filter);
        let words: Vec<Finder<'_>> = words.iter().map(Finder::new).collect();
        let mut page =
            Page { filter, limit: sessions.len(), rows: Vec::new(), last: None, more: false, place: None };
        let sids: Vec<Sid> = loop {
            if !words.is_empty() {
                self.texts.ensure(&self.pool)?;
            }
            let catalog = self.catalog();
            let Some(wanted) = Wanted::compile(&catalog, filter) else { return Ok(Vec::new()) };
            let texts = self.texts.look();
            // The texts are forgotten when the journal recovers; then they are read again.
            if words.is_empty() || texts.are_read() {
                let known = sessions.iter().filter_map(|id| catalog.of(*id));
                let hits = known.filter(|(sid, facts)| wanted.matches(facts) && texts.holds(*sid, &words));
                break hits.map(|(sid, _)| sid).collect();
            }
        };
        self.pool
            .read(|conn| sids.iter().try_for_each(|sid| self.add_row(conn, &mut page, *sid).map(|_| ())))?;
        Ok(page.rows)
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
        Ok(self.catalog().states().collect())
    }

    fn waits_below(&self, session: SessionId) -> Result<bool, StoreError> {
        Ok(self.catalog().waits_below(session))
    }

    fn operator_states(&self) -> Result<Vec<(OperatorState, u64)>, StoreError> {
        Ok(self.catalog().operator_states().collect())
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

    /// Fills the page. Answers whether it could: not without the texts, when words are looked for.
    /// Another order than that of birth: all that match are put in order, and a cursor is a place in it.
    fn list_in_order(
        &self,
        conn: &Connection,
        page: &mut Page<'_>,
        after: Option<&Cursor>,
        words: &[Finder<'_>],
    ) -> Result<bool, StoreError> {
        let skip = after.map_or(0, |cursor| usize::try_from(cursor.key).unwrap_or(0));
        let mut hits = Vec::new();
        let mut below = Some(Sid::MAX);
        while let Some(start) = below {
            let catalog = self.catalog();
            let Some(wanted) = Wanted::compile(&catalog, page.filter) else { return Ok(true) };
            let texts = self.texts.look();
            if !words.is_empty() && !texts.are_read() {
                return Ok(false);
            }
            let (facts, next) = catalog.before(start);
            let found = facts.filter(|(sid, facts)| wanted.matches(facts) && texts.holds(*sid, words));
            hits.extend(found.map(|(sid, facts)| {
                let pressing = wanted.pressing(facts).filter(|_| page.filter.sort == Sort::Attention);
                (Rank::new(pressing, facts.active_at()), Reverse(sid))
            }));
            below = next;
        }
        hits.sort_unstable();
        for (place, (_, Reverse(sid))) in hits.into_iter().enumerate().skip(skip) {
            page.place = Some(i64::try_from(place).unwrap_or(i64::MAX));
            if !self.add_row(conn, page, sid)? {
                break;
            }
        }
        Ok(true)
    }

    fn list_all(
        &self,
        conn: &Connection,
        page: &mut Page<'_>,
        below: Sid,
        words: &[Finder<'_>],
    ) -> Result<bool, StoreError> {
        let mut below = Some(below);
        while let Some(start) = below {
            let (sids, next): (Vec<Sid>, _) = {
                let catalog = self.catalog();
                let Some(wanted) = Wanted::compile(&catalog, page.filter) else { return Ok(true) };
                let (facts, next) = catalog.before(start);
                let texts = self.texts.look();
                if !words.is_empty() && !texts.are_read() {
                    return Ok(false);
                }
                let hits = facts.filter(|(sid, facts)| wanted.matches(facts) && texts.holds(*sid, words));
                let hits = hits.map(|(sid, _)| sid);
                // One more than fits tells whether there is a next page.
                let sids: Vec<Sid> = hits.take(page.limit + 1 - page.rows.len()).collect();
                // Rows that changed under the search leave room; then the rest of this chunk is looked at again.
                let next =
                    if sids.len() > page.limit - page.rows.len() { sids.last().copied() } else { next };
                (sids, next)
            };
            for sid in sids {
                if !self.add_row(conn, page, sid)? {
                    return Ok(true);
                }
            }
            below = next;
        }
        Ok(true)
    }

    /// Adds a session's row to the page if it is still what the filter wants. Answers whether there is room for more.
    fn add_row(&self, conn: &Connection, page: &mut Page<'_>, sid: Sid) -> Result<bool, StoreError> {
        let (log, kin) = {
            let catalog = self.catalog();
            let Some(facts) = catalog.facts(sid) else { return Ok(true) };
            let level = catalog.lineage(facts.id).level();
            let kin = Kin { level, waits_below: catalog.waits_below(facts.id) };
            (Log { id: facts.id, sid, head: facts.head }, kin)
        };
        let Some(card) = card(conn, &log)? else { return Ok(true) };
        Ok(page.add(sid, card, (kin, (log.head.seq, Timestamp::from_millis(log.head.at)))))
    }
}

/// A page while it fills.
struct Page<'a> {
    filter: &'a Filter,
    limit: usize,
    rows: Vec<Row>,
    last: Option<Sid>,
    more: bool,
    /// Position of the row in an order other than that of creation.
    place: Option<i64>,
}

impl Page<'_> {
    fn add(&mut self, sid: Sid, card: Card, (kin, head): (Kin, (u64, Timestamp))) -> bool {
        let pressing = !self.filter.attention || !card.attention(kin, head, self.filter).is_empty();
        if !(pressing && card.matches(self.filter)) {
            return true;
        }
        if self.rows.len() >= self.limit {
            self.more = true;
            return false;
        }
        self.rows.push(card.into_row(kin, head, self.filter));
        self.last = Some(self.place.map_or(sid, |place| place + 1));
        true
    }

    fn done(self) -> Listing {
        let next = self.last.filter(|_| self.more).map(|key| Cursor { key, filter: self.filter.mark() });
        Listing { rows: self.rows, next }
    }
}
