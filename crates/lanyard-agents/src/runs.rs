//! Runs: one incarnation of an agent each, a process tree under a small supervisor (the *shim*) that outlives the
//! daemon.
//!
//! Everything about a run lies in a private folder, so that any later daemon can pick it up:
//!
//! | file | what | written by |
//! |---|---|---|
//! | `run.json` | what the daemon says about the run, before anything is started | daemon |
//! | `shim.json` | who the shim and the agent are: pid, start time, boot id | shim |
//! | `out` | the agent's stdout; an offset in the file is an offset in the stream | shim |
//! | `err`, `err.old` | the newest of the agent's stderr | shim |
//! | `sock` | where the shim listens | shim |
//! | `turn.json` | the turn the agent was given last, and when | daemon |
//! | `contacts.json` | which MCP servers the agent has reached through the relay | shim |
//! | `door` | what the sandbox of the run sees of it: its ways to the relay and the proxy | shim |
//! | `proxy.log` | what the proxy connected to, and what it refused | shim |
//! | `recording.cast` | what a program wrote on its terminal, with times (asciicast 2) | shim |
//! | `sizes.json` | from which place in the output on its window had which size | shim |
//! | `screen.json` | its screen at a place in the output | daemon |
//! | `exit.json` | how it ended; there only when nothing of the tree lives | shim, or the daemon that swept |

pub mod bound_helper;
pub mod bounds;
pub mod cgroup;
mod folder;
pub mod foreign;
mod last_output;
pub mod link;
pub mod process;
pub mod pty_helper;
mod record;
pub mod relay;
pub mod shim;
mod wire;

pub use folder::{KnownRun, ScreenFile};
pub use last_output::{LastOutput, last_output};
pub use link::{Adopted, Link, LinkError, Output, Runs, Sent, StartError};
pub use process::{EndedBy, EndedWork, Identity, ProcessEnd, Whose, Work};
pub use record::{Exit, How, Spec, SpoolLimits, TerminalSpec};
pub use wire::INPUT_MAX;

/// Keeps the daemon's own variables from a process it starts: where its data and config are is no agent's business.
/// To be called before variables are set for that process.
pub fn withhold(command: &mut std::process::Command) {
    command.env_clear().envs(lanyard_base::environment::inherited(false));
}
