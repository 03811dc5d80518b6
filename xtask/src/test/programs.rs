//! Programs that tests run and that a machine may lack: installed from the system's packages where that is possible, else
//! named in one line.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process;

/// A program and the Debian package that has it.
struct NeededProgram {
    program: &'static str,
    package: &'static str,
}

/// The sandbox of agents, and the shells that completions are tested in.
const OF_TESTS: [NeededProgram; 3] = [
    NeededProgram { program: "bwrap", package: "bubblewrap" },
    NeededProgram { program: "zsh", package: "zsh" },
    NeededProgram { program: "fish", package: "fish" },
];

/// Installs what the tests of the workspace need, or says what to install.
pub(super) fn for_tests() -> Result<()> {
    let path = env::var_os("PATH").unwrap_or_default();
    let missing = || {
        let lacks = |needed: &&NeededProgram| find(needed.program, &path).is_none();
        OF_TESTS.iter().filter(lacks).map(|needed| needed.package).collect::<Vec<_>>()
    };
    let packages = missing();
    if packages.is_empty() {
        return Ok(());
    }
    install(&packages)?;
    let packages = missing();
    if !packages.is_empty() {
        let packages = packages.join(" ");
        bail!("tests need programs that are not on PATH; install the packages: {packages}");
    }
    Ok(())
}

/// Installs packages of Debian's as root; does nothing elsewhere.
pub(super) fn install(packages: &[&str]) -> Result<()> {
    if !is_root() || !process::works(Command::new("apt-get").arg("--version")) {
        return Ok(());
    }
    let apt = |args: &[&str]| {
        process::run(Command::new("apt-get").args(args).args(["-q"]).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update"])?;
    apt(&[&["install", "-y"], packages].concat())
}

/// The first file of that name in the folders of a PATH.
pub(super) fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Asked of the system's own tool: to know it otherwise would take a package more.
fn is_root() -> bool {
    process::read(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}
