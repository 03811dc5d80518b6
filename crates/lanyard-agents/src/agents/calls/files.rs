//! Reading and writing files for an agent.

use std::path::Path;

use lanyard_git::workspace_files::{self, FileError};
use serde_json::{Value, json};

use super::failed;
use crate::agents::driver::CallError;

/// Bytes of a file that are read for an agent.
const READ_BYTES_MAX: u64 = 10 << 20;

pub(super) async fn read(
    workspace: &Path,
    path: &Path,
    line: Option<u64>,
    limit: Option<u64>,
) -> Result<Value, CallError> {
    let bytes = workspace_files::read(workspace, whole(path)?, READ_BYTES_MAX).await;
    let bytes = bytes.map_err(|error| unusable(path, &error))?;
    let text = String::from_utf8(bytes);
    let mut text = text.map_err(|_| failed(format!("{}: it is not UTF-8", path.display())))?;
    if line.is_some() || limit.is_some() {
        let skip = usize::try_from(line.unwrap_or(1).saturating_sub(1)).unwrap_or(usize::MAX);
        let take = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        text = text.split_inclusive('\n').skip(skip).take(take).collect();
    }
    Ok(json!({ "content": text }))
}

pub(super) async fn write(workspace: &Path, path: &Path, text: String) -> Result<Value, CallError> {
    let written = workspace_files::write(workspace, whole(path)?, text.into_bytes()).await;
    written.map(|()| json!({})).map_err(|error| unusable(path, &error))
}

/// Agents name files by their whole path.
fn whole(path: &Path) -> Result<&Path, CallError> {
    if path.is_absolute() {
        return Ok(path);
    }
    Err(failed(format!("{} is not an absolute path", path.display())))
}

fn unusable(path: &Path, error: &FileError) -> CallError {
    let missing = matches!(error, FileError::Missing);
    CallError { message: format!("{}: {error}", path.display()), missing }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[tokio::test]
    async fn files_of_the_workspace_can_be_read_in_part_and_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/file.txt");
        write(folder.path(), &path, "one\ntwo\nthree\n".to_owned()).await.unwrap();
        for (line, limit, text) in
            [(None, None, "one\ntwo\nthree\n"), (Some(2), Some(1), "two\n"), (Some(9), None, "")]
        {
            assert_eq!(read(folder.path(), &path, line, limit).await.unwrap()["content"], text);
        }
    }

    #[tokio::test]
    async fn nothing_leads_out_of_the_workspace() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("new"), folder.path().join("dangling")).unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        let refused = [
            outside.path().join("secret"),
            folder.path().join("link/secret"),
            folder.path().join("dangling"),
            folder.path().join("../secret"),
            folder.path().join("a/../../secret"),
            folder.path().join(".git/config"),
            PathBuf::from("relative"),
        ];
        for path in refused {
            assert!(read(folder.path(), &path, None, None).await.is_err(), "{}", path.display());
            assert!(write(folder.path(), &path, "x".to_owned()).await.is_err(), "{}", path.display());
        }
        assert!(!outside.path().join("new").exists());
        let none = read(folder.path(), &folder.path().join("none"), None, None).await;
        assert!(none.unwrap_err().missing);
    }
}
