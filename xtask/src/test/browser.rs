//! The browser tests: a real Chromium, the real dashboard, the real daemon.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::programs;
use crate::{artifact, editor, process, up, web};

/// What the browser is called, by who packages it.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The command that runs them, with everything it needs built and installed.
pub(super) fn command() -> Result<Command> {
    web::install()?;
    with_all(web::npx(["playwright", "test", "--retries=0"]), binary)
}

/// The command that tries the VS Code extension in code-server, which is installed when it is missing.
pub(super) fn editor() -> Result<Command> {
    editor::install()?;
    editor::package()?;
    process::run(&mut editor::npm(["run", "--silent", "code-server"]))?;
    with_all(editor::npx(["playwright", "test", "--retries=0"]), binary)
}

/// The command that measures in a browser, with a release build.
pub(crate) fn bench() -> Result<Command> {
    web::install()?;
    with_all(web::npm(["run", "--silent", "bench"]), || up::build(false, true))
}

fn with_all(mut command: Command, binary: impl FnOnce() -> Result<PathBuf>) -> Result<Command> {
    let chromium = chromium()?;
    // Always: what lies there may be of another day.
    web::build()?;
    command.env("CHROMIUM", chromium).env("LANYARD_BIN", binary()?).env("LANYARD_DASHBOARD_DIR", web::dist());
    Ok(command)
}

/// The program as the tests step built it: the same packages with the same features, so nothing is compiled again.
fn binary() -> Result<PathBuf> {
    let flags = ["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"];
    let messages = process::read(&mut process::cargo(flags))?;
    artifact::program("lanyard", &messages).context("cargo built no program called `lanyard`")
}

/// The browser there is, or else the one the system's packages have.
fn chromium() -> Result<PathBuf> {
    if let Some(named) = env::var_os("CHROMIUM").filter(|named| !named.is_empty()) {
        return Ok(named.into());
    }
    let look = || env::var_os("PATH").and_then(|path| on_path(&path));
    if let Some(found) = look() {
        return Ok(found);
    }
    programs::install(&["chromium"])?;
    match look() {
        Some(found) => Ok(found),
        None => bail!("no Chromium is on PATH; install `chromium`, or name a browser with CHROMIUM=/path"),
    }
}

fn on_path(path: &OsStr) -> Option<PathBuf> {
    NAMES.iter().find_map(|name| programs::find(name, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_browser_by_name_is_taken_wherever_it_is() {
        let folder = env::temp_dir().join(format!("xtask-browser-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("google-chrome"), "").unwrap();
        assert_eq!(on_path(folder.as_os_str()), Some(folder.join("google-chrome")));
        std::fs::write(folder.join("chromium"), "").unwrap();
        assert_eq!(on_path(folder.as_os_str()), Some(folder.join("chromium")));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(on_path(folder.as_os_str()), None);
    }
}
