//! Writing: every entry passes here, from every caller. Judged and written under one gate, so that a
//! policy that was changed in between counts.

use lanyard_core::memory::entry::{named_key, request_key};
use lanyard_core::memory::{
    MemoryEntry, MemoryPolicy, MemoryRefusal, MemoryScope, NewEntry, Source, Tags, admit, tag,
};
use lanyard_core::{Actor, MemoryId, SessionId, Timestamp};
use lanyard_store::{MemoryFilter, Put, Store, Writing};

use crate::memory::standing::{mint, standing};
use crate::memory::{Memory, MemoryError, ledger, unbound};
use lanyard_base::clock::Clock;
use lanyard_base::failpoint;
use lanyard_engine::engine::AskError;
use lanyard_engine::redaction::by;

/// Entries one session may have of its own, and a workspace and owner together.
const SESSION_MAX: u64 = 5_000;
const PLACE_MAX: u64 = 500_000;
/// How often an entry is written against others.
const TRIES_MAX: u32 = 16;

/// An entry to be remembered.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    /// The session in whose name, whose policy judges it.
    pub(crate) session: Option<SessionId>,
    pub(crate) scope: MemoryScope,
    pub(crate) plan: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) text: String,
    pub(crate) tags: Vec<String>,
    /// Where it belongs, for who acts for no session.
    pub(crate) workspace: String,
    pub(crate) owner: String,
    pub(crate) by: Actor,
    pub(crate) source: Source,
    /// The request it comes with: sent again, it is the same entry.
    pub(crate) request: Option<String>,
    /// The version that was read, where only that one may be replaced.
    pub(crate) version: Option<u64>,
}

pub(crate) fn write(
    memory: &Memory,
    store: &dyn Store,
    clock: &Clock,
    wish: Wish,
) -> Result<MemoryEntry, MemoryError> {
    memory.on()?;
    let tags = tag::parse("tags", &wish.tags)?;
    let _judged_and_written = memory.gate.blocking_read();
    let asked = wish.version;
    let (policy, mut new) = placed(store, wish)?;
    new.text = memory.redaction.text(new.text, by(&new.by));
    let admitted = judge(memory, store, clock.now(), &policy, &new, &tags)?;
    let key = match (&new.name, &new.request) {
        (Some(name), _) => Some(named_key(new.scope, &new.owner, new.plan.as_deref(), new.session, name)),
        (None, request) => request.as_deref().map(request_key),
    };
    for _ in 0..TRIES_MAX {
        let held = match &key {
            Some(key) => store.memory_at(&new.workspace, key)?,
            None => None,
        };
        if let Some(held) = held.as_ref().filter(|_| new.name.is_none()) {
            return if held.text == new.text { Ok(held.clone()) } else { Err(AskError::KeyConflict.into()) };
        }
        let from = asked.unwrap_or_else(|| held.as_ref().map_or(0, |held| held.version));
        let id = held.as_ref().map_or_else(|| mint(clock), |held| held.id);
        let entry = MemoryEntry::new(id, new.clone(), admitted.clone(), from + 1, clock.now())?;
        if held.is_none() {
            room(store, &entry)?;
        }
        failpoint::hit("memory_before_write");
        let puts = store.put_memories(&[Writing { entry: entry.clone(), from }])?;
        match (puts.first(), asked) {
            (Some(Put::Kept(_)), _) => {
                failpoint::hit("memory_after_write");
                memory.fresh.notify_one();
                return Ok(entry);
            }
            (Some(Put::Moved(held)), Some(asked)) => return Err(MemoryError::Moved { held: *held, asked }),
            // The last word counts where nobody asked for more.
            (Some(Put::Moved(_)) | None, _) => {}
        }
    }
    Err(MemoryError::Busy)
}

/// The policy that judges a wish, and all that is known of where it comes from.
fn placed(store: &dyn Store, wish: Wish) -> Result<(MemoryPolicy, NewEntry), MemoryError> {
    let Wish { session, scope, plan, name, text, workspace, owner, by, source, request, .. } = wish;
    let mut new =
        NewEntry { scope, workspace, owner, plan, name, text, by, session, turn: None, source, request };
    let Some(id) = session else { return Ok((unbound(), new)) };
    let standing = standing(store, id)?;
    new.workspace = standing.workspace;
    new.owner = standing.owner;
    new.turn = standing.session.turn.as_ref().map(|turn| turn.id);
    Ok((standing.policy, new))
}

/// Refused with the rule that forbids it, and counted.
fn judge(
    memory: &Memory,
    store: &dyn Store,
    now: Timestamp,
    policy: &MemoryPolicy,
    new: &NewEntry,
    tags: &Tags,
) -> Result<lanyard_core::memory::Admitted, MemoryError> {
    admit(policy, new.scope.store(), tags).or_else(|rule| {
        memory.count(rule);
        if let Some(session) = new.session {
            ledger::amend(store, session, now, |ledger| *ledger.refused.entry(rule).or_default() += 1)?;
        }
        Err(MemoryRefusal::Forbidden(rule).into())
    })
}

fn room(store: &dyn Store, entry: &MemoryEntry) -> Result<(), MemoryError> {
    let (filter, what, max) = match entry.scope {
        MemoryScope::Session => {
            (MemoryFilter { session: entry.session, ..MemoryFilter::default() }, "a session", SESSION_MAX)
        }
        MemoryScope::Workspace | MemoryScope::Plan => {
            let (workspace, owner) = (Some(entry.workspace.clone()), Some(entry.owner.clone()));
            (MemoryFilter { workspace, owner, ..MemoryFilter::default() }, "a workspace", PLACE_MAX)
        }
    };
    if store.count_memories(&filter)? >= max { Err(MemoryError::Full { what, max }) } else { Ok(()) }
}

/// Forgets an entry. In a session's name that is a write like any other: where it may not write, it may not wipe.
pub(crate) fn forget(
    memory: &Memory,
    store: &dyn Store,
    clock: &Clock,
    session: Option<SessionId>,
    ids: &[MemoryId],
) -> Result<usize, MemoryError> {
    memory.on()?;
    let _judged_and_written = memory.gate.blocking_read();
    if let Some(session) = session {
        let policy = standing(store, session)?.policy;
        for id in ids {
            let Some(entry) = store.memory(*id)? else { continue };
            if let Err(rule) = admit(&policy, entry.store, &entry.tags) {
                memory.count(rule);
                let count = |ledger: &mut ledger::Ledger| *ledger.refused.entry(rule).or_default() += 1;
                ledger::amend(store, session, clock.now(), count)?;
                return Err(MemoryRefusal::Forbidden(rule).into());
            }
        }
    }
    Ok(store.forget_memories(ids)?)
}

/// What became of one entry that was brought in.
#[derive(Debug)]
pub(crate) enum Brought {
    In,
    /// It was there already, as it is.
    Known,
    Refused(MemoryError),
}

/// Takes entries over as they are, each by itself. The same ones again change nothing. An entry of a session that is
/// known here is judged by that session's policy and gets that policy's tags, like any other write in its name.
pub(crate) fn import(
    memory: &Memory,
    store: &dyn Store,
    clock: &Clock,
    entries: Vec<MemoryEntry>,
) -> Result<Vec<Brought>, MemoryError> {
    memory.on()?;
    let _judged_and_written = memory.gate.blocking_read();
    let mut brought = Vec::with_capacity(entries.len());
    for entry in entries {
        brought.push(match bring(memory, store, clock, &entry) {
            Ok(brought) => brought,
            Err(error @ MemoryError::Store(_)) => return Err(error),
            Err(refused) => Brought::Refused(refused),
        });
    }
    memory.fresh.notify_one();
    Ok(brought)
}

fn bring(
    memory: &Memory,
    store: &dyn Store,
    clock: &Clock,
    entry: &MemoryEntry,
) -> Result<Brought, MemoryError> {
    entry.check()?;
    let text = memory.redaction.text(entry.text.clone(), by(&entry.by));
    let entry = &MemoryEntry { text, ..entry.clone() };
    let standing = match entry.session {
        Some(id) => match standing(store, id) {
            Ok(standing) => Some(standing),
            // Long-term memory outlives the session it came from.
            Err(MemoryError::NoSession(_) | MemoryError::Deleted(_))
                if entry.scope != MemoryScope::Session =>
            {
                None
            }
            Err(error) => return Err(error),
        },
        None => None,
    };
    let Some(standing) = standing else { return keep(store, entry, entry.tags.clone()) };
    match admit(&standing.policy, entry.store, &entry.tags) {
        // The tags the policy puts on every write may be the very ones that let this one through.
        Ok(admitted) => keep(store, entry, admitted.tags),
        Err(rule) => {
            memory.count(rule);
            let count = |ledger: &mut ledger::Ledger| *ledger.refused.entry(rule).or_default() += 1;
            ledger::amend(store, standing.session.id, clock.now(), count)?;
            Err(MemoryRefusal::Forbidden(rule).into())
        }
    }
}

/// Keeps the entry that was given, with these tags. An entry that is held in either form is known.
fn keep(store: &dyn Store, given: &MemoryEntry, tags: Tags) -> Result<Brought, MemoryError> {
    let entry = MemoryEntry { tags, ..given.clone() };
    entry.check()?;
    let held = match store.memory(entry.id)? {
        Some(held) => Some(held),
        None => store.memory_at(&entry.workspace, &entry.key())?,
    };
    match held {
        Some(held) if held == *given || held == entry => return Ok(Brought::Known),
        Some(held) => return Err(MemoryError::Moved { held: held.version, asked: entry.version }),
        None => {}
    }
    room(store, &entry)?;
    match store.put_memories(&[Writing { entry, from: 0 }])?.first() {
        Some(Put::Kept(_)) => Ok(Brought::In),
        Some(Put::Moved(_)) | None => Err(MemoryError::Busy),
    }
}
