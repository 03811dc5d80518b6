//! Which crates of the workspace may depend on which others. The compiler does not let a crate name what it does not
//! depend on; this check keeps such a dependency from being added.

use super::Finding;

/// Crates with a wall, and the crates of the workspace that they may depend on. Other crates may depend on all.
const WALLS: [(&str, &[&str]); 12] = [
    ("lanyard-core", &[]),
    ("lanyard-api", &["lanyard-core"]),
    ("lanyard-git", &["lanyard-core"]),
    ("lanyard-store", &["lanyard-core"]),
    ("lanyard-base", &["lanyard-api", "lanyard-core"]),
    ("lanyard-agents", &["lanyard-api", "lanyard-base", "lanyard-core", "lanyard-git", "lanyard-store"]),
    ("lanyard-engine", &["lanyard-api", "lanyard-base", "lanyard-core", "lanyard-store"]),
    (
        "lanyard-gateway",
        &[
            "lanyard-agents",
            "lanyard-api",
            "lanyard-base",
            "lanyard-core",
            "lanyard-engine",
            "lanyard-git",
            "lanyard-store",
        ],
    ),
    ("lanyard-client", &["lanyard-api", "lanyard-core"]),
    ("lanyard-scripted", &["lanyard-client", "lanyard-core"]),
    ("lanyard-testkit", &[]),
    ("lanyard-cli", &["lanyard-api", "lanyard-client", "lanyard-core", "lanyard-scripted"]),
];

/// Dependencies of a manifest that are behind its wall. Those of tests are not the product's.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let Some(name) = path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml")) else {
        return Vec::new();
    };
    let Some((_, allowed)) = WALLS.iter().find(|(walled, _)| *walled == name) else { return Vec::new() };
    let mut findings = Vec::new();
    let mut counts = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            counts = matches!(line, "[dependencies]" | "[build-dependencies]");
        }
        let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if counts && dependency.starts_with("lanyard") && !allowed.contains(&dependency) {
            let message = format!(
                "`{name}` may not depend on `{dependency}`: what both need belongs below them, or into the program \
                 (`crates/lanyard`); the list is in xtask/src/tidy/walls.rs"
            );
            findings.push(Finding::error(path, index + 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, manifest: &str) -> Vec<String> {
        let findings = check(path, manifest);
        findings.iter().map(|finding| finding.to_string().split("; ").next().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_commands_do_not_depend_on_the_daemon() {
        let manifest = "[package]\nname = \"lanyard-cli\"\n\n[dependencies]\nlanyard-api.workspace = true\n\
                        lanyard-daemon = { path = \"../lanyard-daemon\" }\n";
        assert_eq!(
            found("crates/lanyard-cli/Cargo.toml", manifest),
            [
                "crates/lanyard-cli/Cargo.toml:6: error: `lanyard-cli` may not depend on `lanyard-daemon`: what both \
                 need belongs below them, or into the program (`crates/lanyard`)"
            ]
        );
        assert_eq!(found("crates/lanyard/Cargo.toml", manifest), Vec::<String>::new());
        assert_eq!(found("crates/lanyard-daemon/Cargo.toml", manifest), Vec::<String>::new());
    }

    #[test]
    fn tests_may_depend_on_all() {
        let manifest = "[dependencies]\nlanyard-core.workspace = true\n\n[dev-dependencies]\nlanyard-daemon.workspace = true\n";
        assert_eq!(found("crates/lanyard-store/Cargo.toml", manifest), Vec::<String>::new());
    }
}
