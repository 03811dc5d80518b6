//! The helper between the shim and an agent with bounds: it enters the run's control group, limits itself, and becomes the
//! agent. What a process starts has its limits and its group.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::bounds::ProcessLimits;
use super::cgroup;

/// The word in front of the order on the helper's command line.
pub const HELPER: &str = "bounded";
/// What shells answer for a program that cannot be started.
const NOT_STARTED: u8 = 126;
const NOT_FOUND: u8 = 127;

/// What the helper does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct BoundOrder {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<PathBuf>,
    #[serde(default)]
    pub(super) each: ProcessLimits,
}

impl BoundOrder {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// As it stands in the command line. It holds no secret.
    pub(super) fn to_argument(&self) -> String {
        // A path that is no text cannot be written, and the helper starts nothing without an order.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// `lanyard bounded ORDER PROGRAM ARGUMENTS…`. Does not return where it becomes the program.
pub fn main(order: &OsString, program: &OsString, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let order = order.to_str().and_then(|text| serde_json::from_str::<BoundOrder>(text).ok());
    let Some(order) = order else { return fail(NOT_STARTED, "the bounds of the run cannot be read") };
    if let Some(Err(error)) = order.group.as_deref().map(cgroup::enter) {
        return fail(NOT_STARTED, &format!("the cgroup of the run cannot be entered: {error}"));
    }
    let each = order.each;
    // The number of open files last: what is open already stays open, and nothing more has to be opened.
    for (what, amount) in [
        (Resource::Data, each.memory_bytes),
        (Resource::Nproc, each.processes),
        (Resource::Fsize, each.file_bytes),
        (Resource::Nofile, each.open_files),
    ] {
        if let Some(Err(error)) = amount.map(|amount| limit(what, amount)) {
            return fail(NOT_STARTED, &format!("a limit of the run cannot be set: {error}"));
        }
    }
    let error = Command::new(program).args(arguments).exec();
    let missing = error.kind() == io::ErrorKind::NotFound;
    let code = if missing { NOT_FOUND } else { NOT_STARTED };
    fail(code, &format!("cannot start {}: {error}", program.display()))
}

/// A limit that is lower already stays.
fn limit(what: Resource, amount: u64) -> io::Result<()> {
    let held = getrlimit(what).maximum.map_or(amount, |held| held.min(amount));
    setrlimit(what, Rlimit { current: Some(held), maximum: Some(held) }).map_err(io::Error::from)
}

fn fail(code: u8, what: &str) -> ExitCode {
    use std::io::Write as _;
    let _ = writeln!(io::stderr(), "lanyard: {what}");
    ExitCode::from(code)
}
