//! Children without a task: sessions somebody made below another. Their end is a message in their parent's mailbox as
//! well. One that was stopped is told of by a notice, and one the parent started itself it hears of by itself.

use lanyard_core::journal::Row;
use lanyard_core::session::{Session, StateName};
use lanyard_core::task::{MailFrom, MailKind, MailTo, TaskState};
use lanyard_core::{MailId, SessionId};
use lanyard_store::Filter;

use crate::families::owner::Owner;
use crate::families::post::Letter;
use crate::families::{FamilyError, find};
use crate::notice::Left;

/// Where sessions come from whose agent the parent itself starts.
const PREPARED: &str = "spawn";
/// Ends that are looked at after a start, of each kind: one is missed only between two writes of a daemon that was killed.
const LOOK_BACK: usize = 64;
/// Before the newest of them.
const LOOK_BACK_MS: u64 = 60_000;
const ENDS: [StateName; 2] = [StateName::Completed, StateName::Failed];

impl Owner {
    /// Those of the sessions that ended and have a parent.
    pub(super) fn tell_parents(&mut self, sessions: &[SessionId]) -> Result<(), FamilyError> {
        for state in ENDS {
            let filter = Filter { state: Some(state), ..Filter::default() };
            let rows = self.tools.store.rows(sessions, &filter)?;
            self.tell_of(&rows)?;
        }
        Ok(())
    }

    /// The newest ends, after a start.
    pub(super) fn tell_of_recent(&mut self) -> Result<(), FamilyError> {
        for state in ENDS {
            let filter = Filter { state: Some(state), ..Filter::default() };
            let mut rows = self.tools.store.list(&filter, None, LOOK_BACK)?.rows;
            let newest = rows.iter().map(|row| row.since).max();
            // What ended long before was told then, or nobody wanted to know.
            rows.retain(|row| newest.is_some_and(|newest| newest.millis_since(row.since) < LOOK_BACK_MS));
            self.tell_of(&rows)?;
        }
        Ok(())
    }

    fn tell_of(&mut self, rows: &[Row]) -> Result<(), FamilyError> {
        for row in rows.iter().filter(|row| row.parent.is_some() && row.source != PREPARED) {
            // The same for ever, so that an end is told once.
            let id = MailId::from_u128(row.id.as_u128());
            let known = self.mail.values().flatten().any(|mail| mail.id == id)
                || self.tools.store.mail(id)?.is_some();
            if known {
                continue;
            }
            let Some(loaded) = self.tools.store.load(row.id)? else { continue };
            let child = loaded.session;
            let mirrored = child.run.as_ref().is_some_and(|run| run.mirrored);
            let Some(parent) =
                child.parent.filter(|_| child.task.is_none() && child.stop.is_none() && !mirrored)
            else {
                continue;
            };
            if let Some(to) = self.nearest(parent)? {
                let letter = self.end_of(&child, id, to)?;
                self.post(letter);
            }
        }
        Ok(())
    }

    /// The box of the nearest who lives; nobody's where none does.
    fn nearest(&self, parent: SessionId) -> Result<Option<MailTo>, FamilyError> {
        let mut next = Some(parent);
        while let Some(id) = next {
            let Some(loaded) = self.tools.store.load(id)? else { return Ok(None) };
            if !loaded.session.state.is_ended() && !loaded.session.deleted {
                return find::box_of(&*self.tools.store, id).map(Some);
            }
            next = loaded.session.parent;
        }
        Ok(None)
    }

    fn end_of(&self, child: &Session, id: MailId, to: MailTo) -> Result<Letter, FamilyError> {
        let ended =
            if child.state.name() == StateName::Completed { TaskState::Completed } else { TaskState::Failed };
        let name = child.hands.agent.clone().unwrap_or_else(|| "agent".to_owned());
        let title = child.title.as_deref().unwrap_or("the session");
        let mut lines = vec![format!("\"{title}\" is {ended}.")];
        lines.extend(child.end_reason.as_ref().map(|reason| format!("Why: {reason}")));
        lines.push(Left::of(&*self.tools.store, child)?.words());
        lines.retain(|line| !line.is_empty());
        let from =
            MailFrom { session: Some(child.id), worker: child.hands.worker, name, ..MailFrom::default() };
        let (kind, text) = (MailKind::Ended, lines.join("\n"));
        Ok(Letter { id: Some(id), to, from, kind, ended: Some(ended), text })
    }
}
