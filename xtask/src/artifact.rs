//! What cargo built, from what it says about it: one JSON object per line, most of other kinds.

use std::path::PathBuf;

use serde::Deserialize;

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
