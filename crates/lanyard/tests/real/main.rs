//! Real agents, installed by `cargo xtask test real`, against a scripted model on loopback.
//!
//! Not part of `cargo test --workspace`: it needs Node and two gigabytes of agents. The model's own
//! tests need neither and run first by name: `cargo test -p lanyard --test real model::`.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![allow(clippy::disallowed_methods, reason = "real processes are waited for in real time")]
#![allow(dead_code, reason = "the model and the agents can do more than each suite asks of them")]

mod agents;
mod browser;
mod editors;
mod hooks;
mod mcp;
mod model;
mod peer;
mod smoke;
mod through;

use lanyard_testkit as support;
