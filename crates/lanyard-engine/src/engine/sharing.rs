//! Which sessions share their MCP connection with subagents that are at work. While one does, a call that comes by the
//! session's address and does not say whose it is may be the subagent's.
//!
//! Kept in memory: after a restart the subagents of adopted runs are looked at again, and those of other hosts tell of
//! themselves with their next call.

use std::collections::HashMap;

use lanyard_core::session::{
    Call, CallerProof, Channel, DrivenBy, Effect, NoteKind, NoteStatus, spawns_subagents,
};
use lanyard_core::{Session, SessionId, Timestamp};

use crate::engine::worker::Worker;

/// How long after its last call a subagent of another host counts as being at work: its host does not say when it ends.
const QUIET_MS: u64 = 600_000;
/// Subagents remembered per session; with one of them the connection is shared.
const SUBAGENTS_MAX: usize = 256;

/// Subagents at work, by the session whose connection they use.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    /// Each subagent, and until when it counts; nothing for one whose end is told.
    of: HashMap<SessionId, HashMap<SessionId, Option<Timestamp>>>,
    /// The sessions above each subagent whose connection it uses.
    above: HashMap<SessionId, Vec<SessionId>>,
}

impl Sharing {
    fn begin(&mut self, child: SessionId, above: Vec<SessionId>, until: Option<Timestamp>) {
        for parent in &above {
            let held = self.of.entry(*parent).or_default();
            if held.contains_key(&child) || held.len() < SUBAGENTS_MAX {
                held.insert(child, until);
            }
        }
        self.above.insert(child, above);
    }

    /// Answers whose connection it used.
    fn end(&mut self, child: SessionId) -> Vec<SessionId> {
        let above = self.above.remove(&child).unwrap_or_default();
        for parent in &above {
            if let Some(held) = self.of.get_mut(parent) {
                held.remove(&child);
                if held.is_empty() {
                    self.of.remove(parent);
                }
            }
        }
        above
    }

    fn is_shared(&self, session: SessionId, now: Timestamp) -> bool {
        let held = self.of.get(&session);
        held.is_some_and(|held| held.values().any(|until| until.is_none_or(|until| now < until)))
    }

    /// The subagents of another host are done: the call that set them to work came back.
    fn returned(&mut self, parent: SessionId) {
        let Some(held) = self.of.get(&parent) else { return };
        let done: Vec<SessionId> =
            held.iter().filter(|(_, until)| until.is_some()).map(|(child, _)| *child).collect();
        for child in done {
            self.end(child);
        }
    }
}

impl Worker {
    /// Whether a subagent may be using the session's connection.
    pub(super) fn is_shared(&self, id: SessionId) -> bool {
        let spawning = self.residents.get(id).is_some_and(|held| !held.session.open_spawns.is_empty());
        spawning || self.sharing.is_shared(id, self.draft.now)
    }

    /// The call with what is known of its caller: an address that is shared proves nothing.
    pub(super) fn attributed(&mut self, id: SessionId, call: &Call) -> Call {
        let mut call = call.clone();
        if call.proof == CallerProof::Address && self.is_shared(id) {
            call.proof = CallerProof::Uncertain;
        }
        self.saw_call(id, &call);
        call
    }

    /// What a call that names its caller tells of the connection it came by.
    pub(super) fn saw_call(&mut self, id: SessionId, call: &Call) {
        if call.proof != CallerProof::Named {
            return;
        }
        let Some(held) = self.residents.get(id) else { return };
        let Some(parent) = held.session.parent else { return };
        if held.session.driver() == DrivenBy::Host && is_alive(&held.session) {
            let until = Some(self.draft.now.plus_millis(QUIET_MS));
            self.sharing.begin(id, vec![parent], until);
            self.engine.flags.set(parent, true);
        }
    }

    /// A call came back. Where a hook says that it set subagents to work, they are done.
    pub(super) fn call_returned(&mut self, id: SessionId, call: &Call) {
        let named = call.proof == CallerProof::Named && call.channel == Channel::Hook;
        if named && spawns_subagents(&call.tool) {
            self.sharing.returned(id);
            self.draft.flagged.insert(id);
        }
    }

    /// After a commit: whether the session is a subagent at work inside a run, and what that means for calls of those
    /// above it.
    pub(super) fn share(&mut self, id: SessionId) {
        let Some(held) = self.residents.get(id) else { return };
        let session = &held.session;
        let Some(run) = session.run.as_ref().filter(|_| session.driver() == DrivenBy::Parent) else {
            if !is_alive(session) {
                self.sharing.end(id);
            }
            return;
        };
        if run.is_live() && session.turn.is_some() && is_alive(session) {
            // Those above it up to the one whose run it is.
            let same = |above: &&SessionId| match self.residents.get(**above) {
                Some(held) => held.session.run.as_ref().is_some_and(|held| held.id == run.id),
                None => true,
            };
            let above: Vec<SessionId> = held.lineage.ancestors.iter().take_while(same).copied().collect();
            for parent in &above {
                self.engine.flags.set(*parent, true);
            }
            self.sharing.begin(id, above, None);
            return;
        }
        for parent in self.sharing.end(id) {
            let wants = self.residents.get(parent).is_none_or(|held| held.session.wants_attention());
            self.engine.flags.set(parent, wants || self.is_shared(parent));
        }
    }

    /// Words that no answer could carry go into the running turn, where the agent takes them.
    pub(super) fn steer_pending(&mut self, id: SessionId) {
        let Some(held) = self.residents.get(id).filter(|held| held.session.turn.is_some()) else { return };
        let words = held.session.guidance.iter().filter(|note| {
            note.status == NoteStatus::Pending && matches!(note.kind, NoteKind::Guidance | NoteKind::Steer)
        });
        let steer: Vec<(SessionId, Effect)> =
            words.map(|note| (id, Effect::Steer { note: note.id })).collect();
        self.draft.effects.extend(steer);
    }
}

fn is_alive(session: &Session) -> bool {
    !session.state.is_ended() && !session.deleted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> SessionId {
        SessionId::from_u128(n)
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// FND-R2: siblings and both orders of their ends; one that is left keeps the connection shared.
    #[test]
    fn fnd_r2_a_connection_is_shared_until_the_last_subagent_ends() {
        for order in [[2, 3], [3, 2]] {
            let mut sharing = Sharing::default();
            sharing.begin(id(2), vec![id(1)], None);
            sharing.begin(id(3), vec![id(1)], None);
            assert!(sharing.is_shared(id(1), at(0)) && !sharing.is_shared(id(2), at(0)));
            assert_eq!(sharing.end(id(order[0])), [id(1)]);
            assert!(sharing.is_shared(id(1), at(0)));
            sharing.end(id(order[1]));
            assert!(!sharing.is_shared(id(1), at(0)) && sharing.of.is_empty() && sharing.above.is_empty());
        }
    }

    /// FND-R2: a subagent of another host counts until it was quiet for long, or the call that started it returned.
    #[test]
    fn fnd_r2_a_subagent_of_another_host_counts_for_a_while() {
        let mut sharing = Sharing::default();
        sharing.begin(id(2), vec![id(1)], Some(at(100)));
        assert!(sharing.is_shared(id(1), at(99)) && !sharing.is_shared(id(1), at(100)));
        sharing.begin(id(3), vec![id(1)], None);
        sharing.returned(id(1));
        assert!(sharing.is_shared(id(1), at(99)), "one inside a run says itself when it ends");
        sharing.end(id(3));
        assert!(!sharing.is_shared(id(1), at(99)));
    }
}
