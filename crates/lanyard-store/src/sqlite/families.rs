//! Parents and children of sessions, from the catalog alone.

use std::collections::HashSet;

use lanyard_core::SessionId;
use lanyard_core::session::Lineage;

use crate::error::StoreError;
use crate::journal::Lineages;
use crate::sqlite::SqliteJournal;

impl Lineages for SqliteJournal {
    fn lineages(&self, sessions: &[SessionId]) -> Result<Vec<Lineage>, StoreError> {
        let catalog = self.catalog();
        Ok(sessions.iter().map(|&id| catalog.lineage(id)).collect())
    }

    fn height(&self, session: SessionId, max: u32) -> Result<u32, StoreError> {
        if self.catalog().of(session).is_none() {
            return Ok(0);
        }
        let (mut height, mut depth) = (1, 1);
        let mut generation = HashSet::from([session]);
        while depth < max && !generation.is_empty() {
            depth += 1;
            let mut next = HashSet::new();
            self.survey(|_, facts| {
                if facts.parent.is_some_and(|parent| generation.contains(&parent)) {
                    next.insert(facts.id);
                    // A deleted session takes no room itself; one that is not may still live below it.
                    height = if facts.is_deleted() { height } else { depth };
                }
            });
            generation = next;
        }
        Ok(height.min(max))
    }

    fn live_children(&self, session: SessionId) -> Result<u64, StoreError> {
        let mut children = 0;
        self.survey(|_, facts| {
            children +=
                u64::from(facts.parent == Some(session) && facts.is_listed() && !facts.state.is_ended());
        });
        Ok(children)
    }
}
