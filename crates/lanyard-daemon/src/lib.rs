//! Lanyard's daemon: the HTTP API, what decides about tasks, flows, memory and notifications, and the boot that puts the
//! engine, the agents and the gateway together.

mod agent_engine;
pub mod api;
mod approvals;
pub mod auth;
mod boot;
mod budgets;
pub mod dashboard;
mod families;
mod flow;
mod glances;
pub mod indexer;
pub mod memory;
mod notice;
mod notifications;
mod outward;
mod own_tools;
mod problem;
mod refusal;
pub mod reload;
mod server;
mod shelf;
mod storage;
pub mod telemetry;
mod timers;
mod tool_refusal;
mod trees;

pub use api::document as openapi;
pub use boot::{BootError, OnReady, Options, run};
pub use storage::{BackupRefusal, back_up_alone as back_up};
