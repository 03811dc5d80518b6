//! `lanyard shim` as a program of its own. There is one for every running agent, and a small program maps fewer pages
//! than a large one: where it lies beside `lanyard` it is used instead.

use std::process::ExitCode;

use lanyard_agents::runs::pty_helper;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if let (Some(first), Some(program)) = (arguments.next(), arguments.next())
        && first == pty_helper::HELPER
    {
        return pty_helper::main(&program, arguments);
    }
    match std::env::args_os().nth(2) {
        Some(dir) => lanyard_agents::runs::shim::main(dir.as_ref()),
        None => ExitCode::from(2),
    }
}
