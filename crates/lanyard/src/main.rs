//! The `lanyard` program: the daemon, and the command line that talks to it through its public API only.

mod bridge;
mod cli;
mod client;
mod context;
mod failure;
mod launch;
mod out;
mod render;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::parse();
    let form = cli.form();
    match cli::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(form),
    }
}
