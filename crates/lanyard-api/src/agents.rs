//! Agents as the config names them: their settings, those that are known, and the refusals about names.

pub mod accounts;
pub mod credentials;
pub mod known;
pub mod naming;
pub mod settings;
mod subagents;
