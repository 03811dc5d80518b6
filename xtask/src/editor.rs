//! The VS Code extension in `editors/vscode/`. Its session page is made from the dashboard, with the dashboard's tools.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{process, web};

#[derive(Debug, Deserialize)]
struct Manifest {
    name: String,
    version: String,
}

fn folder() -> PathBuf {
    process::root().join("editors/vscode")
}

/// The packages of the extension and of the dashboard, and the types that the dashboard's modules share.
pub(crate) fn install() -> Result<()> {
    web::install()?;
    web::install_in(&folder())?;
    process::run(&mut web::npm(["run", "--silent", "types"]))
}

/// Whether its packages were installed before: packaging installs nothing for it.
pub(crate) fn is_installed() -> bool {
    folder().join("node_modules/.package-lock.json").is_file()
}

/// Makes the `.vsix` and checks its size and contents.
pub(crate) fn package() -> Result<PathBuf> {
    process::run(&mut npm(["run", "--silent", "package"]))?;
    let text = std::fs::read_to_string(folder().join("package.json"))?;
    let Manifest { name, version } =
        serde_json::from_str(&text).context("editors/vscode/package.json is no manifest")?;
    Ok(folder().join("dist").join(format!("{name}-{version}.vsix")))
}

/// A command of npm, in the extension's folder.
pub(crate) fn npm<const N: usize>(args: [&str; N]) -> Command {
    web::program_in(&folder(), "npm", args)
}

/// A program that npm installed there.
pub(crate) fn npx<const N: usize>(args: [&str; N]) -> Command {
    web::program_in(&folder(), "npx", args)
}
