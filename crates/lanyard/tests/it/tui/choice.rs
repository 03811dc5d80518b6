//! A command without the name it needs: chosen on a terminal, refused with the choices elsewhere.

use super::terminal::Terminal;
use crate::support::{Daemon, Setup};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn ok(daemon: &Daemon, words: &[&str]) -> String {
    let output = daemon.lanyard(words);
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

#[test]
fn on_a_terminal_a_missing_session_is_chosen_from_the_list() {
    let daemon = Daemon::start(Setup::default());
    ok(&daemon, &["new", "--title", "first"]);
    let second = ok(&daemon, &["new", "--title", "second one"]);
    let mut terminal = Terminal::lanyard(&daemon, &["archive"], 100, 30);
    terminal.until_shows("session>");
    terminal.until_shows("second one");
    terminal.press("second");
    terminal.until("only the one", |text| text.contains("second one") && !text.contains("  first"));
    terminal.press("\r");
    assert_eq!(terminal.ended(), Some(0), "{}", terminal.text());
    let listed = ok(&daemon, &["ls", "--archived", "--json"]);
    assert!(listed.contains(&second) && !listed.contains("\"first\""), "{listed}");
    // Who leaves the list has done nothing.
    let mut terminal = Terminal::lanyard(&daemon, &["rm"], 100, 30);
    terminal.until_shows("session>");
    terminal.press("\u{1b}");
    assert_eq!(terminal.ended(), Some(130), "{}", terminal.text());
    assert!(ok(&daemon, &["ls", "--json"]).contains("\"first\""));
}

#[test]
fn on_a_terminal_a_missing_task_is_typed_below_the_newest() {
    let daemon = Daemon::start(Setup::default());
    let task =
        ok(&daemon, &["task", "add", "the api", "--workspace", "/tmp", "--alias", "api", "--agent", "demo"]);
    let mut terminal = Terminal::lanyard(&daemon, &["task", "cancel"], 100, 30);
    let shown = terminal.until_shows("task>");
    assert!(shown.contains("the api") && shown.contains("pending"), "{shown}");
    terminal.press("api\r");
    assert_eq!(terminal.ended(), Some(0), "{}", terminal.text());
    assert!(ok(&daemon, &["task", "show", &task]).contains("cancelled"));
    // A receipt on a terminal has a short id, which the next command takes.
    let end = &task[task.len() - 6..];
    let shown = terminal.text();
    assert!(shown.contains(&format!("task_{end}")) && !shown.contains(&task), "{shown}");
    assert!(ok(&daemon, &["task", "show", &format!("task_{end}")]).contains(&task));
}

#[test]
fn without_a_terminal_a_missing_name_is_a_usage_error_that_lists_the_choices() {
    let daemon = Daemon::start(Setup::default());
    let id = ok(&daemon, &["new", "--title", "the one"]);
    let output = daemon.lanyard(&["show"]);
    let seen = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{seen}");
    assert!(seen.contains("no session is named") && seen.contains("the one"), "{seen}");
    assert!(seen.contains(&id[id.len() - 6..]) && seen.contains("[usage]"), "{seen}");
    // What lacks more than a name is told as before.
    let output = daemon.lanyard(&["send"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("Usage: "), "{}", text(&output.stderr));
}
