//! The `lanyard` program: the commands, and the daemon that `lanyard up` runs in its own process.

mod host;

use std::process::ExitCode;

use lanyard_agents::runs::{bound_helper, pty_helper};

/// A tool call through the gateway allocates some hundred times, on threads that hand memory to each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything else is set up: there is one of these for every running agent, and it should stay small.
    let mut arguments = std::env::args_os().skip(1);
    if let (Some(first), Some(dir)) = (arguments.next(), arguments.next())
        && first == "shim"
    {
        return lanyard_agents::runs::shim::main(dir.as_ref());
    }
    let mut arguments = std::env::args_os().skip(1);
    if let (Some(first), Some(program)) = (arguments.next(), arguments.next())
        && first == pty_helper::HELPER
    {
        return pty_helper::main(&program, arguments);
    }
    let mut arguments = std::env::args_os().skip(1);
    if let (Some(first), Some(order), Some(program)) = (arguments.next(), arguments.next(), arguments.next())
    {
        if first == "inside" {
            return lanyard_agents::sandbox::inside::main(&order, &program, arguments);
        }
        if first == bound_helper::HELPER {
            return bound_helper::main(&order, &program, arguments);
        }
    }
    lanyard_cli::main(&host::HOST)
}
