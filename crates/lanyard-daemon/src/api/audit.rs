//! Who stopped, guided or answered what, when and by which channel, read from the log itself: what
//! is not there was not done, and what cannot be read is counted. Changes to anything but sessions come from their own
//! log.
//!
//! The cost: logs are read from their ends until they are older than `since` or have given a page. One answer looks at
//! no more than [`SESSIONS_MAX`] sessions and [`EVENTS_MAX`] events, and says so when that was not all.

mod entry;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use lanyard_api::types::{AuditEntry, AuditKind, AuditPage};
use lanyard_core::{Address, SessionId, Timestamp};
use lanyard_store::{Filter, Store, StoreError};
use serde::Deserialize;

use crate::api::App;
use crate::api::context::{on_disk, query};
use crate::api::guard::resolve;
use crate::api::mutations;
use crate::problem::Problem;
use entry::read;

/// Entries of one page.
pub(super) const PAGE_MAX: usize = 1_000;
const PAGE_DEFAULT: usize = 100;
/// Sessions one answer looks at, and how many are listed at once.
const SESSIONS_MAX: usize = 10_000;
const SESSIONS_STEP: usize = 1_000;
/// Events one answer looks at: about a second's work.
const EVENTS_MAX: usize = 200_000;
/// Events read at once.
const EVENTS_STEP: u64 = 256;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AuditQuery {
    session: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    kind: Option<AuditKind>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// What is looked for.
#[derive(Debug, Clone)]
struct Wanted {
    session: Option<SessionId>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    kind: Option<AuditKind>,
    limit: usize,
    now: Timestamp,
    /// Only what is older than this.
    before: Option<AuditPosition>,
}

/// In a cursor, where a session's id would be.
const NO_SESSION: &str = "-";

/// Where an entry stands among all: by time, then by session, then by its place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AuditPosition(i64, Option<SessionId>, u64);

impl AuditPosition {
    fn of(entry: &AuditEntry) -> Self {
        Self(entry.at.as_millis(), entry.session, entry.seq)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let at = parts.next()?.parse().ok()?;
        let session = match parts.next()? {
            NO_SESSION => None,
            session => Some(session.parse().ok()?),
        };
        let seq = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(Self(at, session, seq))
    }
}

impl std::fmt::Display for AuditPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.1 {
            Some(session) => write!(f, "{}.{session}.{}", self.0, self.2),
            None => write!(f, "{}.{NO_SESSION}.{}", self.0, self.2),
        }
    }
}

pub(super) async fn list(State(app): State<Arc<App>>, uri: Uri) -> Result<Json<AuditPage>, Problem> {
    let query: AuditQuery = query(&uri)?;
    let limit = query.limit.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&limit) {
        let title = format!("`limit` is {limit}");
        return Err(Problem::bad_request("query_invalid", title, format!("use 1 to {PAGE_MAX}")));
    }
    let before = match &query.cursor {
        None => None,
        Some(text) => Some(AuditPosition::parse(text).ok_or_else(|| {
            Problem::bad_request(
                "cursor_unreadable",
                "the cursor cannot be read",
                "start again without a cursor",
            )
        })?),
    };
    let session = match query.session {
        Some(session) => Some(resolve(&app, Address::of(session)).await?),
        None => None,
    };
    let now = app.clock.now();
    let wanted =
        Wanted { session, since: query.since, until: query.until, kind: query.kind, limit, now, before };
    Ok(Json(on_disk(&app, move |store| page(store, &wanted)).await?))
}

/// The newest entries that are wanted, of all sessions that can have some.
fn page(store: &dyn Store, wanted: &Wanted) -> Result<AuditPage, StoreError> {
    let mut look = Look { room: EVENTS_MAX, damaged: 0, truncated: false, entries: Vec::new() };
    if let Some(session) = wanted.session {
        look.at(store, session, wanted)?;
        return Ok(look.page(wanted.limit));
    }
    look.at_changes(store, wanted)?;
    if wanted.kind == Some(AuditKind::Change) {
        return Ok(look.page(wanted.limit));
    }
    let mut seen = 0;
    let mut cursor = None;
    loop {
        let listing = store.list(&Filter::default(), cursor.as_ref(), SESSIONS_STEP)?;
        seen += listing.rows.len();
        for row in &listing.rows {
            let too_old = wanted.since.is_some_and(|since| row.last_activity_at < since);
            let too_new = wanted.until.is_some_and(|until| row.created_at > until);
            if !too_old && !too_new {
                look.at(store, row.id, wanted)?;
            }
        }
        cursor = listing.next;
        if cursor.is_none() || seen >= SESSIONS_MAX {
            break;
        }
    }
    look.truncated |= cursor.is_some();
    Ok(look.page(wanted.limit))
}

/// What one answer has found so far.
struct Look {
    /// Events that may still be looked at.
    room: usize,
    damaged: u64,
    truncated: bool,
    entries: Vec<AuditEntry>,
}

impl Look {
    /// Reads one session's log from its end.
    fn at(&mut self, store: &dyn Store, session: SessionId, wanted: &Wanted) -> Result<(), StoreError> {
        let mut found = 0;
        let mut end = store.events(session, 0, 0)?.head;
        // One more than fits, to know that there are more.
        while end > 0 && found <= wanted.limit {
            if self.room == 0 {
                self.truncated = true;
                return Ok(());
            }
            let after = end.saturating_sub(EVENTS_STEP);
            let step = usize::try_from(end - after).unwrap_or(usize::MAX);
            self.room = self.room.saturating_sub(step);
            for event in store.events(session, after, step)?.events.iter().rev() {
                let Ok(body) = &event.body else {
                    self.damaged += 1;
                    continue;
                };
                let Some(entry) = read(body) else { continue };
                if wanted.since.is_some_and(|since| entry.at < since) {
                    return Ok(());
                }
                if found <= wanted.limit && wanted.takes(&entry) {
                    found += 1;
                    self.entries.push(entry);
                }
            }
            end = after;
        }
        Ok(())
    }

    /// Reads the changes that are in no session's log.
    fn at_changes(&mut self, store: &dyn Store, wanted: &Wanted) -> Result<(), StoreError> {
        if wanted.kind.is_some_and(|kind| kind != AuditKind::Change) {
            return Ok(());
        }
        let mut found = 0;
        let span = (wanted.since, wanted.until.unwrap_or(wanted.now));
        mutations::read(store, span, |mutation, serial| {
            let entry = entry::of_change(mutation, serial);
            if wanted.takes(&entry) {
                found += 1;
                self.entries.push(entry);
            }
            found > wanted.limit
        })
    }

    fn page(mut self, limit: usize) -> AuditPage {
        self.entries.sort_by_key(|entry| std::cmp::Reverse(AuditPosition::of(entry)));
        let more = self.entries.len() > limit;
        self.entries.truncate(limit);
        let last = self.entries.last().filter(|_| more);
        AuditPage {
            next: last.map(|entry| AuditPosition::of(entry).to_string()),
            entries: self.entries,
            truncated: self.truncated,
            damaged: self.damaged,
        }
    }
}

impl Wanted {
    fn takes(&self, entry: &AuditEntry) -> bool {
        self.kind.is_none_or(|kind| kind == entry.kind)
            && self.until.is_none_or(|until| entry.at <= until)
            && self.before.is_none_or(|before| AuditPosition::of(entry) < before)
    }
}
