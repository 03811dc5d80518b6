//! What is said about a run: how to start it, and how it ended.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use lanyard_core::session::WindowSize;
use serde::{Deserialize, Serialize};

use super::bounds::RunLimits;
use super::process::ProcessEnd;
use crate::sandbox::Enclosure;

/// Output that may lie unconsumed before the shim stops reading the agent's stdout.
const SPOOL_MAX: u64 = 256 * 1024 * 1024;
/// How long a spool that cannot be written is tried again before the agent is ended.
const SPOOL_PATIENCE_MS: u64 = 10_000;

/// Bytes of the recording of one run. What comes after is not recorded, and the recording says so.
const RECORDING_MAX: u64 = 32 << 20;

/// How an agent is started. It reaches the shim through a pipe: no secret stands in an argument or in a file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Set over what the daemon has, or alone with `clear_env`.
    pub env: BTreeMap<String, String>,
    pub clear_env: bool,
    pub cwd: PathBuf,
    /// Between TERM and KILL for what the agent leaves behind when it exits by itself.
    pub grace_ms: u64,
    pub limits: SpoolLimits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Enclosure>,
    /// The bounds of its processes, and the group that they are in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<RunLimits>,
    /// Run it on a terminal of its own instead of pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSpec>,
}

/// The terminal of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSpec {
    /// The size its window begins with.
    pub size: WindowSize,
    /// When its recording begins, in seconds of the calendar.
    pub began_s: i64,
    pub recording_max: u64,
}

impl TerminalSpec {
    #[must_use]
    pub const fn new(size: WindowSize, began_s: i64) -> Self {
        Self { size, began_s, recording_max: RECORDING_MAX }
    }
}

/// The values of the environment may be secrets.
impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec")
            .field("argv", &self.argv)
            .field("env", &self.env.keys())
            .field("clear_env", &self.clear_env)
            .field("cwd", &self.cwd)
            .field("grace_ms", &self.grace_ms)
            .field("limits", &self.limits)
            .field("sandbox", &self.sandbox)
            .field("bounds", &self.bounds)
            .field("terminal", &self.terminal)
            .finish()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolLimits {
    pub spool_max: u64,
    pub spool_patience_ms: u64,
}

impl Default for SpoolLimits {
    fn default() -> Self {
        Self { spool_max: SPOOL_MAX, spool_patience_ms: SPOOL_PATIENCE_MS }
    }
}

/// How a run ended. Nothing of its process tree lives, unless it was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    pub how: How,
    /// The processes that had to be ended, in the order they were first told.
    pub ended: Vec<ProcessEnd>,
    /// Processes ended beyond those listed.
    pub ended_more: u64,
    /// Why the output is not whole.
    pub spool_error: Option<String>,
    /// Bytes of stdout that were kept.
    pub output: u64,
    /// Of these, how many had been consumed: they cannot be read any more.
    pub consumed: u64,
}

/// What became of the agent's main process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Exited(i32),
    Signalled(i32),
    /// The shim died: nobody saw how the agent ended, and what it left must be swept.
    Lost,
}

impl Exit {
    pub(crate) fn lost(output: u64) -> Self {
        Self { how: How::Lost, ended: Vec::new(), ended_more: 0, spool_error: None, output, consumed: 0 }
    }
}
