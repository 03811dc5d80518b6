//! Attaching to sessions that work (S3-01, S3-08, S3-10, X-02).

use serde_json::json;

use super::terminal::Terminal;
use crate::operate::Stage;
use crate::support::Setup;

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const CTRL_G: &str = "\u{7}";
const CTRL_Q: &str = "\u{11}";
const CTRL_S: &str = "\u{13}";
const ALT_W: &str = "\u{1b}w";

fn attached(stage: &Stage, id: &str) -> Terminal {
    let terminal = Terminal::lanyard(&stage.daemon, &["attach", id], 100, 30);
    terminal.until("status", |text| text.contains("writer: free"));
    terminal
}

/// The whole of it: what was said, a prompt typed and answered, and leaving, after which the session goes on.
#[test]
fn a_prompt_is_typed_and_answered_and_detaching_leaves_the_session_alone() {
    let stage = Stage::new();
    let id = stage.detached("/say the first answer");
    stage.until_at_rest(&id);
    let mut terminal = attached(&stage, &id);
    terminal.until_shows("the first answer");
    terminal.press("/say the second answer\n/wait 60000");
    terminal.until_shows("send> /say the second answer\n      /wait 60000");
    terminal.press("\r");
    terminal.until("answer", |text| text.matches("the second answer").count() >= 2);
    terminal.until_shows("working");
    terminal.press(CTRL_D);
    assert_eq!(terminal.ended(), Some(0));
    let shown = stage.get(&format!("/sessions/{id}"));
    assert_eq!(shown["state"], "executing", "detaching is not stopping");
    let turn =
        stage.daemon.log_after(&id, 0).into_iter().rfind(|event| event["type"] == "turn.started").unwrap();
    let client_turn_id = turn["data"]["client_turn_id"].as_str().unwrap();
    assert_eq!(client_turn_id.len(), 36, "S3-15: every turn carries an id: {client_turn_id}");
}

/// X-02: the window is torn down; the turn comes to its end without anybody.
#[test]
fn a_client_that_dies_takes_nothing_with_it() {
    let stage = Stage::new();
    let id = stage.detached("/say begin\n/tool look {}\n/wait-file go\n/say the end");
    let mut terminal = attached(&stage, &id);
    terminal.until_shows("begin");
    terminal.kill_9();
    std::fs::write(stage.workspace().join("go"), "").unwrap();
    stage.until_at_rest(&id);
    let log = stage.daemon.log_after(&id, 0);
    assert!(log.iter().any(|event| event["data"]["text"] == "the end"), "{log:#?}");
    assert!(log.iter().any(|event| event["type"] == "turn.finished"), "{log:#?}");
}

/// A window that is closed ends the screen and no more: no process is left that reads from a terminal that is gone.
#[test]
fn a_terminal_that_goes_away_is_leaving() {
    let stage = Stage::new();
    let id = stage.detached("/say begin\n/wait 60000");
    let mut terminal = attached(&stage, &id);
    terminal.hang_up();
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(stage.get(&format!("/sessions/{id}"))["state"], "executing");
}

/// The daemon is killed and comes back: the screen says so, and nothing is missed or shown twice.
#[test]
fn a_restart_of_the_daemon_is_outlasted() {
    let mut stage = Stage::new();
    let id = stage.detached("/say before-the-restart\n/tool look {}\n/wait-file go\n/say after-the-restart");
    let mut terminal = attached(&stage, &id);
    terminal.until_shows("before-the-restart");
    stage.daemon.kill_9();
    terminal.until_shows("no daemon: `lanyard up` starts it");
    terminal.press("typed-while-away");
    terminal.until_shows("typed-while-away");
    let config = std::fs::read_to_string(stage.daemon.config()).unwrap();
    stage.daemon.restart_with(Setup::default().config(&config));
    std::fs::write(stage.workspace().join("go"), "").unwrap();
    let text = terminal.until("answer", |text| text.contains("\nafter-the-restart"));
    assert!(!text.contains("no connection"), "{text}");
    let once = |words: &str| text.lines().filter(|line| line.trim_end() == words).count();
    assert_eq!(once("before-the-restart"), 1, "{text}");
    assert_eq!(once("after-the-restart"), 1, "{text}");
    assert!(text.contains("> typed-while-away"), "what was typed is still there:\n{text}");
    terminal.press(CTRL_D);
    assert_eq!(terminal.ended(), Some(0));
}

/// FND-N12: a daemon that does not come back is not waited for without end, and what was typed is not lost.
#[test]
fn fnd_n12_the_screen_ends_when_the_daemon_stays_away() {
    let mut stage = Stage::new();
    let id = stage.detached("/say hello");
    stage.until_at_rest(&id);
    let env = [("LANYARD_DAEMON_WAIT_MS", "3000")];
    let mut terminal = Terminal::with_env(&stage.daemon, &["attach", &id], &env, (180, 30));
    terminal.until_shows("writer: free");
    stage.daemon.kill_9();
    terminal.until_shows("no daemon: `lanyard up` starts it");
    terminal.press("typed while away\r");
    assert_eq!(terminal.ended(), Some(3));
    terminal.until_shows("warning: not delivered: typed while away");
    terminal.until_shows("error: the daemon did not come back within 3 s [daemon_gone]");
    terminal.until_shows(&format!("`lanyard up --detach`, then continue with `lanyard attach {id}`"));
    // The command that was named continues.
    let config = std::fs::read_to_string(stage.daemon.config()).unwrap();
    stage.daemon.restart_with(Setup::default().config(&config));
    attached(&stage, &id).until_shows("hello");
}

/// X-01: guidance, questions, cancel and stop from the screen.
#[test]
fn a_session_is_guided_answered_and_stopped_from_its_screen() {
    let stage = Stage::new();
    let id = stage.detached("/ask Count the files here\n/say counted\n/wait 60000");
    let mut terminal = attached(&stage, &id);
    terminal.until_shows("asks for approval: Count the files here");
    terminal.until_shows("press a number");
    // Pressed until it counts: a question that has just come is not answered by what was typed before it.
    for _ in 0..100 {
        terminal.press("1");
        // sleep: as long as a finger needs.
        std::thread::sleep(std::time::Duration::from_millis(100));
        if !terminal.text().contains("press a number") {
            break;
        }
    }
    terminal.until_shows("counted");
    for _ in 0..20 {
        terminal.press("\u{7f}");
    }
    terminal.press(CTRL_G);
    terminal.until_shows("guide>");
    terminal.press("use staging\r");
    terminal.until_shows("guidance: use staging");
    terminal.press("?");
    terminal.until_shows("any key closes");
    terminal.press("x");
    terminal.press(CTRL_C);
    terminal.until_shows("cancel the turn");
    terminal.press("g");
    // FND-N5: the key asks first.
    terminal.press(CTRL_S);
    terminal.until_shows("Stop the session?");
    terminal.press("y");
    terminal.until_shows("level 1 (graceful)");
    stage.until(&id, |shown| shown["state"] == "stopped");
    terminal.until("end", |text| text.contains("stopped)"));
    terminal.press("q");
    assert_eq!(terminal.ended(), Some(0));
}

/// S3-B04: what waits is seen and withdrawn from the screen.
#[test]
fn a_message_waits_its_turn_and_is_withdrawn() {
    let stage = Stage::new();
    let id = stage.detached("/say busy\n/wait 60000");
    let mut terminal = attached(&stage, &id);
    terminal.until_shows("working");
    terminal.press("/say later");
    terminal.until_shows("next> /say later");
    terminal.press("\r");
    terminal.until_shows("1 queued");
    terminal.press(CTRL_Q);
    terminal.until_shows("> 1 [next] /say later");
    terminal.press("x");
    terminal.until_shows("nothing waits");
    terminal.press("\u{1b}");
    stage.until(&id, |_| true);
    assert_eq!(stage.get(&format!("/sessions/{id}/inbox"))["turns"], json!([]));
}

/// Two screens on one session: both see all of it, one holds the right to write and gives it to the other.
#[test]
fn the_right_to_write_passes_from_screen_to_screen() {
    let stage = Stage::new();
    let id = stage.detached("/say hello");
    stage.until_at_rest(&id);
    let mut first = attached(&stage, &id);
    first.press(ALT_W);
    first.until_shows("writer: you");
    let mut second = Terminal::lanyard(&stage.daemon, &["attach", &id], 100, 30);
    second.until_shows("writer: local (cli)");
    first.until_shows("also here: local (cli)");
    second.press("/say from the second\r");
    second.until_shows("[writer_held]");
    second.until_shows("send> /say from the second");
    second.press(ALT_W);
    first.until_shows("asks to write here");
    first.press("y");
    second.until_shows("writer: you");
    first.until_shows("writer: local (cli)");
    second.press("\r");
    first.until("words", |text| text.contains("\nfrom the second"));
    second.press(CTRL_D);
    assert_eq!(second.ended(), Some(0));
    // Whoever leaves gives it back.
    first.until_shows("writer: free");
}

#[test]
fn a_read_only_screen_and_a_list_to_choose_from() {
    let stage = Stage::new();
    let id = stage.detached("/say only looking");
    stage.until_at_rest(&id);
    let mut terminal = Terminal::lanyard(&stage.daemon, &["attach"], 80, 20);
    terminal.until_shows("ready for rev");
    terminal.press("nothing-like-it");
    terminal.until_shows("none of 1 session matches");
    for _ in 0.."nothing-like-it".len() {
        terminal.press("\u{7f}");
    }
    terminal.until_shows("ready for rev");
    terminal.press("\r");
    terminal.until_shows("writer: free");
    terminal.until("words", |text| text.contains("\nonly looking"));
    terminal.press("q");
    assert_eq!(terminal.ended(), Some(0));

    let mut terminal = Terminal::lanyard(&stage.daemon, &["attach", "-r", &id], 80, 20);
    terminal.until_shows("· read-only");
    // What somebody looks at is marked as seen; nothing else is written.
    stage.until(&id, |shown| shown["unread"] == false);
    let before = stage.get(&format!("/sessions/{id}"))["last_seq"].clone();
    terminal.press(CTRL_S);
    terminal.until_shows("read-only: started with -r");
    terminal.press("q");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(stage.get(&format!("/sessions/{id}"))["last_seq"], before);
}

/// Tool output and diffs open and close, prompts are recalled, and the line is edited as in a shell.
#[test]
fn fnd_n16_tools_open_prompts_come_back_and_the_line_is_edited() {
    let stage = Stage::new();
    let id = stage.detached("/run printf 'alpha\\nbeta\\n'\n/edit new.txt fresh\n/say ready");
    stage.until_at_rest(&id);
    let mut terminal = attached(&stage, &id);
    terminal.until_shows("▸ run printf");
    terminal.until("closed", |text| !text.contains("│ alpha") && !text.contains("│ + fresh"));
    // The newest call first.
    terminal.press("\u{14}");
    terminal.until_shows("│ + fresh");
    terminal.press("\u{14}");
    terminal.until("closed", |text| !text.contains("│ + fresh"));
    terminal.press("\u{1b}[1;3A");
    terminal.until_shows("Enter opens and closes");
    terminal.press("\r");
    terminal.until_shows("│ alpha");
    terminal.until("one", |text| !text.contains("│ + fresh"));
    terminal.press("\u{1b}t");
    terminal.until("all", |text| text.contains("│ alpha") && text.contains("│ + fresh"));
    terminal.press("\u{1b}t");
    terminal.until("none", |text| !text.contains("│ alpha") && !text.contains("│ + fresh"));

    // Up at an empty line recalls the prompt; Down leaves an empty line again.
    terminal.press("\u{1b}[A");
    terminal.until_shows("send> /run printf");
    terminal.press("\u{1b}[B");
    terminal.until("empty", |text| !text.contains("send> /run"));
    terminal.press("/say one two three");
    // Ctrl-W twice, Ctrl-A, Ctrl-K, Ctrl-Y.
    terminal.press("\u{17}\u{17}");
    terminal.until("two words gone", |text| text.lines().any(|line| line.trim_end() == "send> /say one"));
    terminal.until_shows("writer: free");
    terminal.press("\u{19}");
    terminal.until_shows("send> /say one two three");
    terminal.press("\u{1}\u{1b}d");
    terminal.until("a word gone", |text| text.lines().any(|line| line.trim_end() == "send>  one two three"));
    terminal.press("\u{b}\u{19}");
    terminal.until_shows("send>  one two three");
    terminal.press("\u{15}");
    terminal.until("nothing left", |text| text.lines().any(|line| line.trim_end() == "send>"));
    terminal.press("?");
    for words in ["Up Down", "Ctrl-A E W U K Y", "Alt-Up Alt-Down", "Alt-T", "(asks first)", "Alt-W"] {
        terminal.until_shows(words);
    }
    terminal.press("x");
    terminal.press(CTRL_D);
    assert_eq!(terminal.ended(), Some(0));
}
