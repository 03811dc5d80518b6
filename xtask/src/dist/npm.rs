//! The npm packages: `lanyard`, a script that starts the program, and one with the program for this platform.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::published::NPM_SCOPE;
use super::{Release, stage};
use crate::process;

const LICENCE: &str = "MIT OR Apache-2.0";
const NODE: &str = ">=18";
/// Platforms `lanyard` looks for. npm leaves out an optional package that does not exist or is for another platform.
const PLATFORMS: [&str; 4] = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];

pub(super) fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let folder = release.scratch.join("npm");
    let program = program_package(release, &folder.join("program"))?;
    let starter = starter_package(release, &folder.join("starter"))?;
    Ok(vec![starter, program])
}

fn program_package(release: &Release, folder: &Path) -> Result<PathBuf> {
    let (os, cpu) = release.platform.npm;
    for name in ["bin/lanyard", "bin/lanyard-shim"] {
        stage::copy(&release.tree.join(name), &folder.join(name), 0o755)?;
    }
    let mut manifest = json!({
        "name": format!("{NPM_SCOPE}/{os}-{cpu}"),
        "version": release.version,
        "description": format!("The program of lanyard for {os} on {cpu}"),
        "license": LICENCE,
        "os": [os],
        "cpu": [cpu],
        "files": ["bin", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"],
        "preferUnplugged": true,
    });
    if os == "linux" {
        manifest["libc"] = json!(["glibc"]);
    }
    pack(release, folder, &manifest)
}

fn starter_package(release: &Release, folder: &Path) -> Result<PathBuf> {
    let from = process::root().join("packaging/npm");
    stage::copy(&from.join("lanyard.js"), &folder.join("bin/lanyard.js"), 0o755)?;
    stage::copy(&from.join("README.md"), &folder.join("README.md"), 0o644)?;
    let platforms: serde_json::Map<String, Value> = PLATFORMS
        .iter()
        .map(|name| (format!("{NPM_SCOPE}/{name}"), Value::from(release.version.as_str())))
        .collect();
    let manifest = json!({
        "name": "lanyard",
        "version": release.version,
        "description": "A control plane for AI-agent sessions",
        "license": LICENCE,
        "bin": { "lanyard": "bin/lanyard.js" },
        "engines": { "node": NODE },
        "files": ["bin", "LICENSE-MIT", "LICENSE-APACHE"],
        "optionalDependencies": platforms,
    });
    pack(release, folder, &manifest)
}

/// Writes the manifest and the licences, and packs the folder.
fn pack(release: &Release, folder: &Path, manifest: &Value) -> Result<PathBuf> {
    stage::write(&folder.join("package.json"), &(serde_json::to_string_pretty(manifest)? + "\n"))?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"] {
        stage::copy(&release.tree.join(stage::DOC).join(name), &folder.join(name), 0o644)?;
    }
    let mut command = Command::new("npm");
    // Nothing is asked of a registry.
    command.args([
        "pack",
        "--json",
        "--offline",
        "--ignore-scripts",
        "--loglevel=error",
        "--pack-destination",
    ]);
    command.arg(&release.scratch).current_dir(folder);
    let told: Value = serde_json::from_str(&process::read(&mut command).context("npm packages need npm")?)
        .context("`npm pack` printed something unknown")?;
    // A list in older releases of npm, a table by name in newer ones.
    let first = told.get(0).or_else(|| told.as_object().and_then(|table| table.values().next()));
    let name = first.and_then(|about| about["filename"].as_str()).context("`npm pack` names no file")?;
    // Older releases of npm name the scope as it is in the manifest.
    let name = name.trim_start_matches('@').replace('/', "-");
    let made = release.out.join(&name);
    fs::rename(release.scratch.join(&name), &made).with_context(|| format!("npm made no {name}"))?;
    Ok(made)
}
