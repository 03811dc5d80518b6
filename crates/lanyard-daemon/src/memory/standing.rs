//! Where a session stands: whose memory it shares, and what it may remember now.

use lanyard_core::memory::{MemoryPolicy, Where, readable};
use lanyard_core::session::{Lineage, Session};
use lanyard_core::{MemoryId, SessionId};
use lanyard_store::{Filter, Loaded, Store, StoreError, Viewer};

use crate::memory::MemoryError;

/// Sessions of one family whose memory those above them see. Beyond that the newest are seen.
const FAMILY_MAX: usize = 256;

#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) session: Session,
    pub(crate) lineage: Lineage,
    /// The workspace its memory is kept in.
    pub(crate) workspace: String,
    /// The person it belongs to: who began its family.
    pub(crate) owner: String,
    /// What it may remember now, no more than anybody above it.
    pub(crate) policy: MemoryPolicy,
}

pub(crate) fn standing(store: &dyn Store, id: SessionId) -> Result<Standing, MemoryError> {
    let Some(Loaded { session, lineage, .. }) = store.load(id)? else {
        let purged = store.tombstone(id)?.is_some();
        return Err(if purged { MemoryError::Deleted(id) } else { MemoryError::NoSession(id) });
    };
    if session.deleted {
        return Err(MemoryError::Deleted(id));
    }
    let workspace = place(store, &session, &lineage)?;
    let (above, owner) = above(store, &lineage)?;
    let own = session.memory();
    let policy = above.map_or_else(|| own.clone(), |above| own.under(&above));
    if let Some(why) = &policy.unreadable {
        tracing::warn!(session = %id, why, "a stored memory policy cannot be read; the session remembers nothing");
    }
    let owner = owner.unwrap_or_else(|| session.hands.owner.clone());
    Ok(Standing { session, lineage, workspace, owner, policy })
}

/// What all above a session may remember together, and who owns the topmost.
pub(crate) fn above(
    store: &dyn Store,
    lineage: &Lineage,
) -> Result<(Option<MemoryPolicy>, Option<String>), StoreError> {
    let (mut policy, mut owner): (Option<MemoryPolicy>, _) = (None, None);
    for ancestor in lineage.ancestors.iter().rev() {
        let Some(loaded) = store.load(*ancestor)? else { continue };
        owner.get_or_insert(loaded.session.hands.owner);
        let own = loaded.session.policy.memory;
        policy = Some(policy.map_or_else(|| own.clone(), |above| own.under(&above)));
    }
    Ok((policy, owner))
}

/// Where a session's papers and memory are kept: in its workspace, or that of its task, which may have a worktree of its
/// own. Without one they belong to its family, and not to all the others that have none either.
pub(crate) fn place(store: &dyn Store, session: &Session, lineage: &Lineage) -> Result<String, StoreError> {
    let of_task = match session.task {
        Some(task) => store.task(task)?.and_then(|task| task.workspace),
        None => None,
    };
    let family = || lineage.root().unwrap_or(session.id).to_string();
    Ok(of_task.or_else(|| session.workspace.clone()).unwrap_or_else(family))
}

impl Standing {
    /// How far it sees: long-term memory of its workspace and owner, its own memory and that of those below it.
    pub(crate) fn viewer(&self, store: &dyn Store, plan: Option<String>) -> Result<Viewer, MemoryError> {
        let sessions =
            if readable(&self.policy, Where::Session) { family(store, self.session.id)? } else { Vec::new() };
        Ok(Viewer {
            workspace: self.workspace.clone(),
            owner: self.owner.clone(),
            plan,
            sessions,
            long_term: readable(&self.policy, Where::LongTerm),
        })
    }
}

/// A session and those below it.
pub(crate) fn family(store: &dyn Store, root: SessionId) -> Result<Vec<SessionId>, StoreError> {
    let mut family = vec![root];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        if family.len() >= FAMILY_MAX {
            break;
        }
        let children = Filter { parent: Some(parent), ..Filter::default() };
        let page = store.list(&children, None, FAMILY_MAX - family.len())?;
        family.extend(page.rows.iter().map(|row| row.id));
        at += 1;
    }
    Ok(family)
}

/// An id for something new.
pub(super) fn mint(clock: &lanyard_base::clock::Clock) -> MemoryId {
    MemoryId::mint(clock.now(), clock.random())
}
