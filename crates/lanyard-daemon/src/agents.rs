//! Agents: what is configured, how each is spoken to, and who looks after a run.

pub(crate) mod driver;
mod opencode;
pub mod settings;
