//! Marks the end of a turn as seen, once this program has shown it.

use lanyard_api::types::NewSeen;
use lanyard_client::Route;
use lanyard_core::Outcome;

use crate::context::Context;
use crate::failure::Failure;

/// Marks the log as seen up to `seq`. A mark that does not arrive leaves the turn unread and fails nothing else; inside
/// of a session no person looks.
pub(crate) async fn mark_seen(context: &Context, session: &str, seq: u64) {
    let marked = async {
        let Some(mut client) = context.client_if_running().await? else { return Ok(()) };
        if client.is_session() {
            return Ok(());
        }
        let route = Route::to(&["sessions", session, "seen"]);
        client.post_unkept::<Outcome>(&route, &NewSeen { seq }).await?;
        Ok::<(), Failure>(())
    };
    let _unread = marked.await;
}
