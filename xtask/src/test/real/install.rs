//! Installing packages of npm and Python, one folder each: there and whole, or not there.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::packages::Package;
use crate::process;

pub(super) fn is_there(folder: &Path, package: &Package) -> bool {
    folder.join(package.folder()).is_dir()
}

pub(super) fn all(folder: &Path, packages: &[&Package]) -> Result<()> {
    for program in ["node", "npm"] {
        if !process::works(Command::new(program).arg("--version")) {
            bail!("`{program}` does not run: the real agents need Node 20 or newer with npm on PATH");
        }
    }
    for (number, package) in (1..).zip(packages) {
        eprint!("== packages {number}/{}: ", packages.len());
        needed(folder, package)?;
    }
    Ok(())
}

/// Installs the package, unless it is there.
pub(super) fn needed(folder: &Path, package: &Package) -> Result<()> {
    let spec = package.spec();
    if is_there(folder, package) {
        eprintln!("{spec} is there");
        return Ok(());
    }
    eprintln!("{spec} is being installed in {}", folder.display());
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    one(folder, package).with_context(|| format!("cannot install {spec}"))
}

/// Installs beside the final place and renames, so that a run cut short leaves nothing that looks whole.
fn one(folder: &Path, package: &Package) -> Result<()> {
    let partial = folder.join(format!("{}.{}.partial", package.folder(), std::process::id()));
    fs::create_dir(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
    let whole = folder.join(package.folder());
    let fetched =
        if package.is_pypi() { pip(&partial, package) } else { process::run(&mut npm(&partial, package)) };
    let installed = fetched.and_then(|()| match fs::rename(&partial, &whole) {
        // Another run was quicker, with the same package.
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
        renamed => renamed.with_context(|| format!("cannot create {}", whole.display())),
    });
    if partial.exists() {
        let _ = fs::remove_dir_all(&partial);
    }
    installed
}

fn npm(into: &Path, package: &Package) -> Command {
    let mut command = Command::new("npm");
    command.args(["install", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]);
    command.arg("--prefix").arg(into).arg(package.spec()).args(&package.beside);
    command.current_dir(into).stdin(Stdio::null());
    command
}

/// A virtual environment with the package in it. It is moved afterwards, so its programs are run with `python -m`: the
/// scripts in it name the place where they were made.
fn pip(into: &Path, package: &Package) -> Result<()> {
    process::run(Command::new("python3").args(["-m", "venv"]).arg(into).stdin(Stdio::null()))?;
    let mut command = Command::new(into.join("bin/python"));
    command.args(["-m", "pip", "install", "--quiet", "--no-input", &package.spec()]);
    process::run(command.stdin(Stdio::null()))
}
