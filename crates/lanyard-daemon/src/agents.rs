//! Agents: what is configured, how each is spoken to, and who looks after a run.

mod codex;
mod command;
pub(crate) mod driver;
#[cfg(test)]
mod played;
pub mod settings;
