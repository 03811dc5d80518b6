//! What `lanyard` says of itself, word for word: the overview, the first page of the help, and a page per command.
//! `UPDATE_EXPECT=1` writes the pages anew.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use expect_test::expect_file;

use crate::support::binary;

/// Commands of commands that have a page of their own.
const VERBS: [(&str, &str); 72] = [
    ("review", "add"),
    ("review", "edit"),
    ("review", "rm"),
    ("review", "send"),
    ("review", "pr"),
    ("compare", "run"),
    ("compare", "show"),
    ("compare", "keep"),
    ("share", "new"),
    ("share", "rm"),
    ("worktree", "show"),
    ("worktree", "status"),
    ("worktree", "merge"),
    ("worktree", "discard"),
    ("worktree", "trust"),
    ("mcp", "url"),
    ("mcp", "wrap"),
    ("hook", "install"),
    ("hook", "uninstall"),
    ("plan", "new"),
    ("plan", "ls"),
    ("plan", "show"),
    ("plan", "start"),
    ("plan", "pause"),
    ("plan", "deploy"),
    ("plan", "watch"),
    ("plan", "wait"),
    ("plan", "merge"),
    ("plan", "cancel"),
    ("plan", "archive"),
    ("plan", "import"),
    ("plan", "export"),
    ("task", "add"),
    ("task", "ls"),
    ("task", "show"),
    ("task", "edit"),
    ("task", "deploy"),
    ("task", "pause"),
    ("task", "resume"),
    ("task", "cancel"),
    ("task", "retry"),
    ("task", "complete"),
    ("task", "fail"),
    ("task", "diff"),
    ("task", "merge"),
    ("task", "discard"),
    ("task", "adopt"),
    ("task", "message"),
    ("task", "token"),
    ("task", "wait"),
    ("flow", "run"),
    ("flow", "review"),
    ("flow", "ls"),
    ("flow", "show"),
    ("flow", "watch"),
    ("flow", "report"),
    ("flow", "cancel"),
    ("flow", "merge"),
    ("flow", "resume"),
    ("mailbox", "show"),
    ("mailbox", "ack"),
    ("mailbox", "again"),
    ("service", "install"),
    ("service", "uninstall"),
    ("service", "status"),
    ("notifications", "ls"),
    ("notifications", "show"),
    ("notifications", "read"),
    ("notifications", "ack"),
    ("notifications", "snooze"),
    ("notifications", "dismiss"),
    ("notifications", "purge"),
];

fn help(words: &[&str]) -> String {
    let output = Command::new(binary())
        .args(words)
        .env_clear()
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots/help").join(format!("{name}.txt"))
}

/// The commands the first page lists: indented, in chapters, before the options.
fn commands(first_page: &str) -> Vec<&str> {
    let listing = first_page.split("Global options:").next().unwrap_or_default();
    listing
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

#[test]
fn lanyard_alone_prints_an_overview() {
    expect_file![page("overview")].assert_eq(&help(&[]));
}

#[test]
fn the_first_page_lists_every_command() {
    expect_file![page("lanyard")].assert_eq(&help(&["--help"]));
}

#[test]
fn every_command_has_a_page_with_examples() {
    let first_page = help(&["--help"]);
    let commands = commands(&first_page);
    assert!(commands.len() > 20, "{commands:?}");
    for command in &commands {
        let text = help(&[command, "--help"]);
        assert!(text.contains("Examples:\n  "), "{command} shows no example");
        expect_file![page(command)].assert_eq(&text);
    }
    for verb in ["ls", "new", "rm"] {
        expect_file![page(&format!("token-{verb}"))].assert_eq(&help(&["token", verb, "--help"]));
    }
    for (command, verb) in VERBS {
        expect_file![page(&format!("{command}-{verb}"))].assert_eq(&help(&[command, verb, "--help"]));
    }
    expect_file![page("agents-check")].assert_eq(&help(&["agents", "check", "--help"]));
}

/// A page of a command that is gone would be kept for ever otherwise.
#[test]
fn there_is_no_page_without_a_command() {
    let first_page = help(&["--help"]);
    let mut expected: Vec<String> = commands(&first_page).into_iter().map(str::to_owned).collect();
    expected.extend(
        ["overview", "lanyard", "agents-check", "token-ls", "token-new", "token-rm"].map(str::to_owned),
    );
    expected.extend(VERBS.map(|(command, verb)| format!("{command}-{verb}")));
    expected.sort();
    let folder = page("x");
    let mut found: Vec<String> = std::fs::read_dir(folder.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    found.sort();
    assert_eq!(found, expected);
}

/// Older names work for one more release, and no page of the help shows them.
#[test]
fn older_names_are_hidden_aliases() {
    assert_eq!(help(&["gates", "--help"]), help(&["approvals", "--help"]));
    assert_eq!(help(&["gate", "--help"]), help(&["answer", "--help"]));
    assert!(help(&["prompt", "--help"]).contains("lanyard send --detach"));
    let first_page = help(&["--help"]);
    for older in ["gate", "gates", "prompt"] {
        assert!(!commands(&first_page).contains(&older), "{older}");
    }
    let answer = help(&["answer", "--help"]);
    assert!(!answer.contains("--guidance"), "{answer}");
    let audit = help(&["audit", "--help"]);
    assert!(audit.contains("[possible values: stop, guidance, approval, change]"), "{audit}");
}
