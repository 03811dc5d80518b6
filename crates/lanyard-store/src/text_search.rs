//! The contract for full-text search over the logs of all sessions. The index is a projection that runs behind the log: an
//! append never waits for it, and it can be made again from the log at any time.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use lanyard_core::search::{SearchFilters, SearchKind, SearchQuery, Snippet};
use lanyard_core::{SessionId, Timestamp};
use parking_lot::Mutex;

use crate::error::StoreError;
use crate::query::CursorError;

/// Finding texts in logs.
pub trait TextSearch: Send + Sync {
    /// Takes up to `limit` events behind the index's position into it, in one durable step. Callers call it until
    /// [`IndexState::is_complete`]; after a kill the next call goes on where the last step ended.
    fn index_some(&self, limit: usize) -> Result<IndexState, StoreError>;

    /// How far the index has come. Reads two numbers from memory once the index is open.
    fn index_state(&self) -> Result<IndexState, StoreError>;

    /// A page of texts that have all words of the query, in stretches of the newest [`WINDOW`] that match; within a stretch
    /// the best come first. A page may hold fewer than `limit` although there is a next one. Sessions that are deleted are
    /// never in it. `stop` ends the search early from another thread; the answer then says so.
    fn search_texts(
        &self,
        wanted: &TextQuery,
        from: Option<&TextCursor>,
        limit: usize,
        stop: &SearchStop,
    ) -> Result<TextFound, StoreError>;
}

/// Matching texts that are compared with each other for their order.
pub const WINDOW: usize = 200;

/// What is looked for, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextQuery {
    /// Its filters are not looked at here.
    pub query: SearchQuery,
    pub session: Option<SessionId>,
    /// The name of the agent that has the session now.
    pub agent: Option<String>,
    /// A folder by its whole path or its last parts; sessions in it and below.
    pub folder: Option<String>,
    pub kind: Option<SearchKind>,
    pub since: Option<Timestamp>,
}

/// How far an index has come in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexState {
    /// The position up to which events are in the index.
    pub indexed: u64,
    /// The last position of the log.
    pub end: u64,
}

impl IndexState {
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.indexed >= self.end
    }
}

/// The answer to a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextFound {
    Page(TextPage),
    /// It was told to stop before it had a page.
    Stopped,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextPage {
    pub hits: Vec<TextHit>,
    /// Start of the next page; none after the last page.
    pub next: Option<TextCursor>,
    pub state: IndexState,
}

/// A text that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextHit {
    pub session: SessionId,
    /// The first and the last event of the text.
    pub seq: u64,
    pub last_seq: u64,
    pub at: Timestamp,
    pub kind: SearchKind,
    pub snippet: Snippet,
}

/// A place among the hits of one query. With another query it is refused, not silently wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextCursor {
    /// Position of the newest text of the stretch.
    pub(crate) top: i64,
    /// Hits of the stretch that were given before.
    pub(crate) given: u32,
    pub(crate) mark: u32,
}

impl TextCursor {
    /// Reads a cursor a client sent back.
    pub fn parse(text: &str, wanted: &TextQuery) -> Result<Self, CursorError> {
        let mut parts = text.split('.');
        let mut part = || parts.next().ok_or(CursorError::Unreadable);
        let (top, given, mark) = (part()?, part()?, part()?);
        let top = i64::from_str_radix(top, 16).map_err(|_| CursorError::Unreadable)?;
        let given = u32::from_str_radix(given, 16).map_err(|_| CursorError::Unreadable)?;
        let mark = u32::from_str_radix(mark, 16).map_err(|_| CursorError::Unreadable)?;
        if parts.next().is_some() {
            return Err(CursorError::Unreadable);
        }
        if mark != wanted.mark() {
            return Err(CursorError::OtherFilter);
        }
        Ok(Self { top, given, mark })
    }
}

impl fmt::Display for TextCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{:x}.{:08x}", self.top, self.given, self.mark)
    }
}

impl TextQuery {
    /// A fingerprint of the conditions. A span before now moves with the clock, so only its presence counts.
    pub(crate) fn mark(&self) -> u32 {
        let mut steady = self.clone();
        steady.since = self.since.map(|_| Timestamp::from_millis(0));
        steady.query.filters = SearchFilters::default();
        crc32fast::hash(format!("{steady:?}").as_bytes())
    }
}

/// Ends a search from another thread.
#[derive(Default)]
pub struct SearchStop {
    stopped: AtomicBool,
    /// Interrupts what the store does at the moment.
    interrupt: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl SearchStop {
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        if let Some(interrupt) = &*self.interrupt.lock() {
            interrupt();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Runs `work`, which `interrupt` can cut short.
    pub(crate) fn during<T>(&self, interrupt: impl Fn() + Send + 'static, work: impl FnOnce() -> T) -> T {
        *self.interrupt.lock() = Some(Box::new(interrupt));
        let done = work();
        // From here on the connection may serve another search.
        *self.interrupt.lock() = None;
        done
    }
}

impl fmt::Debug for SearchStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchStop").field("stopped", &self.stopped).finish_non_exhaustive()
    }
}
