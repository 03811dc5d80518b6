//! Puts the dashboard's files into a release build. A debug build carries none, so that it is never built again because
//! of them; `LANYARD_DASHBOARD_DIR` shows it where they are.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};

/// What `npm run build` writes, from this crate's folder.
const DIST: &str = "../../web/dist";
/// Set by `cargo xtask up` once the dashboard is built: a folder that is missing cannot be watched.
const BUILT: &str = "LANYARD_DASHBOARD_BUILT";

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    if variable("PROFILE")? == "release" {
        let dist = Path::new(&variable("CARGO_MANIFEST_DIR")?).join(DIST);
        if dist.is_dir() {
            println!("cargo::rerun-if-changed={DIST}");
            collect(&dist.canonicalize()?, "", &mut files)?;
        } else {
            println!("cargo::rerun-if-env-changed={BUILT}");
        }
    }
    // In the order in which they are looked up.
    files.sort();
    let rows: String =
        files.iter().map(|(name, path)| format!("    ({name:?}, include_bytes!({path:?})),\n")).collect();
    let table = format!("pub(super) const FILES: &[(&str, &[u8])] = &[\n{rows}];\n");
    std::fs::write(Path::new(&variable("OUT_DIR")?).join("dashboard.rs"), table)
}

/// All files below a folder, with the names they have in an address.
fn collect(folder: &Path, before: &str, files: &mut Vec<(String, PathBuf)>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name =
            entry.file_name().into_string().map_err(|name| Error::other(format!("{name:?} is no UTF-8")))?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{before}{name}/"), files)?;
        } else if Path::new(&name).extension().is_none_or(|ending| ending != "map") {
            files.push((format!("{before}{name}"), entry.path()));
        }
    }
    Ok(())
}

fn variable(name: &str) -> Result<String> {
    std::env::var(name).map_err(|error| Error::other(format!("{name}: {error}")))
}
