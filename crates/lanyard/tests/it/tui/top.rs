//! All sessions on a screen.

use super::terminal::Terminal;
use super::text;
use crate::operate::Stage;
use crate::support::Setup;

#[test]
fn a_session_is_seen_attached_to_and_stopped() {
    let stage = Stage::new();
    let id = stage.detached("/say busy\n/wait 60000");
    let mut terminal = Terminal::lanyard(&stage.daemon, &["top"], 120, 20);
    terminal.until_shows("*>working");
    terminal.until_shows("1 session, 1 running");
    terminal.press("\r");
    terminal.until_shows("busy");
    terminal.until_shows("writer: free");
    terminal.press("q");
    terminal.until_shows("1 session, 1 running");
    terminal.press("s");
    terminal.until_shows("Sure?");
    terminal.press("n");
    terminal.press("sy");
    stage.until(&id, |shown| !shown["stop"].is_null() || shown["state"] == "stopped");
    terminal.press("sy");
    terminal.press("sy");
    terminal.until_shows("->done (stopped)");
    terminal.press("q");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn a_restart_of_the_daemon_is_outlasted_and_new_sessions_come_by_themselves() {
    let mut stage = Stage::new();
    let first = stage.detached("/say one");
    stage.until_at_rest(&first);
    let terminal = Terminal::lanyard(&stage.daemon, &["top"], 100, 20);
    terminal.until_shows("1 session, 0 running");
    stage.daemon.kill_9();
    terminal.until_shows("no daemon: `lanyard up` starts it");
    let config = std::fs::read_to_string(stage.daemon.config()).unwrap();
    stage.daemon.restart_with(Setup::default().config(&config));
    terminal.until("connection", |text| !text.contains("no connection"));
    stage.detached("/say two\n/wait 60000");
    terminal.until_shows("2 sessions, 1 running");
}

#[test]
fn a_question_comes_first() {
    let stage = Stage::new();
    let quiet = stage.detached("/say quiet");
    stage.until_at_rest(&quiet);
    stage.detached("/ask May I\n/wait 60000");
    let terminal = Terminal::lanyard(&stage.daemon, &["top"], 120, 20);
    terminal.until_shows("approvals 1");
    let shown = terminal.text();
    let row = shown.lines().nth(2).unwrap();
    assert!(row.starts_with('!'), "{shown}");
    let once = text(&stage.lanyard(&["top", "--once"]).stdout);
    assert!(once.contains("approvals 1"), "{once}");
}
