//! The conversation that a new session is imported with.

use lanyard_core::session::{ChangeEvent, Import, PastEvent};
use lanyard_core::{Cause, Outcome, SessionId};

use crate::engine::worker::Worker;
use crate::engine::{AskError, Request};

impl Worker {
    /// Writes the conversation that a new session was imported with, in the commit that makes the session.
    pub(super) fn import(
        &mut self,
        request: &Request,
        id: SessionId,
        import: &Import,
        past: &[PastEvent],
    ) -> Result<Outcome, AskError> {
        self.write(id, ChangeEvent::Imported(import.clone()).into(), request);
        for PastEvent { at, event } in past {
            let cause = Some(Cause::Imported { at: *at });
            self.write_because(id, event.clone().into(), request, cause);
        }
        let events = u32::try_from(past.len()).unwrap_or(u32::MAX).saturating_add(2);
        self.outcome(id, events)
    }
}
