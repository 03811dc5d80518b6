//! Which mechanisms work on this machine. Found by trying, since a program or a kernel that is there may be forbidden.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use lanyard_api::agents::known;

/// Characters of what `bwrap` said that are repeated.
const SAID_CHARS_MAX: usize = 200;
/// What a sandbox needs of it. All of it is tried at once.
const TRIED: [&str; 15] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-net",
    "--cap-drop",
    "ALL",
    "--disable-userns",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
];

/// What this machine can give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineSandbox {
    /// The program, or why it does not work.
    pub bubblewrap: Result<PathBuf, String>,
}

impl MachineSandbox {
    /// What agents can be given, or why they can be given nothing.
    pub fn in_words(&self) -> Result<String, String> {
        let program = self.bubblewrap.as_ref().map_err(Clone::clone)?;
        Ok(format!("agents can be run in a sandbox, by {}", program.display()))
    }
}

/// Tries the mechanisms. Blocks for some milliseconds.
#[must_use]
pub fn machine() -> MachineSandbox {
    MachineSandbox { bubblewrap: bubblewrap() }
}

fn bubblewrap() -> Result<PathBuf, String> {
    if !cfg!(target_os = "linux") {
        return Err("a sandbox needs Linux".to_owned());
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let program = known::find("bwrap", &path).ok_or_else(|| {
        "the program `bwrap` is not installed; on Debian and Ubuntu: `apt install bubblewrap`".to_owned()
    })?;
    let tried = Command::new(&program)
        .args(TRIED)
        .args(["--", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
    if tried.status.success() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&tried.stderr);
    let said = lanyard_core::text::one_line(said.trim(), SAID_CHARS_MAX);
    Err(format!(
        "{} does not work here: {said}; version 0.8 and user namespaces are needed",
        program.display()
    ))
}
