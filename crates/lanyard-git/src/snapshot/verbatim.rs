//! Files that git would not give back byte for byte: mixed line ends under `text=auto`, an encoding, an `$Id$`.
//!
//! Only files that were touched since git last saw them are asked about: what git checked out itself comes back the
//! same way. Each is written out as git would, beside the worktree, and compared. Not caught: a file that was
//! committed in a form its conversions do not give back and not touched since, which comes back as a checkout writes it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::SnapshotError;
use super::changes::on_disk;
use super::git::{WORK_MAX, records};
use super::repo::{Repo, Temp, io_error};
use crate::workspace_files::{FileError, beneath};

/// Larger files are left to git's conversions.
const FILE_MAX: u64 = 16 * 1024 * 1024;
/// More files than this in one checkpoint are a mass change of line ends; the rest goes through git's conversions.
const FILES_MAX: usize = 4_000;
const ATTRIBUTES: [&str; 6] = ["text", "eol", "crlf", "filter", "ident", "working-tree-encoding"];

/// Those of `paths` whose bytes on disk are not what a checkout from `index` would write.
pub(super) fn find(
    repo: &Repo,
    index: &Temp,
    paths: &BTreeSet<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, SnapshotError> {
    let small = |path: &&Vec<u8>| {
        fs::symlink_metadata(on_disk(&repo.top, path))
            .is_ok_and(|data| data.is_file() && data.len() <= FILE_MAX)
    };
    let paths: Vec<&Vec<u8>> = paths.iter().filter(small).take(FILES_MAX).collect();
    let paths = converted(repo, &paths)?;
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let folder = repo.temp_folder()?;
    write_out(repo, index, &paths, &folder)?;
    let differs = |path: &Vec<u8>| {
        let ours = read(&repo.top, path);
        let gits = read(&folder.path, path);
        match (ours, gits) {
            (Ok(ours), Ok(gits)) => ours != gits,
            // It vanished meanwhile, or became something that is not kept.
            (Err(_), _) => false,
            // Its conversion failed: it can only be kept as it is.
            (Ok(_), Err(_)) => true,
        }
    };
    Ok(paths.into_iter().filter(differs).collect())
}

/// A file of a worktree, below which no link is followed.
pub(super) fn read(top: &Path, path: &[u8]) -> Result<Vec<u8>, FileError> {
    beneath::read_plain(top, Path::new(OsStr::from_bytes(path)), FILE_MAX)
}

/// Writes files as a checkout would into another folder.
pub(super) fn write_out(
    repo: &Repo,
    index: &Temp,
    paths: &[Vec<u8>],
    folder: &Temp,
) -> Result<(), SnapshotError> {
    let mut prefix = std::ffi::OsString::from("--prefix=");
    prefix.push(&folder.path);
    prefix.push("/");
    let args =
        ["checkout-index".as_ref(), "-q".as_ref(), "-z".as_ref(), "--stdin".as_ref(), prefix.as_os_str()];
    // Paths that cannot be written are missed by the caller.
    repo.git.with_index(&index.path).with_time(WORK_MAX).run(&args, &joined(paths), FILES_MAX)?;
    Ok(())
}

/// Replaces a file's content and keeps its mode. Never follows a link.
pub(super) fn overwrite(path: &Path, bytes: &[u8]) -> Result<(), SnapshotError> {
    let write = || -> io::Result<()> {
        let mode = fs::symlink_metadata(path)?.mode() & 0o777;
        fs::remove_file(path)?;
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(bytes)
    };
    write().map_err(|source| io_error(&format!("write {}", path.display()), source))
}

/// Those of `paths` that git converts on their way in or out.
fn converted(repo: &Repo, paths: &[&Vec<u8>]) -> Result<Vec<Vec<u8>>, SnapshotError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let autocrlf = repo.git.run(&["config", "--get", "core.autocrlf"], b"", FILES_MAX)?;
    let autocrlf = String::from_utf8_lossy(&autocrlf.stdout).trim().to_ascii_lowercase();
    let owned = || paths.iter().map(|path| (*path).clone());
    if !matches!(autocrlf.as_str(), "" | "false" | "no" | "off" | "0") {
        return Ok(owned().collect());
    }
    let mut args = vec!["check-attr", "-z", "--stdin"];
    args.extend(ATTRIBUTES);
    let owned: Vec<Vec<u8>> = owned().collect();
    let list = repo.git.read(&args, &joined(&owned))?;
    let list: Vec<&[u8]> = records(&list).collect();
    let converted: BTreeSet<&[u8]> = list
        .chunks_exact(3)
        .filter(|answer| !matches!(answer[2], b"unspecified" | b"unset"))
        .map(|answer| answer[0])
        .collect();
    Ok(owned.into_iter().filter(|path| converted.contains(path.as_slice())).collect())
}

/// A list that ends each path with a zero byte.
pub(super) fn joined(paths: &[Vec<u8>]) -> Vec<u8> {
    let mut list = Vec::new();
    for path in paths {
        list.extend_from_slice(path);
        list.push(0);
    }
    list
}
