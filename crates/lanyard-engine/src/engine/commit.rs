//! The end of a round: append, publish, act, answer. In this order, always.

use bytes::Bytes;
use lanyard_core::continuity::counted;
use lanyard_core::insight;
use lanyard_core::session::{
    ChangeEvent, DrivenBy, Effect, Envelope, Event, Lineage, Signal, StateName, StopLevel, TranscriptEvent,
    TurnStep, react,
};
use lanyard_core::{Actor, Cause, Session, SessionId};
use lanyard_store::{AppendError, Durability, EventEntry};

use crate::engine::draft::Draft;
use crate::engine::worker::Worker;
use crate::engine::{Ask, AskError, Request, TurnSpan, Work};
use crate::hub::Of;
use crate::redaction::redact;
use lanyard_base::error_chain;
use lanyard_base::failpoint;

/// Transcript events after which a session's record is written although nothing structural happened, so that loading
/// it never folds more than this many.
const UNSAVED_MAX: u32 = 256;
/// Room for an event as it is written; most fit into it, and need not be moved while they grow.
const ENTRY_BYTES: usize = 512;

impl Worker {
    /// Makes an event true in memory and part of the round.
    pub(super) fn write(&mut self, session: SessionId, event: Event, request: &Request) {
        self.write_because(session, event, request, request.cause.clone());
    }

    /// The same with a cause of its own.
    pub(super) fn write_because(
        &mut self,
        session: SessionId,
        event: Event,
        request: &Request,
        cause: Option<Cause>,
    ) {
        if self.draft.poison.is_some() {
            return;
        }
        let seq = self.residents.get(session).map_or(0, |resident| resident.session.seq) + 1;
        let before = self.state_of(session);
        let mut structural = event.is_structural();
        if !is_record(&request.ask, &event) {
            self.draft.batch.durability = Durability::Synced;
        }
        let mut envelope =
            Envelope { seq, session, at: self.draft.now, actor: request.actor.clone(), cause, event };
        // Written out first: what is kept in memory holds no secret that the log does not hold.
        let staged = self.encoded(&mut envelope).and_then(|body| {
            self.apply(&envelope)?;
            self.note_spending(&envelope);
            self.stage_entry(&envelope, body);
            self.follow_notes(&envelope);
            Ok(())
        });
        if let Err(defect) = staged {
            tracing::error!(%session, seq, defect, "an event did not apply; the round is dropped");
            self.draft.poison = Some(defect);
            return;
        }
        // A call of a host's agent is no structural event, and changes the state now and then.
        structural |= self.state_of(session) != before;
        let row = self.draft.touched.entry(session).or_default();
        *row |= structural;
    }

    fn state_of(&self, session: SessionId) -> Option<StateName> {
        self.residents.get(session).map(|resident| resident.session.state.name())
    }

    fn apply(&mut self, envelope: &Envelope) -> Result<(), String> {
        let before = self.residents.get(envelope.session).map(|resident| &resident.session);
        let tally = counted(before, &envelope.event);
        let step = insight::step(before, envelope);
        let ended = self.turn_ended.as_ref().and_then(|_| TurnSpan::of(before, &envelope.event, envelope.at));
        self.draft.count(&tally);
        self.draft.spans.extend(ended);
        if let Event::Change(ChangeEvent::Created(created)) = &envelope.event {
            let born = Session::born(envelope).map_err(|error| error.to_string())?;
            self.residents.insert(born, self.lineage_under(created.parent));
            return Ok(());
        }
        let resident = self.residents.get_mut(envelope.session).ok_or("the session is not in memory")?;
        resident.session.apply(envelope).map_err(|error| error.to_string())?;
        resident.unsaved += 1;
        self.draft.batch.insight.extend(step);
        let effects = react(&resident.session, envelope);
        self.draft.effects.extend(effects.into_iter().map(|effect| (envelope.session, effect)));
        Ok(())
    }

    /// The event as it is written, without its secrets.
    fn encoded(&self, envelope: &mut Envelope) -> Result<Bytes, String> {
        let body = encode(envelope)?;
        let Some(redactor) = self.hub.redactor().filter(|redactor| redactor.suspects(&body)) else {
            return Ok(body.into());
        };
        let count = redact(&redactor, envelope)?;
        if count == 0 {
            return Ok(body.into());
        }
        self.hub.redaction.count(count);
        encode(envelope).map(Bytes::from)
    }

    fn stage_entry(&mut self, envelope: &Envelope, body: Bytes) {
        let entry = EventEntry { session: envelope.session, seq: envelope.seq, at: envelope.at, body };
        self.draft.batch.entries.push(entry);
        self.draft.batch.turns.extend(TurnStep::of(envelope));
    }

    /// The ancestors of a child of `parent`.
    pub(super) fn lineage_under(&self, parent: Option<SessionId>) -> Lineage {
        let Some(parent) = parent else { return Lineage::default() };
        let mut ancestors = vec![parent];
        if let Some(resident) = self.residents.get(parent) {
            ancestors.extend(&resident.lineage.ancestors);
        }
        Lineage { ancestors }
    }

    pub(super) fn commit(&mut self) {
        let now = self.draft.now;
        let mut draft = std::mem::replace(&mut self.draft, Draft::new(now));
        if draft.is_empty() {
            self.attend(draft.flagged.drain());
        } else {
            self.with_rows(&mut draft);
            failpoint::hit("before_append");
            if let Err(error) = self.append(&draft) {
                self.engine.unrecorded(draft.behind);
                self.undo(&draft);
                draft.refuse(&error);
            } else {
                failpoint::hit("after_append");
                self.hub.publish(&draft.batch.entries);
                failpoint::hit("after_publish");
                self.engine.counted(draft.batch.entries.len(), self.residents.len());
                if let Some((at, tally)) = &draft.batch.tally {
                    self.continuity.committed(*at, tally);
                }
                if let Some(turn_ended) = &self.turn_ended {
                    draft.spans.iter().for_each(turn_ended);
                }
                let changed =
                    || draft.touched.iter().filter(|(_, structural)| **structural).map(|(id, _)| *id);
                let has_ended = |id: &SessionId| {
                    self.residents
                        .get(*id)
                        .is_some_and(|held| held.session.state.is_ended() || held.session.deleted)
                };
                self.hub.touch(Of::Structure, changed());
                self.hub.touch(Of::Ends, changed().filter(has_ended));
                self.attend(changed().chain(draft.flagged.drain()));
                self.follow_up(std::mem::take(&mut draft.effects));
                self.let_go_of_deleted(&draft);
            }
        }
        for (answer, result) in draft.answers {
            // A caller that went away misses its answer; the outcome is kept under its key.
            let _ = answer.send(result);
        }
        for (answer, result) in draft.writes {
            let _ = answer.send(result);
        }
    }

    /// Commits what the round has so far, for a decision that has to read all of it from the journal.
    pub(super) fn flush(&mut self) -> Result<(), AskError> {
        self.commit();
        match self.failed {
            Some(_) => Err(AskError::Unavailable(self.engine.stats.storage_error().unwrap_or_default())),
            None => Ok(()),
        }
    }

    fn append(&mut self, draft: &Draft) -> Result<(), AskError> {
        if let Some(defect) = &draft.poison {
            return Err(AskError::Defect(defect.clone()));
        }
        match self.store.append(&draft.batch) {
            Ok(()) => Ok(()),
            Err(AppendError::Contradiction(what)) => {
                tracing::error!(what, "the journal refused a batch; the round is dropped");
                Err(AskError::Defect(what))
            }
            Err(AppendError::Unavailable(error)) => {
                let error = error_chain(&error);
                tracing::error!(error, "the journal cannot be written; nothing is acknowledged until it can");
                self.fail(error.clone());
                Err(AskError::Unavailable(error))
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a pause between tries, not a time anyone records")]
    pub(super) fn fail(&mut self, error: String) {
        self.failed = Some(std::time::Instant::now());
        self.engine.stats.set_storage_error(Some(error));
    }

    /// Adds the rows of sessions that changed in more than their transcript.
    fn with_rows(&mut self, draft: &mut Draft) {
        for (id, structural) in &draft.touched {
            let Some(resident) = self.residents.get_mut(*id) else { continue };
            if *structural || resident.unsaved >= UNSAVED_MAX {
                resident.unsaved = 0;
                draft.batch.sessions.push(resident.session.clone());
            }
        }
    }

    /// A deleted session takes no more events: its log may be purged at any time, and nothing may follow it then.
    fn let_go_of_deleted(&mut self, draft: &Draft) {
        for id in draft.touched.keys() {
            if self.residents.get(*id).is_some_and(|held| held.session.deleted) {
                self.residents.forget(*id);
                self.deadlines.set(*id, None);
            }
        }
    }

    /// Memory is ahead of the disk: what the round touched is forgotten and loaded again when needed.
    fn undo(&mut self, draft: &Draft) {
        if draft.poison.is_some() {
            self.residents.forget_all();
        }
        for id in draft.touched.keys().chain(&draft.flagged) {
            self.residents.forget(*id);
            // Whoever calls has to ask until it is known again, and what may have been due is looked at again.
            self.engine.flags.set(*id, true);
            self.deadlines.set(*id, Some(draft.now));
        }
        self.own.clear();
        self.spending.clear();
    }

    /// Carries out what follows from events that are now on disk: effects on the agents Lanyard runs. A session whose
    /// agent somebody else runs has no work to end but the turn they report on: a graceful stop waits for that report,
    /// a forced one does not.
    fn follow_up(&mut self, effects: Vec<(SessionId, Effect)>) {
        for (session, effect) in effects {
            if effect == Effect::TellParent {
                self.tell_parent(session);
                continue;
            }
            let Some(held) = self.residents.get(session) else { continue };
            let by = held.session.driver();
            let driven = by.is_run_here();
            // An agent of another host, and one whose calls come by, can be told there, and has its time for it.
            let hears = by == DrivenBy::Host || held.session.hears || self.engine.flags.knows(session);
            let channel = match effect {
                _ if driven && (self.agents)(session, effect.clone()) => continue,
                _ if driven => "too much waits for the agents",
                Effect::RunTurn { .. } | Effect::CancelWork { forced: false, .. } => continue,
                Effect::CancelWork { forced: true, .. } => "forced",
                Effect::StopWork { level: StopLevel::Terminated, .. } => "terminated",
                Effect::StopWork { executing: false, .. } if !hears => "nothing was running",
                Effect::StopWork { .. }
                | Effect::AnswerGate { .. }
                | Effect::Steer { .. }
                | Effect::EndRun { .. }
                | Effect::TellParent
                | Effect::Choose { .. }
                | Effect::Revive { .. } => continue,
            };
            let signal = Signal::WorkEnded { channel: channel.to_owned() };
            let cause = Some(Cause::Signal(signal.name().to_owned()));
            let ask = Ask::Tell { session, signals: vec![signal] };
            let request = Request { ask, actor: Actor::system("engine"), cause, keys: Vec::new() };
            self.own.push_back(Work { request, answer: None });
        }
    }
}

fn encode(envelope: &Envelope) -> Result<Vec<u8>, String> {
    let mut body = Vec::with_capacity(ENTRY_BYTES);
    serde_json::to_writer(&mut body, envelope).map_err(|error| error.to_string())?;
    Ok(body)
}

/// A line about a tool call that passed, or is under way: nobody is told that it is kept, and nothing follows from it.
fn is_record(ask: &Ask, event: &Event) -> bool {
    let suffices =
        matches!(ask, Ask::CallPassed { .. } | Ask::CallEnds { durability: Durability::Written, .. });
    let returned = matches!(event, Event::Transcript(TranscriptEvent::ToolRelayed { .. }));
    (suffices && returned) || matches!(event, Event::Transcript(TranscriptEvent::InFlight { .. }))
}
