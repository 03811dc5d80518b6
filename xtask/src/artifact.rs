//! What cargo built, from what it says about it: one JSON object per line, most of other kinds.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::process;

/// Equal functions are in a program once. Only the linker that rustc brings for this target can do that.
const FOLD_EQUAL: &str = "target.x86_64-unknown-linux-gnu.rustflags=[\"-Clink-arg=-Wl,--icf=all\"]";

/// Builds both programs with a profile and returns cargo's messages.
pub(crate) fn build(profile: &str, has_dashboard: bool) -> Result<String> {
    let mut command = process::cargo(["build", "-p", "lanyard", "--message-format=json-render-diagnostics"]);
    command.args(["--profile", profile]);
    if profile == "dist" {
        command.args(["--config", FOLD_EQUAL]);
    }
    if has_dashboard {
        // An earlier build found no folder it could have watched.
        command.env("LANYARD_DASHBOARD_BUILT", "1");
    }
    process::read(&mut command)
}

/// The program in a build that the tests share. Features of dependencies are chosen by all that is built at once, so a build
/// of this program alone would compile most dependencies a second time.
pub(crate) fn of_tests() -> Result<PathBuf> {
    // A test target brings the features of all tests, and this one is the smallest.
    let mut command = process::cargo(["build", "--workspace", "--bin", "lanyard", "--test", "packages"]);
    command.arg("--message-format=json-render-diagnostics");
    program("lanyard", &process::read(&mut command)?).context("cargo built no program called `lanyard`")
}

#[derive(Debug, Deserialize)]
struct Artifact {
    target: Target,
    #[serde(default)]
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    #[serde(default)]
    kind: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Profile {
    /// It is made of a program's tests and not the program.
    test: bool,
}

/// The program of this name.
pub(crate) fn program(name: &str, messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Artifact>(line).ok())
        .filter(|artifact| artifact.target.name == name && !artifact.profile.test)
        .filter(|artifact| artifact.target.kind.iter().any(|kind| kind == "bin"))
        .find_map(|artifact| artifact.executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"lanyard_core","kind":["lib"]},"executable":null}
{"reason":"build-script-executed","package_id":"x"}
{"reason":"compiler-artifact","target":{"name":"lanyard","kind":["bin"]},"profile":{"test":true},"executable":"/t/deps/lanyard-1"}
{"reason":"compiler-artifact","target":{"name":"lanyard","kind":["bin"]},"profile":{"test":false},"executable":"/t/release/lanyard"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(program("lanyard", messages), Some(PathBuf::from("/t/release/lanyard")));
        assert_eq!(program("lanyard", ""), None);
    }
}
