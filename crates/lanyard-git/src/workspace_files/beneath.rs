//! Files below a root, opened so that neither the open nor a read can wait for anything but the disk. Blocks.
//!
//! A path is resolved first, then walked name by name without following links: a name that becomes a link in between
//! is refused. The kind of a file is checked before it is opened, so that no device is touched, and again on what was
//! opened.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, ftruncate, mkdirat, openat, statat};
use rustix::io::Errno;

use super::FileError;

/// Names below a root that belong to git, wherever they stand.
const GIT: &str = ".git";
/// Without waiting for the other end of a FIFO or for the holder of a lease, and never through a link.
const CAREFULLY: OFlags =
    OFlags::NONBLOCK.union(OFlags::NOFOLLOW).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// For names below it only, where the system can open a folder without reading it.
#[cfg(target_os = "linux")]
const PASSED: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASSED: OFlags = OFlags::RDONLY;
pub(super) const FOLDER: OFlags =
    PASSED.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Reads a regular file of at most `max` bytes. Links are followed as long as they stay below `root`; one that leads
/// nowhere is not the same as no file.
pub fn read(root: &Path, path: &Path, max: u64) -> Result<Vec<u8>, FileError> {
    let root = root.canonicalize()?;
    let whole = root.join(path);
    let real = whole
        .canonicalize()
        .map_err(|error| if whole.is_symlink() { FileError::NotRegular } else { error.into() })?;
    bounded(open(&root, below(&root, &real)?)?, max)
}

/// The same for a path that no link may be part of.
pub fn read_plain(root: &Path, path: &Path, max: u64) -> Result<Vec<u8>, FileError> {
    bounded(open(root, path)?, max)
}

/// Writes a regular file below `root`, and the folders above it. A link that leads nowhere is not followed.
pub fn write(root: &Path, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let root = root.canonicalize()?;
    let real = place(&root, path)?;
    let (folders, name) = names(below(&root, &real)?)?;
    let mut at = root_of(&root)?;
    for folder in folders {
        at = match openat(&at, folder, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) => {
                mkdirat(&at, folder, Mode::from_raw_mode(0o777))?;
                openat(&at, folder, FOLDER, Mode::empty())?
            }
            opened => opened?,
        };
    }
    let how = OFlags::WRONLY | CAREFULLY;
    let file = match kind(&at, name) {
        Ok(FileType::RegularFile) => openat(&at, name, how, Mode::empty())?,
        Ok(_) => return Err(FileError::NotRegular),
        Err(FileError::Missing) => {
            openat(&at, name, how | OFlags::CREATE | OFlags::EXCL, Mode::from_raw_mode(0o666))?
        }
        Err(error) => return Err(error),
    };
    let mut file = regular(file)?;
    ftruncate(&file, 0)?;
    Ok(file.write_all(bytes)?)
}

/// A folder below `root`, or `root` itself, without links.
pub fn folder(root: &Path, path: &Path) -> Result<PathBuf, FileError> {
    let root = root.canonicalize()?;
    let real = root.join(path).canonicalize()?;
    if !real.starts_with(&root) {
        return Err(FileError::Outside { root });
    }
    if real.is_dir() { Ok(real) } else { Err(FileError::Missing) }
}

/// Opens a regular file of git's own folder, or one that Lanyard made: links are followed, nothing is waited for.
pub fn open_regular(path: &Path) -> Result<File, FileError> {
    let about = rustix::fs::stat(path)?;
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return Err(FileError::NotRegular);
    }
    let how = OFlags::RDONLY | CAREFULLY.difference(OFlags::NOFOLLOW);
    regular(openat(CWD, path, how, Mode::empty())?)
}

/// All of such a file, of at most `max` bytes.
pub fn read_regular(path: &Path, max: u64) -> Result<Vec<u8>, FileError> {
    bounded(open_regular(path)?, max)
}

/// Opens a regular file for reading, at a path below `root` that no link may be part of.
pub fn open(root: &Path, rest: &Path) -> Result<File, FileError> {
    let (folders, name) = names(rest)?;
    let mut at = root_of(root)?;
    for folder in folders {
        at = openat(&at, folder, FOLDER, Mode::empty())?;
    }
    if kind(&at, name)? != FileType::RegularFile {
        return Err(FileError::NotRegular);
    }
    regular(openat(&at, name, OFlags::RDONLY | CAREFULLY, Mode::empty())?)
}

fn root_of(root: &Path) -> Result<OwnedFd, FileError> {
    Ok(openat(CWD, root, FOLDER, Mode::empty())?)
}

fn kind(at: &OwnedFd, name: &OsStr) -> Result<FileType, FileError> {
    Ok(FileType::from_raw_mode(statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode))
}

/// What was opened, if it is what it was taken for.
fn regular(file: OwnedFd) -> Result<File, FileError> {
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
    if kind == FileType::RegularFile { Ok(File::from(file)) } else { Err(FileError::NotRegular) }
}

/// Reads to the end, whatever size the file said it has.
fn bounded(file: File, max: u64) -> Result<Vec<u8>, FileError> {
    if file.metadata()?.len() > max {
        return Err(FileError::TooLarge { max });
    }
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(FileError::TooLarge { max }) } else { Ok(bytes) }
}

/// The folders of a path below its root, and the name of its file.
fn names(rest: &Path) -> Result<(Vec<&OsStr>, &OsStr), FileError> {
    let mut names = Vec::new();
    for part in rest.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
                return Err(FileError::NotRegular);
            }
        }
    }
    let name = names.pop().ok_or(FileError::NotRegular)?;
    Ok((names, name))
}

/// A resolved path as seen from a resolved root. Git's own folders are no part of a workspace.
fn below<'a>(root: &Path, real: &'a Path) -> Result<&'a Path, FileError> {
    let rest = real.strip_prefix(root).map_err(|_| FileError::Outside { root: root.to_owned() })?;
    let of_git = rest.components().any(|part| part.as_os_str().eq_ignore_ascii_case(GIT));
    if of_git { Err(FileError::OfGit) } else { Ok(rest) }
}

/// The resolved path of a write: of the file if there is one, else below the nearest folder that exists.
fn place(root: &Path, path: &Path) -> Result<PathBuf, FileError> {
    let whole = root.join(path);
    if whole.components().any(|part| part == Component::ParentDir) {
        return Err(FileError::Outside { root: root.to_owned() });
    }
    let mut missing: Vec<OsString> = Vec::new();
    let mut at = whole.as_path();
    loop {
        match at.symlink_metadata() {
            Ok(_) => {
                let real = at.canonicalize()?;
                return Ok(missing.iter().rev().fold(real, |real, part| real.join(part)));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else {
                    return Err(error.into());
                };
                missing.push(name.to_owned());
                at = parent;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
#[path = "beneath_tests.rs"]
mod tests;
