//! Folders as callers name them: `~/` means the home of the daemon's user, everything else is a path from the root.

use std::path::Path;

use lanyard_core::refusals;

use crate::workspace_files;

refusals! {
    /// Why a folder cannot be worked in.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum PathRefusal {
        Relative { path: String } => "workspace_relative", Invalid
            ("the workspace `{path}` is not an absolute path")
            ("give the whole path, or one that begins with `~/`");
        Missing { path: String } => "workspace_missing", Invalid
            ("there is no folder {path} on the daemon's machine") ("create the folder, or name another one");
    }
}

/// The path with the home of the daemon's user in place of a leading `~`.
#[must_use]
pub fn expanded(path: &str) -> String {
    expand(path, std::env::var("HOME").ok().as_deref())
}

fn expand(path: &str, home: Option<&str>) -> String {
    let below = if path == "~" { Some("") } else { path.strip_prefix("~/") };
    match (below, home.filter(|home| home.starts_with('/'))) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(below), Some(home)) => format!("{}/{below}", home.trim_end_matches('/')),
        (Some(_), None) | (None, _) => path.to_owned(),
    }
}

/// Whether an agent can work there.
pub async fn check(path: &str) -> Result<(), PathRefusal> {
    if !path.starts_with('/') {
        return Err(PathRefusal::Relative { path: path.to_owned() });
    }
    if !workspace_files::is_folder(Path::new(path)).await {
        return Err(PathRefusal::Missing { path: path.to_owned() });
    }
    Ok(())
}

/// The folder of a task, as it is kept: whole, and there. Nothing where none is named.
pub async fn folder(named: Option<String>) -> Result<Option<String>, PathRefusal> {
    let Some(path) = named.map(|path| expanded(&path)) else { return Ok(None) };
    check(&path).await?;
    Ok(Some(path))
}

/// The place of a plan: a folder that is there, or just a name.
pub async fn place(named: Option<String>) -> Result<Option<String>, PathRefusal> {
    match named.map(|path| expanded(&path)) {
        Some(path) if path.starts_with('/') => folder(Some(path)).await,
        name => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FND-D12.
    #[test]
    fn fnd_d12_a_tilde_is_the_home_of_the_daemons_user() {
        for (path, whole) in [
            ("~/src/web", "/home/ann/src/web"),
            ("~", "/home/ann"),
            ("~bob/src", "~bob/src"),
            ("/srv/~/x", "/srv/~/x"),
            ("src", "src"),
        ] {
            assert_eq!(expand(path, Some("/home/ann")), whole);
        }
        assert_eq!(expand("~/src", None), "~/src");
    }
}
