//! The fold of what people and policy do: stops, guidance, notices.

use std::collections::VecDeque;

use crate::id::NoteId;
use crate::session::driven::DrivenBy;
use crate::session::event::{ControlEvent, Envelope, Settled};
use crate::session::guidance::{Note, NoteDelivery, NoteStatus};
use crate::session::record::{Session, remember};
use crate::session::stop::{Stop, StopLevel, StopScope};

impl Session {
    pub(super) fn control(&mut self, event: &ControlEvent, envelope: &Envelope) -> bool {
        self.governance.saw(event, &envelope.actor);
        match event {
            ControlEvent::StopRequested { .. }
            | ControlEvent::StopRaised { .. }
            | ControlEvent::StopApplied { .. }
            | ControlEvent::StopComplied { .. }
            | ControlEvent::StopSettled {}
            | ControlEvent::StopWithdrawn { .. } => self.stopping(event, envelope),
            ControlEvent::NoticeSent { .. }
            | ControlEvent::Introduced { .. }
            | ControlEvent::HandedOff { .. }
            | ControlEvent::GuidanceQueued { .. }
            | ControlEvent::GuidanceDelivered { .. }
            | ControlEvent::GuidanceReturned { .. }
            | ControlEvent::GuidanceSettled { .. } => self.guided(event, envelope),
            ControlEvent::EndBlocked { .. }
            | ControlEvent::CommandRefused { .. }
            | ControlEvent::SignalUnexpected { .. } => true,
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "`control` says which come here")]
    fn stopping(&mut self, event: &ControlEvent, envelope: &Envelope) -> bool {
        let alive = !self.state.is_ended();
        match event {
            ControlEvent::StopRequested { level, scope, reason, .. } => {
                let first = self.stop.is_none();
                self.stop = Some(Stop {
                    level: *level,
                    scope: *scope,
                    requested_at: envelope.at,
                    level_at: envelope.at,
                    by: envelope.actor.clone(),
                    reason: reason.clone(),
                    told: 0,
                    complying: None,
                });
                alive && first
            }
            ControlEvent::StopRaised { from, to, scope, .. } => match &mut self.stop {
                Some(stop) if stop.level == *from && to > from => {
                    stop.level = *to;
                    stop.level_at = envelope.at;
                    stop.scope = scope.unwrap_or(stop.scope);
                    stop.told = 0;
                    alive
                }
                Some(_) | None => false,
            },
            ControlEvent::StopApplied { .. } => {
                self.hears = true;
                if let Some(stop) = self.stop.as_mut().filter(|_| alive) {
                    stop.told = stop.told.saturating_add(1);
                }
                self.stop.is_some()
            }
            ControlEvent::StopComplied { how } => {
                let stop = self.stop.as_mut();
                let stop = stop.map(|stop| {
                    stop.complying = Some(*how);
                    // Whoever does what was asked gets the time for it.
                    stop.level_at = envelope.at;
                });
                alive && stop.is_some()
            }
            ControlEvent::StopSettled {} => {
                alive && self.stop.take().is_some_and(|stop| stop.scope == StopScope::Turn)
            }
            ControlEvent::StopWithdrawn { .. } => {
                alive && self.stop.take().is_some_and(|stop| stop.level < StopLevel::Terminated)
            }
            _ => false,
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "`control` says which come here")]
    fn guided(&mut self, event: &ControlEvent, envelope: &Envelope) -> bool {
        let alive = !self.state.is_ended();
        match event {
            ControlEvent::NoticeSent { to, .. } => {
                self.notice_unheard = to.is_none() && self.state.is_ended();
                std::mem::replace(&mut self.notice_due, false)
            }
            ControlEvent::Introduced { .. } => {
                // The answer to an agent that introduces itself has the instructions; an agent under a host of its own
                // gets them by no other way.
                self.governance.injected |= self.driver() == DrivenBy::Host;
                alive
            }
            ControlEvent::HandedOff { .. } => alive,
            ControlEvent::GuidanceQueued { note, text, kind, .. } => {
                self.guidance.push(Note {
                    id: *note,
                    text: text.clone(),
                    queued_at: envelope.at,
                    by: envelope.actor.clone(),
                    kind: *kind,
                    status: NoteStatus::Pending,
                    delivery: None,
                    again: false,
                });
                alive
            }
            ControlEvent::GuidanceDelivered { notes, channel, call, by, .. } => {
                let delivery = NoteDelivery {
                    at: envelope.at,
                    channel: channel.clone(),
                    call: call.clone(),
                    by: by.clone(),
                };
                for note in self.guidance.iter_mut().filter(|note| notes.contains(&note.id)) {
                    note.status = NoteStatus::Delivered;
                    note.delivery = Some(delivery.clone());
                }
                true
            }
            ControlEvent::GuidanceReturned { notes } => {
                self.take_back(notes);
                alive
            }
            ControlEvent::GuidanceSettled { notes, how } => {
                self.settle(notes, *how);
                true
            }
            _ => false,
        }
    }

    fn settle(&mut self, notes: &[NoteId], how: Settled) {
        let (settled, waiting) =
            std::mem::take(&mut self.guidance).into_iter().partition(|note: &Note| notes.contains(&note.id));
        self.guidance = waiting;
        for mut note in settled {
            note.status = match how {
                Settled::Acknowledged => NoteStatus::Acknowledged,
                Settled::Withdrawn => NoteStatus::Withdrawn,
                Settled::Expired => NoteStatus::Expired,
                Settled::Undelivered => NoteStatus::Undelivered,
            };
            remember(&mut self.guidance_settled, note);
        }
    }

    /// Pending again, in the order they were written.
    fn take_back(&mut self, notes: &[NoteId]) {
        let (back, settled): (VecDeque<Note>, VecDeque<Note>) = std::mem::take(&mut self.guidance_settled)
            .into_iter()
            .partition(|note: &Note| notes.contains(&note.id));
        self.guidance_settled = settled;
        self.guidance.extend(back);
        for note in self.guidance.iter_mut().filter(|note| notes.contains(&note.id)) {
            note.status = NoteStatus::Pending;
            note.again = true;
        }
        self.guidance.sort_by_key(|note| (note.queued_at, note.id));
    }
}
