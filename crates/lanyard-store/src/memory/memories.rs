//! Entries of memory, kept in memory.

use std::collections::BTreeMap;

use lanyard_core::memory::rank::likeness;
use lanyard_core::memory::{Entry, Retention, Where};
use lanyard_core::{MemoryId, SessionId, Timestamp};

use crate::error::{AppendError, StoreError};
use crate::journal::Put;
use crate::memories::{Memories, MemoryFilter, MemoryUpkeep, Writing, words};
use crate::memory::{Kept, MemoryJournal};

#[derive(Debug, Default, Clone)]
pub(super) struct Remembered {
    entries: BTreeMap<MemoryId, Entry>,
    vectors: BTreeMap<MemoryId, (String, Vec<f32>)>,
}

impl Remembered {
    fn at(&self, workspace: &str, key: &str) -> Option<&Entry> {
        self.entries.values().find(|entry| entry.workspace == workspace && entry.key() == key)
    }

    fn put(&mut self, Writing { entry, from }: &Writing) -> Put {
        let held = self.at(&entry.workspace, &entry.key()).map(|held| (held.id, held.version));
        let version = held.map_or(0, |(_, version)| version);
        if version != *from {
            return Put::Moved(version);
        }
        if let Some(other) = self.entries.get(&entry.id)
            && held.is_none_or(|(id, _)| id != entry.id)
        {
            return Put::Moved(other.version);
        }
        if let Some((id, _)) = held {
            self.forget(id);
        }
        self.entries.insert(entry.id, entry.clone());
        Put::Kept(entry.version)
    }

    fn forget(&mut self, id: MemoryId) -> bool {
        self.vectors.remove(&id);
        self.entries.remove(&id).is_some()
    }
}

impl Kept {
    fn remember<T>(&mut self, change: impl FnOnce(&mut Remembered) -> T) -> Result<T, StoreError> {
        match self.writable() {
            Ok(()) => Ok(change(&mut self.remembered)),
            Err(AppendError::Unavailable(error)) => Err(error),
            Err(AppendError::Contradiction(what)) => Err(StoreError::Damaged(what)),
        }
    }
}

/// The words of a text as an index has them, in one case.
fn tokens(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

fn holds(entry: &Entry, word: &str) -> bool {
    let wanted = tokens(word);
    let within = |text: &str| {
        let found = tokens(text);
        found.windows(wanted.len().max(1)).any(|window| window == wanted)
    };
    within(&entry.text)
        || entry.name.as_deref().is_some_and(within)
        || entry.tags.iter().any(|tag| within(tag.as_str()))
}

impl Memories for MemoryJournal {
    fn memory(&self, id: MemoryId) -> Result<Option<Entry>, StoreError> {
        Ok(self.kept().remembered.entries.get(&id).cloned())
    }

    fn memory_at(&self, workspace: &str, key: &str) -> Result<Option<Entry>, StoreError> {
        Ok(self.kept().remembered.at(workspace, key).cloned())
    }

    fn memories(
        &self,
        filter: &MemoryFilter,
        before: Option<MemoryId>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let kept = self.kept();
        let older = kept.remembered.entries.values().rev();
        let older = older.filter(|entry| before.is_none_or(|before| entry.id < before));
        Ok(older.filter(|entry| filter.matches(entry)).take(limit).cloned().collect())
    }

    fn search_memories(
        &self,
        filter: &MemoryFilter,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let kept = self.kept();
        let words = words(query);
        let count = |entry: &Entry| words.iter().filter(|word| holds(entry, word)).count();
        let seen = kept.remembered.entries.values().filter(|entry| filter.matches(entry));
        let mut found: Vec<(usize, &Entry)> = seen.map(|entry| (count(entry), entry)).collect();
        found.retain(|(count, _)| *count > 0);
        if found.iter().any(|(count, _)| *count == words.len()) {
            found.retain(|(count, _)| *count == words.len());
        }
        found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        Ok(found.into_iter().take(limit).map(|(_, entry)| entry.clone()).collect())
    }

    fn put_memories(&self, writings: &[Writing]) -> Result<Vec<Put>, StoreError> {
        self.kept().remember(|held| writings.iter().map(|writing| held.put(writing)).collect())
    }

    fn forget_memories(&self, ids: &[MemoryId]) -> Result<usize, StoreError> {
        self.kept().remember(|held| ids.iter().filter(|id| held.forget(**id)).count())
    }

    fn count_memories(&self, filter: &MemoryFilter) -> Result<u64, StoreError> {
        Ok(self.kept().remembered.entries.values().filter(|entry| filter.matches(entry)).count() as u64)
    }
}

impl MemoryUpkeep for MemoryJournal {
    fn expired_memories(
        &self,
        retention: Retention,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<MemoryId>, StoreError> {
        let kept = self.kept();
        let old = kept.remembered.entries.values().filter(|entry| entry.at < before);
        let mut old: Vec<&Entry> = old.filter(|entry| entry.retention() == retention).collect();
        old.sort_by_key(|entry| entry.at);
        Ok(old.into_iter().take(limit).map(|entry| entry.id).collect())
    }

    fn memory_sessions(&self, after: Option<SessionId>, limit: usize) -> Result<Vec<SessionId>, StoreError> {
        let kept = self.kept();
        let own = kept.remembered.entries.values().filter(|entry| entry.store == Where::Session);
        let mut sessions: Vec<SessionId> = own.filter_map(|entry| entry.session).collect();
        sessions.sort_unstable();
        sessions.dedup();
        sessions.retain(|session| after.is_none_or(|after| *session > after));
        sessions.truncate(limit);
        Ok(sessions)
    }

    fn without_vector(&self, model: &str, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let kept = self.kept();
        let held = &kept.remembered;
        let bare = |entry: &&Entry| held.vectors.get(&entry.id).is_none_or(|(of, _)| of != model);
        Ok(held.entries.values().filter(bare).take(limit).cloned().collect())
    }

    fn put_vectors(&self, model: &str, vectors: &[(MemoryId, u64, Vec<f32>)]) -> Result<(), StoreError> {
        self.kept().remember(|held| {
            for (id, version, vector) in vectors {
                if held.entries.get(id).is_some_and(|entry| entry.version == *version) {
                    held.vectors.insert(*id, (model.to_owned(), vector.clone()));
                }
            }
        })
    }

    fn nearest_memories(
        &self,
        filter: &MemoryFilter,
        (model, vector): (&str, &[f32]),
        among: usize,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let kept = self.kept();
        let held = &kept.remembered;
        let seen = held.vectors.iter().rev().filter(|(_, (of, _))| of == model);
        let seen = seen.filter_map(|(id, (_, found))| Some((held.entries.get(id)?, likeness(found, vector))));
        let mut near: Vec<(&Entry, f32)> =
            seen.filter(|(entry, _)| filter.matches(entry)).take(among).collect();
        near.retain(|(_, likeness)| *likeness > 0.0);
        near.sort_by(|one, other| other.1.total_cmp(&one.1));
        Ok(near.into_iter().take(limit).map(|(entry, _)| entry.clone()).collect())
    }
}
