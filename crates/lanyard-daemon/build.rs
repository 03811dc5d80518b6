//! Puts the dashboard's files into a release build. A debug build carries none, so that it is never built again because
//! of them; `LANYARD_DASHBOARD_DIR` shows it where they are.

use std::ffi::OsStr;
use std::io::{Error, Result};
use std::path::Path;

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
            collect(&dist, "", &mut files)?;
        } else {
            println!("cargo::rerun-if-env-changed={BUILT}");
        }
    }
    // In the order in which they are looked up.
    files.sort();
    let mut table = "pub(super) const FILES: &[(&str, &[u8])] = &[\n".to_owned();
    for name in files {
        // As Rust writes text: whatever is in a name, it stays one. The folder is that of the checkout which is compiled:
        // a target folder that two of them share would hold the other's.
        let place = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?})", format!("/{DIST}/{name}"));
        table.extend(["    (", &format!("{name:?}"), ", include_bytes!(", &place, ")),\n"]);
    }
    table.push_str("];\n");
    std::fs::write(Path::new(&variable("OUT_DIR")?).join("dashboard.rs"), table)
}

/// The names that all files below a folder have in an address.
fn collect(folder: &Path, before: &str, files: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| not_text(&name))?;
        // `.vite` is for the tools that look at a build.
        if name.starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{before}{name}/"), files)?;
        } else if Path::new(&name).extension().is_none_or(|ending| ending != "map") {
            files.push(format!("{before}{name}"));
        }
    }
    Ok(())
}

fn not_text(name: &OsStr) -> Error {
    Error::other(format!("{} is no UTF-8", name.display()))
}

fn variable(name: &str) -> Result<String> {
    std::env::var(name).map_err(|error| Error::other(format!("{name}: {error}")))
}
