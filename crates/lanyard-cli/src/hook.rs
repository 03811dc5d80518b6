//! `lanyard hook`: an agent's own tools, which never pass MCP, seen through the hook its harness offers. The same ladder
//! and the same queue as everywhere; only the dialect of the answer differs.
//!
//! A hook never stands in its agent's way: no daemon, a slow one, or input that is not understood is an empty answer.

mod answer;
mod ask;
mod edit;
mod input;
mod install;
mod plan;

pub(crate) use ask::run;
pub(crate) use input::Harness;
pub(crate) use install::{HookState, Installed, Removed, install, state, uninstall};
pub(crate) use plan::{HookScope, Target};
