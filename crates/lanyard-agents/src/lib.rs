//! Agents: drivers that speak their protocols, runners that look after their runs, and the shim under which each of them
//! runs. It reaches the daemon through [`agents::engine::AgentEngine`] alone, and knows no HTTP handlers.

pub mod agents;
pub mod history;
pub mod runs;
pub mod sandbox;
pub mod terminal;
