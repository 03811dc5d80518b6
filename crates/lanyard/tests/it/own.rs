//! `lanyard instructions`: printed, put into rule files, and taken back exactly (S0-62).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::binary;

/// Runs it in a folder of its own, without a daemon or a home.
fn run(folder: &Path, words: &[&str]) -> Output {
    Command::new(binary())
        .arg("instructions")
        .args(words)
        .current_dir(folder)
        .env_clear()
        .env("LANYARD_DATA_DIR", folder.join("data"))
        .env("LANYARD_CONFIG", folder.join("config.toml"))
        .env("LANYARD_NO_START", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn ok(folder: &Path, words: &[&str]) -> String {
    let output = run(folder, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_instructions_are_printed_without_a_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let text = ok(folder.path(), &[]);
    for part in [
        "⚠️ SESSION STOP REQUESTED",
        "🛑 SESSION STOP — IMMEDIATE",
        "❌ SESSION TERMINATED",
        "📝 USER GUIDANCE (injected by user):",
        "⚠️ SUBAGENT INTERRUPTED:",
        "_session_id",
        "orphaned_sessions",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert_eq!(text, ok(folder.path(), &["claude"]));
    assert!(!folder.path().join("data").exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn each_agent_has_its_rule_file_and_what_was_written_is_taken_back_exactly() {
    for (agent, file) in [
        (None, "AGENTS.md"),
        (Some("opencode"), "AGENTS.md"),
        (Some("codex"), "AGENTS.md"),
        (Some("claude"), "CLAUDE.md"),
        (Some("gemini"), "GEMINI.md"),
    ] {
        for before in [None, Some("# Rules\n"), Some("# Rules"), Some("# Règles\r\n\r\nmine\r\n")] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(file);
            if let Some(before) = before {
                std::fs::write(&path, before).unwrap();
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
            }
            let with = |option: &str| -> String {
                let words: Vec<&str> = agent.into_iter().chain([option]).collect();
                ok(folder.path(), &words)
            };
            with("--write");
            let once = std::fs::read_to_string(&path).unwrap();
            assert!(
                once.starts_with(before.unwrap_or_default()) && once.contains("<!-- lanyard:begin -->\n")
            );
            assert!(once.ends_with("<!-- lanyard:end -->\n"));
            with("--write");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), once);
            if before.is_some() {
                assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
            }
            with("--remove");
            assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), before, "{agent:?}");
            with("--remove");
            let left = std::fs::read_dir(folder.path()).unwrap().count();
            assert_eq!(left, usize::from(before.is_some()), "nothing else is left behind");
        }
    }
}

#[test]
fn an_older_text_is_renewed_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("AGENTS.md");
    std::fs::write(&path, "one\n<!-- lanyard:begin -->\nold words\n<!-- lanyard:end -->\ntwo\n").unwrap();
    ok(folder.path(), &["--write"]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("one\n<!--") && text.ends_with("-->\ntwo\n") && !text.contains("old words"));
}

#[test]
fn a_link_stays_a_link_and_what_cannot_be_read_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (link, target) = (folder.path().join("CLAUDE.md"), folder.path().join("AGENTS.md"));
    std::fs::write(&target, "# Rules\n").unwrap();
    std::os::unix::fs::symlink("AGENTS.md", &link).unwrap();
    ok(folder.path(), &["claude", "--write"]);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(&target).unwrap().contains("lanyard:begin"));
    ok(folder.path(), &["claude", "--remove"]);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "# Rules\n");

    let bytes = b"\xff\xfe not text";
    std::fs::write(&target, bytes).unwrap();
    let refused = run(folder.path(), &["--write", "--json"]);
    assert_eq!(refused.status.code(), Some(1));
    let problem: serde_json::Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!(problem["code"], "rule_file_unusable");
    assert_eq!(std::fs::read(&target).unwrap(), bytes);
    assert_eq!(run(folder.path(), &["--write", "--remove"]).status.code(), Some(2));
}
