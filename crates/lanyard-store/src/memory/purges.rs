//! Purging logs that are kept in memory: the same steps, without a file to wipe.

use std::path::Path;

use lanyard_core::SessionId;

use crate::backups::Backups;
use crate::error::StoreError;
use crate::journal::{Report, StoredEvent};
use crate::memory::{Kept, MemoryJournal, Stored};
use crate::purges::{JournalSize, LAST_WORDS, PurgeStage, PurgeStep, Purges, Tombstone, WipeStep};

impl Kept {
    /// Sessions that have a log.
    pub(super) fn logs(&self) -> impl Iterator<Item = &Stored> {
        self.sessions.iter().filter(|stored| stored.stone.is_none())
    }

    fn stones(&self) -> impl Iterator<Item = &Tombstone> {
        self.sessions.iter().filter_map(|stored| stored.stone.as_ref())
    }
}

impl Stored {
    /// Puts the tombstone in the place of everything but the log.
    fn bury(&mut self) {
        let from = self.head().saturating_sub(LAST_WORDS);
        let last: Vec<StoredEvent> = (1..)
            .zip(&self.log)
            .filter(|(seq, _)| *seq > from)
            .map(|(seq, (_, body))| StoredEvent { seq, body: Ok(body.clone()) })
            .collect();
        let at = self.last_at().unwrap_or(self.session.since);
        self.stone = Some(Tombstone::of(self.session.id, self.session.parent, (self.head(), at), &last));
        self.session.aliases.clear();
        self.session.title = None;
        self.session.purpose = None;
        self.session.workspace = None;
        self.session.plan = None;
    }
}

impl Purges for MemoryJournal {
    fn unpurged(&self, limit: usize) -> Result<Vec<SessionId>, StoreError> {
        let kept = self.kept();
        let unpurged = kept.sessions.iter().filter(|stored| {
            stored.session.deleted
                && stored.stone.as_ref().is_none_or(|stone| stone.stage == PurgeStage::Purging)
        });
        Ok(unpurged.map(|stored| stored.session.id).take(limit).collect())
    }

    fn purge(&self, session: SessionId, limit: usize) -> Result<PurgeStep, StoreError> {
        let mut kept = self.kept();
        let kept = &mut *kept;
        let Some(stored) = kept.places.get(&session).and_then(|&at| kept.sessions.get_mut(at)) else {
            return Ok(PurgeStep::Unknown);
        };
        if !stored.session.deleted {
            return Ok(PurgeStep::NotDeleted);
        }
        let left = stored.log.len().saturating_sub(limit.max(1));
        let Some(stone) = &mut stored.stone else {
            stored.bury();
            return Ok(PurgeStep::Going { left: stored.head() });
        };
        if stone.stage == PurgeStage::Purging && stored.log.is_empty() {
            stone.stage = PurgeStage::Purged;
            kept.turns.retain(|(of, _), _| *of != session);
        }
        stored.log.truncate(left);
        Ok(match stone.stage {
            PurgeStage::Purging => PurgeStep::Going { left: left as u64 },
            PurgeStage::Purged | PurgeStage::Wiped => PurgeStep::Done,
        })
    }

    fn wipe(&self) -> Result<WipeStep, StoreError> {
        let mut kept = self.kept();
        for stone in kept.sessions.iter_mut().filter_map(|stored| stored.stone.as_mut()) {
            if stone.stage == PurgeStage::Purged {
                stone.stage = PurgeStage::Wiped;
            }
        }
        Ok(WipeStep::Done)
    }

    fn tombstone(&self, session: SessionId) -> Result<Option<Tombstone>, StoreError> {
        Ok(self.kept().get(session).and_then(|stored| stored.stone.clone()))
    }

    fn tombstones(&self) -> Result<(u64, u64), StoreError> {
        let kept = self.kept();
        let open = kept.stones().filter(|stone| stone.stage != PurgeStage::Wiped).count();
        Ok((kept.stones().count() as u64, open as u64))
    }

    fn size(&self) -> Result<JournalSize, StoreError> {
        let kept = self.kept();
        let bodies = kept.sessions.iter().flat_map(|stored| &stored.log);
        Ok(JournalSize { bytes: bodies.map(|(_, body)| body.len() as u64).sum(), ..JournalSize::default() })
    }

    fn compact(&self) -> Result<JournalSize, StoreError> {
        self.size()
    }
}

impl Backups for MemoryJournal {
    fn back_up(&self, _: &Path) -> Result<Report, StoreError> {
        Err(StoreError::Stopped("a journal in memory has no backup".to_owned()))
    }

    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
}
