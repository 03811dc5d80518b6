//! `lanyard mcp wrap` around a real server: what passes, what is asked about, and what becomes of it without a daemon.

mod bare;
mod calls;
pub(crate) mod kit;
