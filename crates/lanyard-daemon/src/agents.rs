//! Agents: what is configured, how each is spoken to, and who looks after a run.

mod acp;
pub(crate) mod driver;
pub mod settings;
