//! Tool calls that come by, and the deadlines of stops and guidance.

use std::collections::BTreeSet;

use lanyard_core::session::{Call, Returned, Signal, call_begins, call_ends, next_due};
use lanyard_core::{Actor, Cause, SessionId, Timestamp};

use crate::engine::worker::Worker;
use crate::engine::{Ask, AskError, Reply, Request, Work};

/// When sessions have to be looked at again, soonest first.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    order: BTreeSet<(Timestamp, SessionId)>,
    of: std::collections::HashMap<SessionId, Timestamp>,
}

impl Deadlines {
    pub(super) fn set(&mut self, session: SessionId, at: Option<Timestamp>) {
        if let Some(before) = self.of.remove(&session) {
            self.order.remove(&(before, session));
        }
        if let Some(at) = at {
            self.of.insert(session, at);
            self.order.insert((at, session));
        }
    }

    fn due(&mut self, now: Timestamp) -> Vec<SessionId> {
        let mut due = Vec::new();
        while let Some((at, session)) = self.order.first().copied().filter(|(at, _)| *at <= now) {
            self.order.remove(&(at, session));
            self.of.remove(&session);
            due.push(session);
        }
        due
    }
}

impl Worker {
    pub(super) fn call_begins(
        &mut self,
        request: &Request,
        id: SessionId,
        call: &Call,
    ) -> Result<Reply, AskError> {
        self.resident(id)?;
        let call = self.attributed(id, call);
        let (events, passage) = call_begins(self.resident(id)?, &call, &self.incarnation, &self.rules);
        self.draft.flagged.insert(id);
        let written = self.write_all(id, events, request);
        let uncertain = call.is_uncertain();
        Ok(Reply { passage: Some(passage), uncertain, ..self.outcome(id, written)?.into() })
    }

    pub(super) fn call_ends(
        &mut self,
        request: &Request,
        id: SessionId,
        call: &Call,
        returned: Returned,
    ) -> Result<Reply, AskError> {
        self.resident(id)?;
        let call = self.attributed(id, call);
        let (session, now) = (self.resident(id)?, self.draft.now);
        let (events, lead) = call_ends(session, &call, &returned, &self.incarnation, now, &self.rules);
        self.draft.flagged.insert(id);
        let written = self.write_all(id, events, request);
        self.call_returned(id, &call);
        if call.is_uncertain() {
            self.steer_pending(id);
        }
        Ok(Reply { lead, ..self.outcome(id, written)?.into() })
    }

    /// After a commit: what calls of these sessions have to do, and when to look at the sessions again.
    pub(super) fn attend(&mut self, sessions: impl Iterator<Item = SessionId>) {
        for id in sessions {
            self.share(id);
            let shared = self.is_shared(id);
            let Some(resident) = self.residents.get(id) else { continue };
            self.engine.flags.set(id, shared || resident.session.wants_attention());
            self.engine.live.set(id, resident.session.live_run().map(|run| run.id));
            if resident.session.deleted {
                self.engine.live.deleted(id);
            }
            self.deadlines.set(id, next_due(&resident.session, &self.rules));
        }
    }

    pub(super) fn tell_parent(&self, child: SessionId) {
        (self.parent_notice)(&self.engine, child);
    }

    /// Deadlines that have come.
    pub(super) fn look_at_deadlines(&mut self) {
        let now = self.clock.now();
        for session in self.deadlines.due(now) {
            let signal = Signal::Due { now };
            let cause = Some(Cause::Signal(signal.name().to_owned()));
            let ask = Ask::Tell { session, signals: vec![signal] };
            let request = Request { ask, actor: Actor::system("deadline"), cause, keys: Vec::new() };
            self.own.push_back(Work { request, answer: None });
        }
    }
}
