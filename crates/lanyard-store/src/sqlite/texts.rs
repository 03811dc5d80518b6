//! The texts sessions are searched by, in memory from the first search on. A search is then a pass over an array, the
//! same for common and rare words and for words of one letter; before it, nothing is paid for it.

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::collections::HashMap;

use memchr::memmem::Finder;

use crate::error::StoreError;
use crate::sqlite::pool::Pool;
use crate::sqlite::rows::Sid;

#[derive(Default)]
pub(super) struct Texts {
    state: RwLock<State>,
    /// Held while the texts are read, so that it is done once.
    reading: Mutex<()>,
}

#[derive(Default)]
enum State {
    #[default]
    Unread,
    /// Being read from the file; commits meanwhile wait here and are newer.
    Reading(HashMap<Sid, Option<Box<str>>>),
    /// By `sid - 1`; none for a deleted session.
    Read(Vec<Option<Box<str>>>),
}

impl Texts {
    /// Reads the texts unless they were read before.
    pub(super) fn ensure(&self, pool: &Pool) -> Result<(), StoreError> {
        if self.are_read() {
            return Ok(());
        }
        let _alone = self.reading.lock();
        if self.are_read() {
            return Ok(());
        }
        // From here on commits are noted; the reading begins after, so none falls between the two.
        *self.state_mut() = State::Reading(HashMap::new());
        let read = pool.read(|conn| {
            let mut texts = Vec::new();
            let mut all = conn.prepare_cached("SELECT sid, text FROM search")?;
            let mut rows = all.query([])?;
            while let Some(row) = rows.next()? {
                put(&mut texts, row.get(0)?, Some(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?));
            }
            Ok(texts)
        });
        let mut state = self.state_mut();
        match (std::mem::take(&mut *state), read) {
            (State::Reading(newer), Ok(mut texts)) => {
                for (sid, text) in newer {
                    put(&mut texts, sid, text.as_deref());
                }
                *state = State::Read(texts);
                Ok(())
            }
            // Forgotten while it was read: the next search reads them again.
            (State::Unread | State::Read(_), Ok(_)) => Ok(()),
            (_, Err(error)) => Err(error),
        }
    }

    /// Notes the text of a committed session; none when it was deleted.
    pub(super) fn put(&self, sid: Sid, text: impl FnOnce() -> Option<String>) {
        match &mut *self.state_mut() {
            State::Unread => {}
            State::Reading(newer) => {
                newer.insert(sid, text().map(String::into_boxed_str));
            }
            State::Read(texts) => put(texts, sid, text().as_deref()),
        }
    }

    /// Drops the texts in memory, which may differ from the file.
    pub(super) fn forget(&self) {
        *self.state_mut() = State::Unread;
    }

    pub(super) fn look(&self) -> Look<'_> {
        Look(self.state.read())
    }

    fn are_read(&self) -> bool {
        self.look().are_read()
    }

    fn state_mut(&self) -> parking_lot::RwLockWriteGuard<'_, State> {
        self.state.write()
    }
}

/// The texts as they are now.
pub(super) struct Look<'a>(RwLockReadGuard<'a, State>);

impl Look<'_> {
    pub(super) fn are_read(&self) -> bool {
        matches!(*self.0, State::Read(_))
    }

    /// Whether the session's text holds all the words.
    pub(super) fn holds(&self, sid: Sid, words: &[Finder<'_>]) -> bool {
        if words.is_empty() {
            return true;
        }
        let State::Read(texts) = &*self.0 else { return false };
        let text = usize::try_from(sid - 1).ok().and_then(|at| texts.get(at)?.as_deref());
        text.is_some_and(|text| words.iter().all(|word| word.find(text.as_bytes()).is_some()))
    }
}

fn put(texts: &mut Vec<Option<Box<str>>>, sid: Sid, text: Option<&str>) {
    let Some(at) = sid.checked_sub(1).and_then(|at| usize::try_from(at).ok()) else { return };
    if at >= texts.len() {
        texts.resize(at + 1, None);
    }
    texts[at] = text.map(Into::into);
}
