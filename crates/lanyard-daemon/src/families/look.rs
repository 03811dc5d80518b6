//! A session as its task sees it, read from the journal.

use lanyard_core::SessionId;
use lanyard_core::session::{State, StateName, TurnRow, TurnStatus};
use lanyard_core::task::{SeenRun, SeenSession};
use lanyard_core::text::cut;
use lanyard_store::{Store, StoreError};

use crate::notice::Left;

/// Characters of it that are kept as a task's result; the log has all.
const SAID_CHARS_MAX: usize = 8_000;
/// Turns that are looked at for the newest that began.
const TURNS: usize = 40;

/// Nothing when there is no such session.
pub(super) fn session(store: &dyn Store, id: SessionId) -> Result<Option<SeenSession>, StoreError> {
    let Some(loaded) = store.load(id)? else {
        // One that was purged is not one that was never made.
        return Ok(store.tombstone(id)?.map(|_| purged()));
    };
    let session = loaded.session;
    let turn = newest_turn(store, id)?;
    // What was said matters once a turn is over.
    let said =
        if session.state.name() == StateName::Executing { None } else { Left::of(store, &session)?.said };
    let said = said.map(|said| cut(&said, SAID_CHARS_MAX).0.to_owned());
    Ok(Some(SeenSession {
        state: session.state,
        deleted: session.deleted,
        stop_level: session.stop.as_ref().map(|stop| stop.level.into()),
        cancelling: session.turn.as_ref().is_some_and(|turn| turn.cancel_requested),
        turns: session.turns,
        turn: turn.map(|turn| (turn.status, turn.reason)),
        run: session.run.as_ref().map(|run| SeenRun { id: run.id, live: session.live_run().is_some() }),
        waiting: session.inbox.len(),
        said,
        end_reason: session.end_reason,
    }))
}

/// A session of which only a tombstone is left.
fn purged() -> SeenSession {
    SeenSession {
        state: State::Stopped,
        deleted: true,
        stop_level: None,
        cancelling: false,
        turns: 0,
        turn: None,
        run: None,
        waiting: 0,
        said: None,
        end_reason: None,
    }
}

/// The newest turn that began.
pub(super) fn newest_turn(store: &dyn Store, id: SessionId) -> Result<Option<TurnRow>, StoreError> {
    let began = |turn: &TurnRow| match turn.status {
        TurnStatus::Queued | TurnStatus::Withdrawn | TurnStatus::Steered => false,
        TurnStatus::Running
        | TurnStatus::Completed
        | TurnStatus::Failed
        | TurnStatus::Refused
        | TurnStatus::Cancelled
        | TurnStatus::Interrupted
        | TurnStatus::Uncertain => true,
    };
    Ok(store.turns(id, None, TURNS)?.turns.into_iter().find(began))
}
