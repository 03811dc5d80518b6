//! The `lanyard` program: the daemon, and the command line that talks to it through its public API only.

mod acp;
mod bridge;
mod chosen_agent;
mod cli;
mod client;
mod context;
mod dialogue;
mod failure;
mod hook;
mod launch;
mod out;
mod relay;
mod render;
mod scripted;
mod seen;
mod tui;
mod wrap;

use std::process::ExitCode;

/// A tool call through the gateway allocates some hundred times, on threads that hand memory to each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything else is set up: there is one of these for every running agent, and it should stay small.
    let mut arguments = std::env::args_os().skip(1);
    if let (Some(first), Some(dir)) = (arguments.next(), arguments.next())
        && first == "shim"
    {
        return lanyard_daemon::runs::shim::main(dir.as_ref());
    }
    if cli::answer_completion() {
        return ExitCode::SUCCESS;
    }
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(failure) => return failure.report(out::Form::Json),
    };
    let form = cli.form();
    match cli::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(form),
    }
}
