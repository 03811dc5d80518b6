//! `lanyard scripted-mcp`: an MCP server on stdio that does what its callers tell it. Hidden: for tests and trials.

use crate::failure::Failure;

/// Run an MCP server on stdio whose tools do what they are told
#[derive(Debug, clap::Args)]
pub(super) struct ScriptedMcp {
    /// Write every line that comes in to this file
    #[arg(long, value_name = "FILE")]
    heard: Option<std::path::PathBuf>,
}

impl ScriptedMcp {
    pub(super) fn run(self) -> Result<(), Failure> {
        match lanyard_scripted::mcp_server::run(self.heard.as_deref()) {
            Ok(0) => Ok(()),
            Ok(code) => Err(Failure::Ended(code)),
            Err(error) => Err(Failure::local("scripted_mcp", format!("cannot go on: {error}"), "")),
        }
    }
}
