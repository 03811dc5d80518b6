//! The helper between the shim and a program on a terminal: it makes the terminal the program's own, and becomes the
//! program. A process may only take a terminal for a session that it leads, and the shim leads its own.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The word in front of the program on the helper's command line.
pub const HELPER: &str = "terminal";
/// The recording, in the run's folder.
pub(crate) const RECORDING: &str = "recording.cast";

/// What shells answer for a program that cannot be started.
const NOT_STARTED: u8 = 126;
const NOT_FOUND: u8 = 127;

/// `lanyard terminal PROGRAM ARGUMENTS…`, with the terminal as stdin. Does not return where it becomes the program.
pub fn main(program: &OsString, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let taken = rustix::process::setsid()
        .and_then(|_| rustix::process::ioctl_tiocsctty(rustix::stdio::stdin()))
        .map_err(io::Error::from);
    if let Err(error) = taken {
        return fail(NOT_STARTED, &format!("the terminal cannot be taken: {error}"));
    }
    let error = Command::new(program).args(arguments).exec();
    let missing = error.kind() == io::ErrorKind::NotFound;
    let code = if missing { NOT_FOUND } else { NOT_STARTED };
    fail(code, &format!("cannot start {}: {error}", program.display()))
}

fn fail(code: u8, what: &str) -> ExitCode {
    use std::io::Write as _;
    let _ = writeln!(io::stderr(), "lanyard: {what}");
    ExitCode::from(code)
}
