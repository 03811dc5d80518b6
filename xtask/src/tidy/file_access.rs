//! The daemon and the crates beneath it open files of a workspace in one module only.
//!
//! A repository can hold a FIFO or a link to a device where a file is expected, and a direct read then blocks a thread
//! of the daemon or never ends. `workspace_files` opens carefully; everything else must go through it, except for the
//! modules below, whose paths no agent and no repository can choose.

use super::Finding;
use super::checks::{inline_tests, is_test_file};

/// Crates that work in folders which agents and repositories fill.
const CRATES: [&str; 7] = [
    "crates/lanyard-agents/src/",
    "crates/lanyard-api/src/",
    "crates/lanyard-base/src/",
    "crates/lanyard-daemon/src/",
    "crates/lanyard-engine/src/",
    "crates/lanyard-gateway/src/",
    "crates/lanyard-git/src/",
];

/// Files, or folders with a `/` behind, that may open files by themselves; and why.
const ALLOWED: [(&str, &str); 20] = [
    ("workspace_files", "the one module that opens files of a workspace"),
    ("agents/accounts.rs", "secrets that the config names; only regular files are opened"),
    ("agents/credentials.rs", "files in the user's home that agents document; only regular ones are opened"),
    ("agents/exhausted.rs", "the data folder"),
    ("agents/offers.rs", "the data folder"),
    ("clock.rs", "the boot time, from the kernel"),
    ("config/file.rs", "the operator's config, if it is a regular file"),
    ("dashboard.rs", "the dashboard's own files"),
    ("flow/plan_lock.rs", "locks in the user's runtime folder"),
    ("home.rs", "the data folder"),
    ("mcp/book.rs", "the data folder"),
    ("memory/embed.rs", "a key that the config names"),
    ("notifications/secret.rs", "a secret that the config names"),
    ("runs.rs", "the data folder, and the kernel's process table"),
    ("runs/", "the data folder, and the kernel's process table"),
    ("sandbox/proxy.rs", "the run's folder, which its agent does not see"),
    ("snapshot/own_store.rs", "the data folder"),
    ("storage/copies.rs", "a folder that an operator names for a backup"),
    ("terminal/kept.rs", "the data folder, and recordings in the folders of runs"),
    ("tls.rs", "certificates that the config names"),
];

/// Calls that open a file by its path. A file that is made new, and must not be there yet, is no danger.
const OPENING: [&str; 9] = [
    "File::open(",
    "File::create(",
    "File::options(",
    "OpenOptions::new(",
    "fs::read(",
    "fs::read_to_string(",
    "fs::write(",
    "fs::copy(",
    "tokio::fs",
];
/// Lines after an `OpenOptions` in which it may say that the file must be new.
const LINES_OF_OPTIONS: usize = 3;

/// Direct file access in these crates, outside of the modules that may.
pub(super) fn check(path: &str, code: &str) -> Vec<Finding> {
    let Some(within) = CRATES.iter().find_map(|source| path.strip_prefix(source)) else { return Vec::new() };
    let allowed = |(place, _): &(&str, &str)| {
        within.strip_prefix(place).is_some_and(|rest| {
            rest.is_empty() || place.ends_with('/') || rest.starts_with('/') || rest == ".rs"
        })
    };
    if ALLOWED.iter().any(allowed) || is_test_file(path) || within.ends_with("/tests.rs") {
        return Vec::new();
    }
    let lines: Vec<&str> = code.lines().collect();
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate().take(inline_tests(code)) {
        let Some(call) = OPENING.iter().find(|call| line.contains(**call)) else { continue };
        let end = lines.len().min(index + 1 + LINES_OF_OPTIONS);
        let is_new = lines[index..end].iter().any(|line| line.contains(".create_new(true)"));
        if !is_new {
            let call = call.trim_end_matches('(');
            let message = format!(
                "`{call}` may block on a FIFO or read without end: use `workspace_files`, or list the module in \
                 xtask/src/tidy/file_access.rs with the reason why no agent can choose its paths"
            );
            findings.push(Finding::error(path, index + 1, message));
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
            .map(|finding| finding.to_string().split(" may block").next().unwrap().to_owned())
            .collect()
    }

    /// FND-K1.
    #[test]
    fn fnd_k1_direct_file_access_in_the_daemon_is_refused() {
        let path = "crates/lanyard-agents/src/agents/judge.rs";
        let source = "fn a() {\n    std::fs::read_to_string(x);\n    let f = File::open(x);\n    fs::metadata(x);\n}\n";
        assert_eq!(
            found(path, source),
            [format!("{path}:2: error: `fs::read_to_string`"), format!("{path}:3: error: `File::open`")]
        );
        assert_eq!(found(path, "tokio::fs::read(x).await;\n").len(), 1);
        assert_eq!(found(path, "OpenOptions::new().write(true).open(x);\n").len(), 1);
    }

    #[test]
    fn a_new_file_a_test_and_the_modules_of_the_list_are_no_danger() {
        let read = "fs::read(x);\n";
        let none = [""; 0];
        for path in ["workspace_files.rs", "workspace_files/beneath.rs", "runs/shim.rs", "runs.rs", "home.rs"]
        {
            for source in CRATES {
                assert_eq!(found(&format!("{source}{path}"), read), none, "{path}");
            }
        }
        for path in ["runs_of_others.rs", "homely.rs", "flow/place.rs", "workspace_files_too.rs"] {
            for source in CRATES {
                assert_eq!(found(&format!("{source}{path}"), read).len(), 1, "{path}");
            }
        }
        let path = "crates/lanyard-git/src/snapshot/repo.rs";
        assert_eq!(found(path, "OpenOptions::new()\n    .write(true)\n    .create_new(true)\n"), none);
        assert_eq!(found(path, "fn a() {}\n#[cfg(test)]\nmod tests {\n    fs::read(x);\n}\n"), none);
        assert_eq!(found(path, "// fs::read(x)\nlet a = \"fs::read(x)\";\n"), none);
        assert_eq!(found("crates/lanyard-git/src/snapshot/tests/kept.rs", read), none);
        assert_eq!(found("crates/lanyard-cli/src/cli/init.rs", read), none);
    }
}
