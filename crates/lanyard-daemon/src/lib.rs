//! Lanyard's daemon: the engine that owns live sessions, the hub that feeds readers, and the HTTP API.

pub mod agents;
pub mod api;
pub mod auth;
mod bell;
mod boot;
pub mod clock;
pub mod continuity;
pub mod dashboard;
pub mod engine;
mod environment;
pub mod failpoint;
mod families;
mod flow;
pub mod hub;
pub mod intercept;
pub mod live_config;
mod mcp;
pub mod memory;
mod notice;
mod notifications;
mod outward;
pub mod presence;
pub mod redaction;
mod refusal;
pub mod reload;
pub mod runs;
mod server;
mod storage;
mod tail;
pub mod telemetry;
mod timers;
mod tls;
mod wire;

pub use api::document as openapi;
pub use boot::{BootError, OnReady, Options, run};
pub use storage::{BackupRefusal, back_up_alone as back_up};
