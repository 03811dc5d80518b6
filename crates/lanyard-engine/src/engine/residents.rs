//! The sessions in memory. All others live in the journal and are loaded when somebody asks for them.

use std::collections::HashMap;

use lanyard_core::session::Lineage;
use lanyard_core::{Session, SessionId};

/// Sessions kept in memory; when there are more, the eighth that was least recently used goes.
const RESIDENTS_MAX: usize = 16_384;

#[derive(Debug)]
pub(super) struct Resident {
    pub(super) session: Session,
    pub(super) lineage: Lineage,
    /// Events since its record was last written.
    pub(super) unsaved: u32,
    /// When it was last asked for, in the engine's own count.
    used: u64,
}

#[derive(Debug, Default)]
pub(super) struct Residents {
    sessions: HashMap<SessionId, Box<Resident>>,
    uses: u64,
}

impl Residents {
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn insert(&mut self, session: Session, lineage: Lineage) {
        self.uses += 1;
        let resident = Resident { session, lineage, unsaved: 0, used: self.uses };
        self.sessions.insert(resident.session.id, Box::new(resident));
    }

    pub(super) fn contains(&self, id: SessionId) -> bool {
        self.sessions.contains_key(&id)
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&Resident> {
        self.sessions.get(&id).map(Box::as_ref)
    }

    pub(super) fn get_mut(&mut self, id: SessionId) -> Option<&mut Resident> {
        self.uses += 1;
        let resident = self.sessions.get_mut(&id)?;
        resident.used = self.uses;
        Some(resident)
    }

    pub(super) fn forget(&mut self, id: SessionId) {
        self.sessions.remove(&id);
    }

    pub(super) fn forget_all(&mut self) {
        self.sessions = HashMap::new();
    }

    /// The child got new ancestors, and so did everyone below it.
    pub(super) fn relink(&mut self, child: SessionId, lineage: &Lineage) {
        for (id, resident) in &mut self.sessions {
            if *id == child {
                resident.lineage = lineage.clone();
            } else if let Some(at) = resident.lineage.ancestors.iter().position(|other| *other == child) {
                resident.lineage.ancestors.truncate(at + 1);
                resident.lineage.ancestors.extend(&lineage.ancestors);
            }
        }
    }

    /// Makes room. Only between commits: what a batch has touched must stay until it is on disk.
    pub(super) fn evict(&mut self) {
        if self.sessions.len() <= RESIDENTS_MAX {
            return;
        }
        let mut uses: Vec<u64> = self.sessions.values().map(|resident| resident.used).collect();
        let going = uses.len() - RESIDENTS_MAX + RESIDENTS_MAX / 8;
        let (_, limit, _) = uses.select_nth_unstable(going);
        let limit = *limit;
        self.sessions.retain(|_, resident| resident.used >= limit);
    }
}
