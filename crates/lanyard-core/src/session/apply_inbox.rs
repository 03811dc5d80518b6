//! The fold of the inbox.

use crate::id::{NoteId, TurnId};
use crate::session::event::{Envelope, InboxEvent};
use crate::session::inbox::{Delivery, PauseReason, Promotion, QueuedTurn, place};
use crate::session::record::Session;

impl Session {
    pub(super) fn inbox(&mut self, event: &InboxEvent, envelope: &Envelope) -> bool {
        let alive = !self.state.is_ended();
        match event {
            InboxEvent::Queued {
                turn,
                client_turn_id,
                prompt,
                parts,
                delivery,
                note,
                memory,
                choice,
                forced,
                ..
            } => {
                let new = self.waiting(*turn).is_none();
                let at = place(&self.inbox, *delivery);
                let waiting = QueuedTurn {
                    turn: *turn,
                    client_turn_id: client_turn_id.clone(),
                    prompt: prompt.clone(),
                    parts: parts.clone(),
                    delivery: *delivery,
                    actor: envelope.actor.clone(),
                    at: envelope.at,
                    note: *note,
                    memory: memory.clone(),
                    choice: choice.clone(),
                    forced: *forced,
                };
                self.inbox.insert(at, waiting);
                alive && new
            }
            InboxEvent::Edited { turn, prompt, delivery, note, .. } => {
                alive && self.edited(*turn, prompt.as_deref(), *delivery, *note)
            }
            InboxEvent::Withdrawn { turn, .. } => {
                self.review.turn_withdrawn(*turn);
                alive && self.take_waiting(*turn).is_some()
            }
            InboxEvent::Steered { turn, into, .. } => {
                self.review.turn_merged(*turn, *into, self.turns);
                alive && self.take_waiting(*turn).is_some()
            }
            InboxEvent::Promoted { turn, to, note } => alive && self.promoted(*turn, *to, *note),
            InboxEvent::Delivered { turn } => {
                let running = self.turn.as_ref().is_some_and(|held| held.id == *turn);
                if running {
                    self.prompt_arrived();
                }
                running
            }
            InboxEvent::Reordered { turns } => {
                let place_of = |waiting: &QueuedTurn| turns.iter().position(|turn| *turn == waiting.turn);
                let whole = turns.len() == self.inbox.len()
                    && self.inbox.iter().all(|waiting| place_of(waiting).is_some());
                self.inbox.sort_by_key(|waiting| place_of(waiting).unwrap_or(usize::MAX));
                alive && whole
            }
            InboxEvent::Paused { reason } => {
                self.inbox_paused = Some(*reason);
                alive
            }
            InboxEvent::Resumed {} => alive && self.inbox_paused.take().is_some(),
        }
    }

    fn edited(
        &mut self,
        turn: TurnId,
        prompt: Option<&str>,
        delivery: Option<Delivery>,
        note: Option<NoteId>,
    ) -> bool {
        let Some(at) = self.inbox.iter().position(|waiting| waiting.turn == turn) else { return false };
        let waiting = &mut self.inbox[at];
        if let Some(prompt) = prompt {
            prompt.clone_into(&mut waiting.prompt);
        }
        waiting.note = note;
        if let Some(delivery) = delivery {
            let mut waiting = self.inbox.remove(at);
            waiting.delivery = delivery;
            let to = place(&self.inbox, delivery);
            self.inbox.insert(to, waiting);
        }
        true
    }

    fn promoted(&mut self, turn: TurnId, to: Promotion, note: Option<NoteId>) -> bool {
        let Some(at) = self.inbox.iter().position(|waiting| waiting.turn == turn) else { return false };
        let mut waiting = self.inbox.remove(at);
        waiting.note = note;
        let to = match to {
            Promotion::Front => 0,
            Promotion::Steer => {
                waiting.delivery = Delivery::Steer;
                place(&self.inbox, Delivery::Steer)
            }
            Promotion::Interrupt => {
                waiting.delivery = Delivery::Interrupt;
                place(&self.inbox, Delivery::Interrupt)
            }
        };
        self.inbox.insert(to, waiting);
        true
    }

    /// Takes a message out of the inbox. A pause that a turn's end made goes with the last one it held back.
    pub(super) fn take_waiting(&mut self, turn: TurnId) -> Option<QueuedTurn> {
        let at = self.inbox.iter().position(|waiting| waiting.turn == turn)?;
        let taken = self.inbox.remove(at);
        if self.inbox.is_empty() {
            self.inbox_paused.take_if(|reason| *reason != PauseReason::Asked);
        }
        Some(taken)
    }

    /// Detaches messages from the notes that were to carry them into a turn that is over.
    pub(super) fn forget_notes(&mut self) {
        for waiting in &mut self.inbox {
            waiting.note = None;
        }
    }
}
