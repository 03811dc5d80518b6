//! The contract for memory: entries with their origin, found by their words. Permissions are checked elsewhere.

use lanyard_core::memory::{MemoryEntry, MemoryScope, Retention, Tags, Where};
use lanyard_core::{MemoryId, SessionId, Timestamp};

use crate::error::StoreError;
use crate::journal::Put;

/// Words of a query that are looked for; the rest is not.
pub(crate) const WORDS_MAX: usize = 32;

/// Entries of memory. All calls block. An acknowledged write is on disk.
pub trait Memories: Send + Sync {
    /// A damaged one is an error.
    fn memory(&self, id: MemoryId) -> Result<Option<MemoryEntry>, StoreError>;

    /// The one at that place in a workspace ([`MemoryEntry::key`]). A damaged one is an error.
    fn memory_at(&self, workspace: &str, key: &str) -> Result<Option<MemoryEntry>, StoreError>;

    /// Entries that match the whole filter, newest first, older than `before` only. At most `limit`; fewer only when
    /// there are no more. A damaged entry is left out and reported by `check`.
    fn memories(
        &self,
        filter: &MemoryFilter,
        before: Option<MemoryId>,
        limit: usize,
    ) -> Result<Vec<MemoryEntry>, StoreError>;

    /// Entries that match the filter and contain the words of the query, best first: all of its words or, where no
    /// entry has all, any of them. Every text is a valid query; one without words finds nothing.
    fn search_memories(
        &self,
        filter: &MemoryFilter,
        query: &str,
        limit: usize,
    ) -> Result<Vec<MemoryEntry>, StoreError>;

    /// Writes each entry whose place still has the version it is `from`, 0 for none, and whose id is nowhere else. All
    /// that are written are written together; each has its answer.
    fn put_memories(&self, writings: &[Writing]) -> Result<Vec<Put>, StoreError>;

    /// Removes them: the entries, their words and their vectors. Answers how many there were.
    fn forget_memories(&self, ids: &[MemoryId]) -> Result<usize, StoreError>;

    /// Number of entries that match the filter.
    fn count_memories(&self, filter: &MemoryFilter) -> Result<u64, StoreError>;
}

/// Upkeep of entries, in the background.
pub trait MemoryUpkeep: Send + Sync {
    /// Entries of that retention which were written last before `before`, oldest first.
    fn expired_memories(
        &self,
        retention: Retention,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<MemoryId>, StoreError>;

    /// Sessions that have memory of their own, in order, after `after`.
    fn memory_sessions(&self, after: Option<SessionId>, limit: usize) -> Result<Vec<SessionId>, StoreError>;

    /// Entries that have no vector of this model yet.
    fn without_vector(&self, model: &str, limit: usize) -> Result<Vec<MemoryEntry>, StoreError>;

    /// Keeps the vectors of entries that still have the version the vector was made of.
    fn put_vectors(&self, model: &str, vectors: &[(MemoryId, u64, Vec<f32>)]) -> Result<(), StoreError>;

    /// The nearest entries by vector among the newest `among` matching ones, best first.
    fn nearest_memories(
        &self,
        filter: &MemoryFilter,
        to: (&str, &[f32]),
        among: usize,
        limit: usize,
    ) -> Result<Vec<MemoryEntry>, StoreError>;
}

/// An entry on its way, and the version of what it takes the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    pub entry: MemoryEntry,
    /// 0 when there must be none.
    pub from: u64,
}

/// Conditions, all of which hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryFilter {
    pub store: Option<Where>,
    pub scope: Option<MemoryScope>,
    pub workspace: Option<String>,
    pub owner: Option<String>,
    pub plan: Option<String>,
    pub session: Option<SessionId>,
    /// The entry has each of them.
    pub tags: Tags,
    /// Only what this one may see.
    pub seen_by: Option<Viewer>,
}

/// The entries that a caller can see: long-term memory of a workspace, an owner and a plan, and the memory of some
/// sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Viewer {
    pub workspace: String,
    pub owner: String,
    pub plan: Option<String>,
    /// Sessions whose own memory it sees.
    pub sessions: Vec<SessionId>,
    /// Whether it sees long-term memory.
    pub long_term: bool,
}

impl MemoryFilter {
    /// The one truth about a filter; a database only narrows down.
    #[must_use]
    pub fn matches(&self, entry: &MemoryEntry) -> bool {
        fn is<T: PartialEq + ?Sized>(wanted: Option<&T>, found: Option<&T>) -> bool {
            wanted.is_none() || wanted == found
        }
        is(self.store.as_ref(), Some(&entry.store))
            && is(self.scope.as_ref(), Some(&entry.scope))
            && is(self.workspace.as_deref(), Some(entry.workspace.as_str()))
            && is(self.owner.as_deref(), Some(entry.owner.as_str()))
            && is(self.plan.as_deref(), entry.plan.as_deref())
            && is(self.session.as_ref(), entry.session.as_ref())
            && self.tags.is_subset(&entry.tags)
            && self.seen_by.as_ref().is_none_or(|viewer| viewer.sees(entry))
    }
}

impl Viewer {
    #[must_use]
    pub fn sees(&self, entry: &MemoryEntry) -> bool {
        let here = self.long_term && entry.workspace == self.workspace && entry.owner == self.owner;
        match entry.scope {
            MemoryScope::Session => entry.session.is_some_and(|session| self.sessions.contains(&session)),
            MemoryScope::Workspace => here,
            MemoryScope::Plan => here && entry.plan.is_some() && entry.plan == self.plan,
        }
    }
}

/// The words of a query: parts without a letter or digit do not count.
pub(crate) fn words(query: &str) -> Vec<&str> {
    let words = query.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric));
    words.take(WORDS_MAX).collect()
}
