//! Asking the daemon about tool calls that other programs relay: a wrapped MCP server, an agent's hook.
//!
//! The caller goes on without an answer: no daemon, a slow one or one that says no is never a reason to keep an
//! agent from its work. Nothing in here starts a daemon.

mod desk;
mod mark;

pub(crate) use desk::{Desk, Newcomer};
pub(crate) use mark::{Mark, is_marked};

/// Where sessions come from that Lanyard did not start.
pub(crate) const EXTERNAL: &str = "external";
/// The longest id of a call that is passed on; the rest of a longer one is left out.
const CALL_ID_CHARS_MAX: usize = 200;

/// An id of a call that is fit for the log.
pub(crate) fn call_id(id: &str) -> String {
    id.chars().take(CALL_ID_CHARS_MAX).collect()
}
