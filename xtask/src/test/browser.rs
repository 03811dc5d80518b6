//! The browser tests: a real Chromium and a real Firefox, the real dashboard, the real daemon.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::programs;
use crate::{artifact, editor, process, up, web};

/// A browser that tests run in: the variable that names one, its names by who packages it, and Debian's package.
struct Wanted {
    variable: &'static str,
    names: &'static [&'static str],
    package: &'static str,
}

const CHROMIUM: Wanted = Wanted {
    variable: "CHROMIUM",
    names: &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
    package: "chromium",
};
const FIREFOX: Wanted =
    Wanted { variable: "FIREFOX", names: &["firefox-esr", "firefox"], package: "firefox-esr" };

/// The command that runs them, with everything it needs built and installed.
pub(super) fn command() -> Result<Command> {
    web::install()?;
    let firefox = FIREFOX.find()?;
    let mut command = with_all(web::npx(["playwright", "test", "--retries=0"]), binary)?;
    command.env(FIREFOX.variable, firefox);
    Ok(command)
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
    let chromium = CHROMIUM.find()?;
    // Always: what lies there may be of another day.
    web::build()?;
    command
        .env(CHROMIUM.variable, chromium)
        .env("LANYARD_BIN", binary()?)
        .env("LANYARD_DASHBOARD_DIR", web::dist());
    Ok(command)
}

/// The program as the tests step built it: the same packages with the same features, so nothing is compiled again.
fn binary() -> Result<PathBuf> {
    let flags = ["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"];
    let messages = process::read(&mut process::cargo(flags))?;
    artifact::program("lanyard", &messages).context("cargo built no program called `lanyard`")
}

impl Wanted {
    /// The browser there is, or else the one the system's packages have.
    fn find(&self) -> Result<PathBuf> {
        if let Some(named) = env::var_os(self.variable).filter(|named| !named.is_empty()) {
            return Ok(named.into());
        }
        let look = || env::var_os("PATH").and_then(|path| self.on_path(&path));
        if let Some(found) = look() {
            return Ok(found);
        }
        programs::install(&[self.package])?;
        let Self { variable, package, .. } = self;
        look().with_context(|| {
            format!("no {package} is on PATH; install it, or name a browser with {variable}=/path")
        })
    }

    fn on_path(&self, path: &OsStr) -> Option<PathBuf> {
        self.names.iter().find_map(|name| programs::find(name, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_browser_by_name_is_taken_wherever_it_is() {
        let folder = env::temp_dir().join(format!("xtask-browser-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("google-chrome"), "").unwrap();
        assert_eq!(CHROMIUM.on_path(folder.as_os_str()), Some(folder.join("google-chrome")));
        std::fs::write(folder.join("chromium"), "").unwrap();
        assert_eq!(CHROMIUM.on_path(folder.as_os_str()), Some(folder.join("chromium")));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(CHROMIUM.on_path(folder.as_os_str()), None);
    }
}
