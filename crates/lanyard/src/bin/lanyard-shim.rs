//! `lanyard shim` as a program of its own. There is one for every running agent, and a small program maps fewer pages
//! than a large one: where it lies beside `lanyard` it is used instead.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(2) {
        Some(dir) => lanyard_agents::runs::shim::main(dir.as_ref()),
        None => ExitCode::from(2),
    }
}
