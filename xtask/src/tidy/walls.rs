//! The CLI talks to the daemon over HTTP; only a few of its files may name the daemon's crate or the store's.
//!
//! Types and settings that both sides use are in `lanyard-api`. A file that needs more starts a daemon in its own process,
//! or works on the journal of a daemon that does not run.

use super::Finding;

/// The crate that may not name the others.
const CLIENT: &str = "crates/lanyard/src/";

/// The crates behind the wall, and the files of the client that may name them.
const WALLS: [(&str, &[&str]); 2] = [
    ("lanyard_daemon", &["bin/lanyard-shim.rs", "cli/backup.rs", "cli/schema.rs", "cli/up.rs", "main.rs"]),
    ("lanyard_store", &["cli/backup.rs", "cli/doctor/journal.rs", "cli/restore.rs", "cli/up.rs"]),
];

/// Names of crates behind a wall, in files that may not use them; and files that may and do not.
pub(super) fn check(path: &str, code: &str) -> Vec<Finding> {
    let Some(within) = path.strip_prefix(CLIENT) else { return Vec::new() };
    let mut findings = Vec::new();
    for (name, allowed) in WALLS {
        let found = code.lines().position(|line| line.contains(name));
        match (found, allowed.contains(&within)) {
            (Some(index), false) => {
                let message = format!(
                    "`{name}` is behind the API: take shared types from `lanyard_api` and ask the daemon for the rest, \
                     or list the file in xtask/src/tidy/walls.rs"
                );
                findings.push(Finding::error(path, index + 1, message));
            }
            (None, true) => {
                let message =
                    format!("does not name `{name}`: take it off the list in xtask/src/tidy/walls.rs");
                findings.push(Finding::error(path, 0, message));
            }
            (Some(_), true) | (None, false) => {}
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rust_text::RustText;

    fn found(path: &str, source: &str) -> Vec<String> {
        let findings = check(path, &RustText::split(source).code);
        findings
            .iter()
            .map(|finding| finding.to_string().split([':', ';']).take(4).collect::<Vec<_>>().join(":"))
            .collect()
    }

    #[test]
    fn only_listed_files_of_the_client_name_the_daemon() {
        let source =
            "//! Not lanyard_daemon.\nuse lanyard_api::home::Home;\nuse lanyard_daemon::engine::Engine;\n";
        assert_eq!(
            found("crates/lanyard/src/cli/show.rs", source),
            ["crates/lanyard/src/cli/show.rs:3: error: `lanyard_daemon` is behind the API"]
        );
        assert_eq!(found("crates/lanyard/src/cli/schema.rs", source), Vec::<String>::new());
        assert_eq!(found("crates/lanyard/tests/it/api.rs", source), Vec::<String>::new());
        assert_eq!(found("crates/lanyard-daemon/src/boot.rs", source), Vec::<String>::new());
        let said = "/// lanyard_daemon\nconst HELP: &str = \"LANYARD_LOG=lanyard_daemon=trace\";\n";
        assert_eq!(found("crates/lanyard/src/cli/show.rs", said), Vec::<String>::new());
    }

    #[test]
    fn a_listed_file_that_needs_no_place_on_the_list_is_told() {
        let source = "//! Doc.\nuse lanyard_daemon::back_up;\n";
        assert_eq!(
            found("crates/lanyard/src/cli/backup.rs", source),
            [
                "crates/lanyard/src/cli/backup.rs: error: does not name `lanyard_store`: take it off the list in xtask/src/tidy/walls.rs"
            ]
        );
    }
}
