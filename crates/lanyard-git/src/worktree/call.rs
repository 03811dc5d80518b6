//! Calls of git that answer with a line, a yes or no, or an error this module's callers can tell apart.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use super::WorktreeError;
use super::error::{failed, passes};
use crate::snapshot::git::{Git, Output, describe};

/// Lists of refs, worktrees and files a refusal may name.
const OUTPUT_MAX: usize = 16 * 1024 * 1024;
/// How often a call is made that met somebody else's lock. Most are held for an instant.
const TRIES_MAX: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// A call whose outcome the caller judges. One that failed for something that passes is made again.
pub(super) fn ask<S: AsRef<OsStr>>(git: &Git, args: &[S], input: &[u8]) -> Result<Output, WorktreeError> {
    let mut tries = 1;
    loop {
        let output = git.run(args, input, OUTPUT_MAX)?;
        if output.cut {
            return Err(WorktreeError::TooLarge { what: describe(args) });
        }
        if output.status.signal().is_some() {
            return Err(WorktreeError::Interrupted);
        }
        if output.status.success() || tries >= TRIES_MAX || !passes(&output.stderr) {
            return Ok(output);
        }
        tries += 1;
        // sleep: git waits neither for these locks nor for the other worktree, and nobody tells when they are done.
        std::thread::sleep(PAUSE);
    }
}

/// The output of a call that has to succeed.
pub(super) fn read<S: AsRef<OsStr>>(git: &Git, args: &[S], input: &[u8]) -> Result<Vec<u8>, WorktreeError> {
    let output = ask(git, args, input)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failed(describe(args), output.stderr))
}

/// The same for calls that answer with one line.
pub(super) fn line<S: AsRef<OsStr>>(git: &Git, args: &[S], input: &[u8]) -> Result<String, WorktreeError> {
    Ok(text(&read(git, args, input)?))
}

/// The line of a call that fails quietly with 1 when there is none.
pub(super) fn maybe<S: AsRef<OsStr>>(git: &Git, args: &[S]) -> Result<Option<String>, WorktreeError> {
    let output = ask(git, args, b"")?;
    match output.status.code() {
        Some(0) => Ok(Some(text(&output.stdout))),
        Some(1) => Ok(None),
        _ => Err(failed(describe(args), output.stderr)),
    }
}

/// Whether `old` is `new` or comes before it.
pub(super) fn is_ancestor(git: &Git, old: &str, new: &str) -> Result<bool, WorktreeError> {
    Ok(maybe(git, &["merge-base", "--is-ancestor", old, new])?.is_some())
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}
