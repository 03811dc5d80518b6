//! The tarball: the staged tree in one folder, in an order and with times that do not depend on the machine.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::Release;
use crate::process;

pub(super) fn make(release: &Release) -> Result<PathBuf> {
    let name = release.tree.file_name().context("the tree has a name")?;
    let tar = release.scratch.join("tree.tar");
    // Options of GNU tar.
    let mut command = Command::new("tar");
    command
        .args([
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mode=go=rX,u+rw",
            "--format=ustar",
        ])
        .arg(format!("--mtime=@{}", release.epoch))
        .arg("-cf")
        .arg(&tar)
        .arg("-C")
        .arg(&release.scratch)
        .arg(name);
    process::run(&mut command).context("packages are made with GNU tar")?;
    let level = if release.fast { "-1" } else { "-9" };
    // Without the name and the time of the file.
    process::run(Command::new("gzip").args(["--no-name", "--force", level]).arg(&tar))?;
    let made = release.out.join(format!("{}.tar.gz", name.to_string_lossy()));
    std::fs::rename(tar.with_extension("tar.gz"), &made)?;
    Ok(made)
}
