//! Records in the engine's round. The engine does not decide about them: it commits what their owners hand in, with the
//! events of the same round. Only a message follows its note here, so that both change in one commit.

use lanyard_core::NoteId;
use lanyard_core::session::{ControlEvent, Envelope, Event};
use lanyard_core::task::Mail;
use lanyard_store::{RecordBatch, RecordKind, RecordRef, WorkBatch};

use crate::engine::ask::unavailable;
use crate::engine::worker::Worker;
use crate::engine::{AskError, RecordWrite};
use lanyard_base::error_chain;

impl Worker {
    /// Adds writes of records to the round, or refuses them alone.
    pub(super) fn write_records(&mut self, write: RecordWrite) {
        let staged = self.stage_records(write.records);
        self.draft.writes.push((write.answer, staged));
    }

    /// A defect in the writes of one caller must not take the round of the others with it: they are compared with the
    /// store before they join it.
    fn stage_records(&mut self, records: RecordBatch) -> Result<(), AskError> {
        self.writable()?;
        // The store does not know yet what the round holds of the same records.
        if records.records().any(|of| self.draft.records.contains(&of)) {
            self.flush()?;
        }
        if let Some(what) = self.store.contradiction(&records).map_err(|error| unavailable(&error))? {
            tracing::error!(what, "records do not follow the journal; they are not written");
            return Err(AskError::Defect(what));
        }
        self.draft.add_records(records);
        Ok(())
    }

    /// A note with the id of a message is that message: it is given when its note is queued, and settled with it.
    pub(super) fn follow_notes(&mut self, envelope: &Envelope) {
        let Event::Control(event) = &envelope.event else { return };
        let (session, at) = (envelope.session, envelope.at);
        if let ControlEvent::GuidanceQueued { note, .. } = event {
            self.follow_note(*note, |mail| mail.queued(session, at));
        }
        if let ControlEvent::GuidanceSettled { notes, how } = event {
            for note in notes {
                self.follow_note(*note, |mail| mail.settled(session, *how, at));
            }
        }
    }

    /// A message that cannot be read, or that this round writes already, is left to the owner of mail, which compares it
    /// with its note when the session has changed.
    fn follow_note(&mut self, note: NoteId, step: impl FnOnce(&Mail) -> Option<Mail>) {
        let id = Mail::of_note(note);
        if self.draft.records.contains(&RecordRef { kind: RecordKind::Mail, id: id.as_u128() }) {
            return;
        }
        let followed = self.store.mail(id).and_then(|held| match held.as_ref().and_then(step) {
            Some(mail) => WorkBatch { mail: vec![mail], ..WorkBatch::default() }.records(),
            None => Ok(RecordBatch::default()),
        });
        match followed {
            Ok(records) if records.is_empty() => {}
            Ok(records) => self.draft.add_records(records),
            Err(error) => {
                tracing::warn!(%note, error = error_chain(&error), "a message could not follow its note");
            }
        }
    }
}
