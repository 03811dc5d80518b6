//! The regular files below a root, found without following links and without opening any. Blocks.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};

use super::FileError;
use super::beneath::FOLDER;

/// A file as its folder lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Its path below the root.
    pub path: PathBuf,
    pub bytes: u64,
    /// Time of the last change, in milliseconds since 1970.
    pub modified_ms: i64,
}

/// What a listing found.
#[derive(Debug, Default)]
pub struct ListedFiles {
    pub files: Vec<ListedFile>,
    /// There are more names than were looked at.
    pub cut: bool,
}

/// Lists files below `root`, in folders up to `depth` levels below it. A link, FIFO, socket or device is left out, also
/// where it stands in the place of a folder. At most `max` names are looked at; in each folder the highest come first.
pub fn files(
    root: &Path,
    depth: usize,
    max: usize,
    wanted: &dyn Fn(&Path) -> bool,
) -> Result<ListedFiles, FileError> {
    let root = root.canonicalize()?;
    let top = openat(CWD, &root, FOLDER, Mode::empty())?;
    let mut walk = Walk { left: max, wanted, found: ListedFiles::default() };
    walk.folder(&top, Path::new(""), depth)?;
    Ok(walk.found)
}

struct Walk<'a> {
    left: usize,
    wanted: &'a dyn Fn(&Path) -> bool,
    found: ListedFiles,
}

impl Walk<'_> {
    fn folder(&mut self, at: &OwnedFd, place: &Path, depth: usize) -> Result<(), FileError> {
        for name in self.names(at)? {
            let path = place.join(&name);
            // What is gone since, or may not be looked at, is no file to list.
            let Ok(about) = statat(at, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            match FileType::from_raw_mode(about.st_mode) {
                FileType::RegularFile if (self.wanted)(&path) => self.found.files.push(ListedFile {
                    path,
                    bytes: u64::try_from(about.st_size).unwrap_or(0),
                    modified_ms: millis(&about),
                }),
                FileType::Directory if depth > 0 => {
                    let Ok(below) = openat(at, &name, FOLDER, Mode::empty()) else { continue };
                    self.folder(&below, &path, depth - 1)?;
                }
                FileType::RegularFile
                | FileType::Directory
                | FileType::Symlink
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => {}
            }
        }
        Ok(())
    }

    /// The names in a folder, highest first, as far as there is room.
    fn names(&mut self, at: &OwnedFd) -> Result<Vec<String>, FileError> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = Dir::new(openat(at, ".", how, Mode::empty())?)?;
        let mut names = Vec::new();
        for entry in folder {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            if self.left == 0 {
                self.found.cut = true;
                break;
            }
            self.left -= 1;
            names.push(name.to_owned());
        }
        names.sort_unstable_by(|one, other| other.cmp(one));
        Ok(names)
    }
}

fn millis(about: &rustix::fs::Stat) -> i64 {
    let nanos = i64::try_from(about.st_mtime_nsec).unwrap_or(0);
    about.st_mtime.saturating_mul(1_000).saturating_add(nanos / 1_000_000)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn only_regular_files_are_listed_and_no_link_is_followed() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = folder.path();
        fs::write(outside.path().join("secret.jsonl"), "s").unwrap();
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        for (path, text) in
            [("a/one.jsonl", "1"), ("a/two.txt", "2"), ("a/b/three.jsonl", "333"), ("a/b/c/four.jsonl", "4")]
        {
            fs::write(root.join(path), text).unwrap();
        }
        symlink(outside.path(), root.join("linked")).unwrap();
        symlink(outside.path().join("secret.jsonl"), root.join("a/secret.jsonl")).unwrap();
        assert!(Command::new("mkfifo").arg(root.join("a/fifo.jsonl")).status().unwrap().success());
        let jsonl = |path: &Path| path.extension().is_some_and(|end| end == "jsonl");
        let found = files(root, 2, 100, &jsonl).unwrap();
        let listed: Vec<_> =
            found.files.iter().map(|file| (file.path.to_str().unwrap(), file.bytes)).collect();
        assert_eq!(listed, [("a/one.jsonl", 1), ("a/b/three.jsonl", 3)]);
        assert!(!found.cut && found.files.iter().all(|file| file.modified_ms > 0));
        assert!(matches!(files(&root.join("none"), 2, 100, &jsonl), Err(FileError::Missing)));
        assert!(files(root, 2, 3, &jsonl).unwrap().cut, "no more than three names are looked at");
    }
}
