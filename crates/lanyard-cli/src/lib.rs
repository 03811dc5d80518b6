//! Lanyard's commands and screens: the command line, the terminal's screens, Lanyard as an agent for editors, hooks and
//! wrapped MCP servers. They talk to a daemon through its public API only.

mod acp;
mod bridge;
mod chosen_agent;
mod cli;
mod client;
mod console;
mod context;
mod dialogue;
mod failure;
mod hook;
mod host;
mod launch;
mod operator_mcp;
mod out;
mod registry;
mod relay;
mod render;
mod seen;
mod tui;
mod wrap;

pub use failure::chain;
pub use host::{DaemonHost, HostError, JournalCheck, OnServing, ServeOptions};

use std::process::ExitCode;

/// Runs the command that the arguments of the process name.
#[must_use]
pub fn main(host: &DaemonHost) -> ExitCode {
    if cli::answer_completion() {
        return ExitCode::SUCCESS;
    }
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(failure) => return failure.report(out::Form::Json),
    };
    let form = cli.form();
    match cli::run(cli, host) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(form),
    }
}
