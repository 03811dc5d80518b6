//! Reading and writing files for an agent. A path is followed to what it really is before it is judged, so that no link
//! leads out of the workspace.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::failed;
use crate::agents::driver::CallError;

/// Bytes of a file that are read for an agent.
const READ_BYTES_MAX: u64 = 10 << 20;

pub(super) fn read(
    workspace: &Path,
    path: &Path,
    line: Option<u64>,
    limit: Option<u64>,
) -> Result<Value, CallError> {
    let real = std::fs::canonicalize(path).map_err(|error| unreadable(path, &error))?;
    inside(workspace, &real, path)?;
    let file = std::fs::File::open(&real).map_err(|error| unreadable(path, &error))?;
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Err(failed(format!("{} is no file", path.display())));
    }
    let mut text = String::new();
    file.take(READ_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| unreadable(path, &error))?;
    if text.len() as u64 > READ_BYTES_MAX {
        return Err(failed(format!("{} has more than {READ_BYTES_MAX} bytes", path.display())));
    }
    if line.is_some() || limit.is_some() {
        let skip = usize::try_from(line.unwrap_or(1).saturating_sub(1)).unwrap_or(usize::MAX);
        let take = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        text = text.split_inclusive('\n').skip(skip).take(take).collect();
    }
    Ok(json!({ "content": text }))
}

pub(super) fn write(workspace: &Path, path: &Path, text: &str) -> Result<Value, CallError> {
    let real = place(path)?;
    inside(workspace, &real, path)?;
    if let Some(folder) = real.parent() {
        std::fs::create_dir_all(folder).map_err(|error| unreadable(path, &error))?;
    }
    std::fs::write(&real, text).map_err(|error| unreadable(path, &error))?;
    Ok(json!({}))
}

/// Where a write would really go: the file if it is there, else below the nearest folder that is.
fn place(path: &Path) -> Result<PathBuf, CallError> {
    if !path.is_absolute() || path.components().any(|part| part == std::path::Component::ParentDir) {
        return Err(failed(format!("{} is no plain absolute path", path.display())));
    }
    // A link that leads nowhere would be followed by the write.
    let mut missing = Vec::new();
    let mut at = path;
    loop {
        match std::fs::symlink_metadata(at) {
            Ok(_) => {
                let real = std::fs::canonicalize(at).map_err(|error| unreadable(path, &error))?;
                return Ok(missing.iter().rev().fold(real, |real, part| real.join(part)));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else {
                    return Err(unreadable(path, &error));
                };
                missing.push(name.to_owned());
                at = parent;
            }
            Err(error) => return Err(unreadable(path, &error)),
        }
    }
}

/// Whether something lies in the workspace, and not in git's own folder of it.
fn inside(workspace: &Path, real: &Path, asked: &Path) -> Result<(), CallError> {
    let root = std::fs::canonicalize(workspace).map_err(|error| unreadable(workspace, &error))?;
    match real.strip_prefix(&root) {
        Ok(rest) if !rest.starts_with(".git") => Ok(()),
        Ok(_) => Err(failed(format!("{} belongs to git", asked.display()))),
        Err(_) => Err(failed(format!("{} is outside the workspace", asked.display()))),
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> CallError {
    let missing = error.kind() == std::io::ErrorKind::NotFound;
    CallError { message: format!("{}: {error}", path.display()), missing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_workspace_can_be_read_in_part_and_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/file.txt");
        write(folder.path(), &path, "one\ntwo\nthree\n").unwrap();
        let text = |line, limit| read(folder.path(), &path, line, limit).unwrap()["content"].clone();
        assert_eq!(text(None, None), "one\ntwo\nthree\n");
        assert_eq!(text(Some(2), Some(1)), "two\n");
        assert_eq!(text(Some(9), None), "");
    }

    #[test]
    fn nothing_leads_out_of_the_workspace() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("new"), folder.path().join("dangling")).unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        let refused = |path: PathBuf| {
            assert!(read(folder.path(), &path, None, None).is_err(), "{}", path.display());
            assert!(write(folder.path(), &path, "x").is_err(), "{}", path.display());
        };
        refused(outside.path().join("secret"));
        refused(folder.path().join("link/secret"));
        refused(folder.path().join("dangling"));
        refused(folder.path().join("../secret"));
        refused(folder.path().join("a/../../secret"));
        refused(folder.path().join(".git/config"));
        refused(PathBuf::from("relative"));
        assert!(!outside.path().join("new").exists());
        assert!(read(folder.path(), &folder.path().join("none"), None, None).unwrap_err().missing);
    }
}
