//! The tree of files that all packages are made from: `bin/` and `share/` as below any prefix, and the installer.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

use super::Release;
use super::shipped::{self, Shipped};
use crate::process;

/// Each shell, and where it looks for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/lanyard"),
    ("zsh", "share/zsh/site-functions/_lanyard"),
    ("fish", "share/fish/vendor_completions.d/lanyard.fish"),
];
pub(super) const MAN: &str = "share/man/man1";
pub(super) const DOC: &str = "share/doc/lanyard";
pub(super) const UNIT: &str = "share/systemd/user/lanyard.service";
/// Stands in the unit for the path of the program.
pub(super) const UNIT_PROGRAM: &str = "@LANYARD@";

pub(super) fn stage(release: &Release, programs: &[PathBuf; 2], shipped: &[Shipped]) -> Result<()> {
    let tree = &release.tree;
    for folder in ["bin", MAN, DOC, "share/systemd/user"] {
        fs::create_dir_all(tree.join(folder))?;
    }
    for (program, name) in programs.iter().zip(["bin/lanyard", "bin/lanyard-shim"]) {
        copy(program, &tree.join(name), 0o755)?;
    }
    let lanyard = tree.join("bin/lanyard");
    for (shell, path) in COMPLETIONS {
        let script = process::read(Command::new(&lanyard).args(["completions", shell]))?;
        write(&tree.join(path), &script)?;
    }
    process::run(Command::new(&lanyard).args(["--quiet", "man"]).arg(tree.join(MAN)))?;
    let root = process::root();
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root.join(name), &tree.join(DOC).join(name), 0o644)?;
    }
    write(&tree.join(DOC).join("THIRD-PARTY.txt"), &shipped::notices(shipped)?)?;
    copy(&root.join("packaging/lanyard.service"), &tree.join(UNIT), 0o644)?;
    copy(&root.join("packaging/install.sh"), &tree.join("install.sh"), 0o755)?;
    settle(tree, release.epoch)
}

/// Sum of the sizes of all files below a folder.
pub(super) fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for path in files(folder)? {
        bytes += fs::metadata(path)?.len();
    }
    Ok(bytes)
}

/// All files below a folder, sorted.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?);
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Gives every file of a tree the same time.
pub(super) fn settle(tree: &Path, epoch: u64) -> Result<()> {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(epoch);
    for path in files(tree)? {
        File::options().append(true).open(&path)?.set_modified(time)?;
    }
    Ok(())
}

pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    mode(path, 0o644)
}

/// Copies a file and gives it a mode.
pub(super) fn copy(from: &Path, to: &Path, bits: u32) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    mode(to, bits)
}

fn mode(path: &Path, bits: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(bits))?)
}
