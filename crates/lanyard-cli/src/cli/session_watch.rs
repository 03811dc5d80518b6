//! Waiting for a change of one session, over restarts of the daemon: its log says when to look again.

use lanyard_client::{RecordWatch, Route, Woken};
use lanyard_core::SessionId;
use lanyard_core::session::SessionView;

use crate::client::Client;
use crate::context::Context;
use crate::failure::{Failure, daemon_gone};

/// Changes of a session from the moment this was opened.
pub(super) struct SessionWatch<'a> {
    context: &'a Context,
    watch: RecordWatch,
}

impl<'a> SessionWatch<'a> {
    /// Changes that are made after this returns are not missed. `again` is the command that continues after a daemon that
    /// stayed away.
    pub(super) async fn open(
        context: &'a Context,
        client: &mut Client<'_>,
        session: SessionId,
        again: String,
    ) -> Result<Self, Failure> {
        let id = session.to_string();
        let view: SessionView = client.get(&Route::to(&["sessions", &id])).await?;
        let events = Route::to(&["sessions", &id, "events"]).with("after", Some(view.last_seq));
        Ok(Self { context, watch: context.watch_at(events, again)? })
    }

    /// Waits for the next change.
    pub(super) async fn changed(&mut self) -> Result<(), Failure> {
        loop {
            match self.watch.next().await? {
                // Changes during an absence are found by looking.
                Woken::Look | Woken::Back => return Ok(()),
                Woken::Lost(bound) => self.context.out.note(&daemon_gone(bound)),
            }
        }
    }
}
