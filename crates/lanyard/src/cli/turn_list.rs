//! The turns of a session that began, for commands that name one.

use lanyard_api::types::TurnList;
use lanyard_core::session::TurnRow;

use crate::client::{Client, Route};
use crate::failure::Failure;

/// Turns asked for at a time, and pages that are read.
const PAGE_TURNS: u32 = 500;
const PAGES_MAX: usize = 40;

/// Turns that began, the oldest first. Of a session with more than 20,000, the newest of them.
pub(super) async fn turns_started(client: &mut Client<'_>, session: &str) -> Result<Vec<TurnRow>, Failure> {
    let mut turns: Vec<TurnRow> = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let route = Route::to(&["sessions", session, "turns"])
            .with("limit", Some(PAGE_TURNS))
            .with("cursor", cursor.as_ref());
        let page: TurnList = client.get(&route).await?;
        turns.extend(page.turns.into_iter().filter(|row| row.started_seq.is_some()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    turns.sort_by_key(|row| row.started_seq);
    Ok(turns)
}
