//! What the program adds to the commands: a daemon in its own process, and the journal of a daemon that does not run. The
//! commands depend on neither of the two crates.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanyard_api::config::ConfigFile;
use lanyard_api::home::Running;
use lanyard_api::types::BackupReceipt;
use lanyard_core::journal::Report;
use lanyard_core::session::SandboxRule;
use serde_json::Value;

/// The daemon's and the store's part of a few commands.
#[derive(Debug, Clone, Copy)]
pub struct DaemonHost {
    /// Runs a daemon until it ends.
    pub serve: fn(ServeOptions) -> Result<(), HostError>,
    /// The document of the API.
    pub openapi: fn() -> Value,
    /// Whether agents can be run in a sandbox here: how, or why not and what to install.
    pub sandbox: fn() -> Result<String, String>,
    /// What holds the bounds of a daemon's runs, by its process, and which bounds of a rule cannot be held.
    pub bounds: fn(Option<u32>, &SandboxRule) -> (String, Vec<String>),
    /// Makes an empty journal.
    pub begin_journal: fn(&Path) -> Result<(), HostError>,
    /// Copies a journal to a file and checks the copy; replaces a file that exists if `force` says so.
    pub back_up: fn(&Path, &Path, bool) -> Result<BackupReceipt, HostError>,
    /// Reads a backup to its end.
    pub verify_backup: fn(&Path) -> Result<Report, String>,
    /// Moves the attachments of a backup into the folder of attachments. The file is left as the journal alone.
    pub take_attachments: fn(&Path, &Path) -> Result<u64, String>,
    /// Reads a journal to its end, after its projections were made again if the flag says so.
    pub check_journal: fn(&Path, bool) -> Result<JournalCheck, HostError>,
}

/// What a daemon is started with.
pub struct ServeOptions {
    pub home: PathBuf,
    pub config: ConfigFile,
    pub memory_tags: Vec<String>,
    pub memory_allow: Vec<String>,
    pub listen: Option<SocketAddr>,
    pub on_ready: OnServing,
    /// Where a warning about the environment goes.
    pub warn: fn(&str),
}

/// Called once the daemon answers. The second argument makes a link that signs a browser in.
pub type OnServing = Arc<dyn Fn(&Running, &dyn Fn() -> Option<String>) + Send + Sync>;

impl std::fmt::Debug for ServeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServeOptions").field("home", &self.home).finish_non_exhaustive()
    }
}

/// Why the daemon or the journal did not do its part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostError {
    /// The command line or the config asks for something that is not possible.
    Usage {
        title: String,
        advice: &'static str,
    },
    Failed {
        code: &'static str,
        title: String,
        advice: String,
    },
}

impl HostError {
    pub fn failed(code: &'static str, title: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::Failed { code, title: title.into(), advice: advice.into() }
    }
}

/// What a check of a journal found.
#[derive(Debug)]
pub struct JournalCheck {
    /// Sessions whose projections were made again, where that was asked for.
    pub rebuilt: Option<Result<u64, String>>,
    pub report: Result<Report, String>,
}
