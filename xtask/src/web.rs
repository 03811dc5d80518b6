//! The dashboard in `web/`: Node's part of the tree. Nothing in Rust needs it to be built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Result, bail};

use crate::process;

/// What there is to install when it is missing.
const WANTED: &str = "Node 20.19 or newer with npm on PATH";

/// The folder of the dashboard.
fn folder() -> PathBuf {
    process::root().join("web")
}

/// Where its build is.
pub(crate) fn dist() -> PathBuf {
    folder().join("dist")
}

/// Builds it where that can be done, and says in one line where it cannot: Lanyard works without. Answers whether there
/// is a build.
pub(crate) fn build_if_possible() -> bool {
    if !has_npm() {
        eprintln!("the dashboard is left out: it needs {WANTED}");
        return false;
    }
    if let Err(error) = install().and_then(|()| build()) {
        eprintln!("the dashboard is left out: {error:#}");
        return false;
    }
    true
}

/// The packages it is made with, as the lock file has them.
pub(crate) fn install() -> Result<()> {
    install_in(&folder())
}

/// The packages of a folder of Node's, as its lock file has them.
pub(crate) fn install_in(folder: &Path) -> Result<()> {
    if !has_npm() {
        bail!("npm does not run; {} needs {WANTED}", folder.display());
    }
    let changed = |path: &str| changed(&folder.join(path));
    // What npm writes last.
    if is_stale(changed("package-lock.json"), changed("node_modules/.package-lock.json")) {
        process::run(&mut program_in(folder, "npm", ["ci", "--no-audit", "--no-fund"]))?;
    }
    Ok(())
}

pub(crate) fn build() -> Result<()> {
    process::run(&mut npm(["run", "--silent", "build"]))
}

/// A command of npm, in the dashboard's folder.
pub(crate) fn npm<const N: usize>(args: [&str; N]) -> Command {
    program_in(&folder(), "npm", args)
}

/// A program that npm installed.
pub(crate) fn npx<const N: usize>(args: [&str; N]) -> Command {
    program_in(&folder(), "npx", args)
}

/// A program of Node's, in a folder of its.
pub(crate) fn program_in<const N: usize>(folder: &Path, name: &str, args: [&str; N]) -> Command {
    let mut command = Command::new(name);
    command.args(args).current_dir(folder);
    command
}

fn has_npm() -> bool {
    process::works(Command::new("npm").arg("--version"))
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|about| about.modified()).ok()
}

/// Whether the packages are not there, or older than the list of them.
fn is_stale(listed: Option<SystemTime>, installed: Option<SystemTime>) -> bool {
    match (listed, installed) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(listed), Some(installed)) => installed < listed,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn packages_are_installed_when_missing_or_older_than_their_list() {
        let early = SystemTime::UNIX_EPOCH;
        let late = early + Duration::from_secs(1);
        assert!(is_stale(Some(early), None));
        assert!(is_stale(Some(late), Some(early)));
        assert!(!is_stale(Some(early), Some(late)));
        assert!(!is_stale(Some(early), Some(early)));
        assert!(!is_stale(None, Some(early)));
    }
}
