//! `lanyard opencode-bridge -- COMMAND`: the program the daemon runs in the place of an OpenCode agent. Hidden: it
//! speaks lines of JSON with the daemon, and nothing with people.

use std::ffi::OsString;

use crate::failure::Failure;

/// Run an `OpenCode` server and speak for it on stdio
#[derive(Debug, clap::Args)]
pub(super) struct OpencodeBridge {
    /// The server's command; where it listens is added
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl OpencodeBridge {
    pub(super) async fn run(self) -> Result<(), Failure> {
        crate::bridge::run(self.command).await
    }
}
