//! Histories as the programs wrote them, and as nobody should have written them.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};
use lanyard_core::session::{Role, TranscriptEvent};

use super::*;

const CLAUDE: &str = include_str!("fixtures/claude.jsonl");
const CODEX: &str = include_str!("fixtures/codex.jsonl");
const GEMINI: &str = include_str!("fixtures/gemini.jsonl");
const OPENCODE: &str = include_str!("fixtures/opencode.sql");

const CLAUDE_ID: &str = "11111111-2222-4333-8444-555555555555";
const CODEX_ID: &str = "01a1f42f-0115-7312-b48b-9d685d580c3f";
const GEMINI_ID: &str = "4727e80a-850d-4b7b-bf45-420484f829be";
const OPENCODE_ID: &str = "ses_e0bd0f257ffeZXobcuuQZN6n0o";

fn put(home: &Path, path: &str, text: &str) {
    let path = home.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn claude_file(id: &str) -> String {
    format!(".claude/projects/-home-ann-proj/{id}.jsonl")
}

/// A home in which each program was used once.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    put(home.path(), &claude_file(CLAUDE_ID), CLAUDE);
    put(
        home.path(),
        &format!(".codex/sessions/2026/11/19/rollout-2026-11-19T14-21-23-{CODEX_ID}.jsonl"),
        CODEX,
    );
    put(home.path(), ".gemini/tmp/proj/chats/session-2026-11-19T14-21-4727e80a.jsonl", GEMINI);
    put(home.path(), ".gemini/tmp/proj/.project_root", "/home/ann/proj");
    let folder = home.path().join(".local/share/opencode");
    fs::create_dir_all(&folder).unwrap();
    rusqlite::Connection::open(folder.join("opencode.db")).unwrap().execute_batch(OPENCODE).unwrap();
    home
}

fn all(home: &Path, limit: usize) -> HistoryListing {
    list(&HistoryPlaces::below(home), &HistoryQuery { limit, ..HistoryQuery::default() })
}

fn told(past: &PastConversation) -> String {
    let mut text = String::new();
    for event in &past.events {
        let line = match &event.event {
            TranscriptEvent::Message { role: Role::User, text, .. } => format!("user: {text}"),
            TranscriptEvent::Message { role: Role::Agent, text, .. } => format!("agent: {text}"),
            TranscriptEvent::Thought { text } => format!("thought: {text}"),
            TranscriptEvent::ToolCalled { tool, arguments, .. } => format!("call: {tool} {arguments}"),
            TranscriptEvent::ToolReturned { is_error, content, .. } => {
                format!("result: {is_error} {content}")
            }
            TranscriptEvent::ToolRelayed { .. }
            | TranscriptEvent::InFlight { .. }
            | TranscriptEvent::Planned { .. }
            | TranscriptEvent::FileChanged { .. }
            | TranscriptEvent::UsageReported { .. } => "something else".to_owned(),
        };
        let at = event.at.map_or_else(|| "-".to_owned(), |at| at.to_string());
        writeln!(text, "{} {}", at.get(11..19).unwrap_or(&at), line.trim_end()).unwrap();
    }
    let import = &past.import;
    let (messages, left_out, unreadable) = (import.messages, import.left_out, import.unreadable);
    writeln!(text, "{messages} messages, {left_out} left out, {unreadable} unreadable").unwrap();
    text
}

fn check(kind: HistoryKind, native: &str, expected: &Expect) {
    let home = home();
    let past = read(&HistoryPlaces::below(home.path()), kind, native).unwrap();
    assert_eq!(past.header.native, native);
    assert_eq!(past.header.folder.as_deref(), Some("/home/ann/proj"));
    expected.assert_eq(&told(&past));
}

#[test]
fn claude_code() {
    check(
        HistoryKind::Claude,
        CLAUDE_ID,
        &expect![[r#"
        14:21:22 user: Fix the reader
        14:21:22 agent: Looking.
        14:21:22 call: Bash {"command":"echo HIST-OUT","description":"x"}
        14:21:22 result: false "HIST-OUT"
        14:21:22 agent: All is done.
        14:21:22 user: Fix the reader
        14:21:23 agent: Looking.
        14:21:23 call: Bash {"command":"echo HIST-OUT","description":"x"}
        14:21:23 result: false "HIST-OUT"
        14:21:23 agent: All is done.
        6 messages, 0 left out, 0 unreadable
    "#]],
    );
}

#[test]
fn codex_rollouts() {
    check(
        HistoryKind::Codex,
        CODEX_ID,
        &expect![[r#"
        14:21:23 user: Fix the reader
        14:21:23 agent: Looking.
        14:21:23 call: exec_command {"cmd":"echo HIST-OUT"}
        14:21:23 result: false "Chunk ID: df62d3\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 3\nOutput:\nHIST-OUT\n"
        14:21:23 agent: All is done.
        3 messages, 0 left out, 0 unreadable
    "#]],
    );
}

#[test]
fn gemini_cli() {
    check(
        HistoryKind::Gemini,
        GEMINI_ID,
        &expect![[r#"
        14:21:24 user: Fix the reader
        14:21:24 agent: Looking.
        14:21:24 call: run_shell_command {"command":"echo HIST-OUT","description":"x"}
        14:21:24 result: false "HIST-OUT"
        14:21:24 agent: All is done.
        3 messages, 0 left out, 0 unreadable
    "#]],
    );
}

#[test]
fn opencode_database() {
    check(
        HistoryKind::Opencode,
        OPENCODE_ID,
        &expect![[r#"
        14:21:27 user: "Fix the reader"
        14:21:28 thought: I should look first.
        14:21:28 agent: Looking.
        14:21:28 call: bash {"command":"echo HIST-OUT","description":"x"}
        14:21:28 result: false "HIST-OUT\n"
        14:21:29 agent: All is done.
        3 messages, 0 left out, 0 unreadable
    "#]],
    );
}

#[test]
fn all_histories_are_listed_newest_first_and_page_by_page() {
    let home = home();
    let listed = all(home.path(), 20);
    let rows: Vec<String> = listed
        .items
        .iter()
        .map(|item| {
            let title = item.title.as_deref().unwrap_or("-");
            format!(
                "{} {title} {} {:?}",
                item.kind.as_str(),
                item.folder.as_deref().unwrap_or("-"),
                item.messages
            )
        })
        .collect();
    assert_eq!(rows.len(), 4, "{rows:?} {:?}", listed.problems);
    assert!(rows.contains(&"claude Fix the reader /home/ann/proj Some(6)".to_owned()), "{rows:?}");
    assert!(rows.contains(&"codex Fix the reader /home/ann/proj Some(3)".to_owned()), "{rows:?}");
    assert!(rows.contains(&"gemini Fix the reader /home/ann/proj Some(3)".to_owned()), "{rows:?}");
    assert!(rows.contains(&"opencode Scripted title /home/ann/proj Some(3)".to_owned()), "{rows:?}");
    let places = HistoryPlaces::below(home.path());
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = list(&places, &HistoryQuery { limit: 1, after: after.take(), ..HistoryQuery::default() });
        seen.extend(page.items.iter().map(|item| item.native.clone()));
        after = page.next.as_ref().map(HistoryMark::write).as_deref().and_then(HistoryMark::read);
        if after.is_none() {
            break;
        }
    }
    let whole: Vec<String> = listed.items.iter().map(|item| item.native.clone()).collect();
    assert_eq!(seen, whole);
    let elsewhere = HistoryQuery { folder: Some("/other".to_owned()), limit: 5, ..HistoryQuery::default() };
    assert!(list(&places, &elsewhere).items.is_empty());
}

#[test]
fn a_beginning_of_an_id_is_enough_unless_it_is_of_several() {
    let home = home();
    let places = HistoryPlaces::below(home.path());
    let read = |native: &str| read(&places, HistoryKind::Claude, native).map(|past| past.header.native);
    assert_eq!(read("1111"), Ok(CLAUDE_ID.to_owned()));
    assert_eq!(read("111").unwrap_err().code(), "history_not_found", "too short to name one");
    put(home.path(), &claude_file("11111111-2222-4333-8444-666666666666"), CLAUDE);
    let several = read("1111").unwrap_err();
    assert_eq!(several.code(), "history_ambiguous");
    assert!(several.to_string().contains(CLAUDE_ID), "{several}");
    assert_eq!(read(CLAUDE_ID), Ok(CLAUDE_ID.to_owned()));
    for bad in ["--resume", "../x", "", "a b", "x\u{0}y"] {
        assert_eq!(read(bad).unwrap_err().code(), "history_not_found", "{bad:?}");
    }
    assert_eq!(super::read(&places, HistoryKind::Gemini, "4727e80a").unwrap().header.native, GEMINI_ID);
}

/// Whatever is left of a history is read, and the rest is counted; nothing panics.
#[test]
fn histories_cut_at_every_byte_are_read_as_far_as_they_go() {
    let home = home();
    let places = HistoryPlaces::below(home.path());
    let codex = format!(".codex/sessions/2026/11/19/rollout-2026-11-19T14-21-23-{CODEX_ID}.jsonl");
    let files = [
        (HistoryKind::Claude, CLAUDE_ID, claude_file(CLAUDE_ID), CLAUDE),
        (HistoryKind::Codex, CODEX_ID, codex, CODEX),
        (
            HistoryKind::Gemini,
            GEMINI_ID,
            ".gemini/tmp/proj/chats/session-2026-11-19T14-21-4727e80a.jsonl".to_owned(),
            GEMINI,
        ),
    ];
    for (kind, native, path, text) in files {
        let whole = read(&places, kind, native).unwrap().events.len();
        for end in (0..text.len()).step_by(97) {
            fs::write(home.path().join(&path), text.as_bytes().get(..end).unwrap()).unwrap();
            match read(&places, kind, native) {
                // A call whose result was cut off gets one that says so.
                Ok(past) => assert!(past.events.len() <= whole + 1 && past.import.unreadable <= 1),
                Err(error) => {
                    assert!(matches!(error.code(), "history_unreadable" | "history_not_found"), "{error}");
                }
            }
        }
    }
}

#[test]
fn damaged_lines_are_counted_and_a_file_of_nothing_else_is_refused() {
    let home = home();
    let places = HistoryPlaces::below(home.path());
    let read = || read(&places, HistoryKind::Claude, CLAUDE_ID);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    put(
        home.path(),
        &claude_file(CLAUDE_ID),
        &format!("{CLAUDE}not json\n[]\n\u{0}\u{0}\n{deep}\n\"text\"\n"),
    );
    let past = read().unwrap();
    assert_eq!((past.import.messages, past.import.unreadable), (6, 5));
    put(home.path(), &claude_file(CLAUDE_ID), "not json\n{\"type\":7}\n");
    let error = read().unwrap_err();
    assert_eq!(error.code(), "history_unreadable");
    assert!(error.to_string().contains("1 of its lines"), "{error}");
    put(home.path(), &claude_file(CLAUDE_ID), "");
    assert_eq!(read().unwrap_err().code(), "history_unreadable");
    // It claims to be large, and holds nothing.
    fs::File::create(home.path().join(claude_file(CLAUDE_ID))).unwrap().set_len(1 << 40).unwrap();
    let error = read().unwrap_err();
    assert!(error.to_string().contains("more than"), "{error}");
    assert_eq!(all(home.path(), 20).items.len(), 4, "a listing shows it all the same");
}

#[test]
fn links_and_pipes_are_no_conversations() {
    let (home, outside) = (home(), tempfile::tempdir().unwrap());
    let (linked, piped) = ("22222222-2222-4333-8444-555555555555", "33333333-2222-4333-8444-555555555555");
    fs::write(outside.path().join("x.jsonl"), CLAUDE).unwrap();
    symlink(outside.path().join("x.jsonl"), home.path().join(claude_file(linked))).unwrap();
    assert!(Command::new("mkfifo").arg(home.path().join(claude_file(piped))).status().unwrap().success());
    let database = home.path().join(".local/share/opencode/opencode.db");
    fs::remove_file(&database).unwrap();
    assert!(Command::new("mkfifo").arg(&database).status().unwrap().success());
    let listed = all(home.path(), 20);
    assert_eq!(listed.items.len(), 3);
    assert_eq!(listed.problems, [(HistoryKind::Opencode, "it is not a regular file".to_owned())]);
    let places = HistoryPlaces::below(home.path());
    for native in [linked, piped] {
        assert_eq!(read(&places, HistoryKind::Claude, native).unwrap_err().code(), "history_not_found");
    }
    fs::remove_file(&database).unwrap();
    fs::write(&database, "this is no database, whatever its name says").unwrap();
    assert_eq!(all(home.path(), 20).problems.len(), 1);
    assert_eq!(read(&places, HistoryKind::Opencode, OPENCODE_ID).unwrap_err().code(), "history_unreadable");
}

#[test]
fn a_long_conversation_keeps_its_newest_part() {
    let home = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for n in 0..12_000 {
        writeln!(text, r#"{{"type":"user","cwd":"/home/ann/proj","timestamp":"2026-11-19T14:21:22.470Z","message":{{"role":"user","content":"word {n}"}}}}"#).unwrap();
    }
    let huge = "long words ".repeat(40_000);
    writeln!(text, r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{huge}"}}]}}}}"#)
        .unwrap();
    put(home.path(), &claude_file(CLAUDE_ID), &text);
    let past = read(&HistoryPlaces::below(home.path()), HistoryKind::Claude, CLAUDE_ID).unwrap();
    assert_eq!((past.import.events, past.import.left_out), (10_000, 2_001));
    let TranscriptEvent::Message { text, .. } = &past.events.last().unwrap().event else {
        panic!("no message")
    };
    assert!(text.len() < 140_000 && text.ends_with("more bytes are in the agent's own history]"));
}

/// A file for each of thousands of conversations: a listing opens those that it shows.
#[test]
fn thousands_of_files_are_listed_by_their_newest() {
    let home = home();
    for n in 0..3_000 {
        put(home.path(), &claude_file(&format!("{n:08}-0000-4000-8000-000000000000")), "{}\n");
    }
    let newest = "99999999-2222-4333-8444-555555555555";
    put(home.path(), &claude_file(newest), CLAUDE);
    let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000);
    fs::File::options()
        .write(true)
        .open(home.path().join(claude_file(newest)))
        .unwrap()
        .set_modified(later)
        .unwrap();
    let listed = all(home.path(), 20);
    assert_eq!(listed.items.len(), 20);
    assert_eq!(listed.items[0].native, newest);
    assert!(listed.next.is_some());
}

#[test]
fn the_config_names_the_agent_that_goes_on() {
    use lanyard_api::agents::settings::{AgentSettings, DriverKind};
    let of = |driver, command: &str| AgentSettings::of(driver, vec![command.to_owned()]);
    let agents = [
        ("acp".to_owned(), of(DriverKind::Acp, "/opt/claude-agent-acp")),
        ("claude".to_owned(), of(DriverKind::Claude, "claude")),
        ("helper".to_owned(), of(DriverKind::Command, "my-script")),
        ("google".to_owned(), of(DriverKind::Acp, "gemini")),
    ];
    let named = |kind| {
        runs(kind, agents.iter().map(|(name, settings)| (name, settings))).map(|(name, _)| name.as_str())
    };
    assert_eq!(named(HistoryKind::Claude), Some("claude"));
    assert_eq!(named(HistoryKind::Gemini), Some("google"));
    assert_eq!(named(HistoryKind::Codex), None);
    assert_eq!(history_of(&agents[0].1), Some(HistoryKind::Claude));
}
