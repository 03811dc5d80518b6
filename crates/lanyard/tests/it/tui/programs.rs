//! Programs on terminals as people meet them: started, watched, typed into, left, and found again after any daemon.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::terminal::Terminal;
use super::text;
use crate::support::{Answer, Daemon, Setup, until};

/// A full-screen program: it draws, tells its window's size, counts the keys it reads and keeps them in a file.
const PROGRAM: &str = r#"
trap '' HUP
stty raw -echo
printf '\033[?1049h\033[2J\033[1;1Hfull screen\033]2;the program\007'
count=0
: > "$1"
printf '\033[c'
until [ "$(dd bs=1 count=1 2>/dev/null)" = c ]; do :; done
printf '\033[6;1Hanswered'
while :; do
  set -- "$1" $(stty size)
  printf '\033[2;1Hsize %sx%s\033[K\033[4;1H' "$3" "$2"
  key=$(dd bs=1 count=1 2>/dev/null)
  case $key in
    q) break ;;
    f) i=0; while [ $i -lt 20000 ]; do printf '\033[5;1Hflood %s and a line that is long enough to matter' $i; i=$((i+1)); done ;;
    [a-z]) count=$((count+1)); printf %s "$key" >> "$1" ;;
  esac
  printf '\033[3;1Hkeys %s last <%s>\033[K' "$count" "$key"
done
printf '\033[?1049lbye\n'
exit 7
"#;

struct Stage {
    daemon: Daemon,
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("program.sh"), PROGRAM).unwrap();
        Self { daemon: Daemon::start(Setup::default().config("[writer]\ndeny_ms = 100\n")), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn words<'a>(more: &[&'a str], script: &'a str, typed: &'a str) -> Vec<&'a str> {
        [&["run", "--pty"], more, &["--", "sh", script, typed]].concat()
    }

    /// Starts the program and answers its session.
    fn detached(&self) -> String {
        let (script, typed) = (self.path("program.sh"), self.path("typed"));
        let cwd = self.folder.path().to_str().unwrap().to_owned();
        let words = Self::words(&["-d", "--cwd", &cwd], script.to_str().unwrap(), typed.to_str().unwrap());
        let started = self.daemon.lanyard(&words);
        assert!(started.status.success(), "{}", text(&started.stderr));
        text(&started.stdout).trim().to_owned()
    }

    fn post(&self, session: &str, what: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let path = format!("/api/v1/sessions/{session}/{what}");
        self.daemon.request("POST", &path, headers, Some(&body.to_string()))
    }

    fn type_keys(&self, session: &str, key: &str, keys: &str) -> Answer {
        let body = json!({ "data": STANDARD.encode(keys) });
        self.post(session, "terminal/input", &[("idempotency-key", key)], &body)
    }

    fn screen(&self, session: &str) -> Value {
        let answer = self.daemon.request("GET", &format!("/api/v1/sessions/{session}/terminal"), &[], None);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    fn until_screen(&self, session: &str, words: &str) -> Value {
        self.until_shown(session, words, |screen| screen["text"].as_str().unwrap().contains(words))
    }

    /// With these words, and with the cursor where the program waits for a key: it draws no more.
    fn until_at_rest(&self, session: &str, words: &str) -> Value {
        let rest = json!({"row": 3, "col": 0});
        self.until_shown(session, words, |screen| {
            screen["text"].as_str().unwrap().contains(words) && screen["cursor"] == rest
        })
    }

    fn until_shown(&self, session: &str, words: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let shown = until(|| {
            last = self.screen(session);
            is_it(&last)
        });
        assert!(shown, "no {words:?} on {last:#}");
        last
    }

    fn view(&self, session: &str) -> Value {
        self.daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).json()
    }

    fn typed(&self) -> String {
        std::fs::read_to_string(self.path("typed")).unwrap_or_default()
    }

    fn event(&self, session: &str, kind: &str) -> Option<Value> {
        let events = self.daemon.log_after(session, 0);
        events.into_iter().rev().find(|event| event["type"] == kind).map(|event| event["data"].clone())
    }

    /// The event that tells of the end of its run.
    fn until_ended(&self, session: &str) -> Value {
        assert!(until(|| self.event(session, "run.ended").is_some()), "{:#}", self.view(session));
        self.event(session, "run.ended").unwrap()
    }
}

#[test]
fn a_program_is_a_session_like_any_other_with_its_command_its_screen_and_its_end() {
    let stage = Stage::new();
    let session = stage.detached();
    let shown = stage.until_screen(&session, "size 80x24");
    assert_eq!((&shown["running"], &shown["title"]), (&json!(true), &json!("the program")));
    assert_eq!(stage.view(&session)["terminal"]["command"][0], "sh");
    assert_eq!(stage.event(&session, "run.started").unwrap()["driver"], "terminal");

    // Its question was answered by the daemon.
    assert!(shown["text"].as_str().unwrap().contains("answered"), "{shown:#}");
    assert_eq!(stage.type_keys(&session, "k1", "a").status, 200);
    stage.until_screen(&session, "keys 1 last <a>");
    assert_eq!(stage.type_keys(&session, "k1", "a").json()["repeated"], true);
    let sized = stage.post(&session, "terminal/size", &[], &json!({"cols": 100, "rows": 30}));
    assert_eq!(sized.status, 200, "{}", sized.text());
    assert_eq!(stage.type_keys(&session, "k2", "b").status, 200);
    stage.until_screen(&session, "size 100x30");
    for (cols, rows) in [(0, 24), (80, 0), (10_000, 24)] {
        let refused = stage.post(&session, "terminal/size", &[], &json!({"cols": cols, "rows": rows}));
        assert_eq!((refused.status, refused.code().as_str()), (422, "window_size_bad"));
    }
    let refused = stage.post(&session, "turns", &[], &json!({"prompt": "hello"}));
    assert_eq!((refused.status, refused.code().as_str()), (409, "terminal_takes_no_turns"));
    let refused = stage.post(&session, "terminal/input", &[], &json!({"data": "***"}));
    assert_eq!((refused.status, refused.code().as_str()), (422, "terminal_input_bad"));

    assert_eq!(stage.type_keys(&session, "k3", "q").status, 200);
    let ended = stage.until_ended(&session);
    assert_eq!(ended["how"], json!({"kind": "exited", "code": 7}), "{ended:#}");
    assert_eq!(stage.typed(), "ab");
    assert_eq!(stage.type_keys(&session, "k4", "x").code(), "terminal_not_running");
    assert_eq!(stage.screen(&session)["running"], false);
    let log = stage.daemon.lanyard(&["log", &session]);
    assert!(text(&log.stdout).contains("The last screen:\n\nbye"), "{}", text(&log.stdout));
    let cast = stage.path("out.cast");
    let exported = stage.daemon.lanyard(&["log", &session, "--cast", cast.to_str().unwrap()]);
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    let cast = std::fs::read_to_string(cast).unwrap();
    let head: Value = serde_json::from_str(cast.lines().next().unwrap()).unwrap();
    assert_eq!(head["version"], 2);
    assert!(
        cast.contains("full screen") && cast.lines().all(|line| serde_json::from_str::<Value>(line).is_ok())
    );

    // Again is a new run of the same command, and says that the one before is lost to it.
    let again = stage.daemon.lanyard(&["resume", &session]);
    assert!(text(&again.stderr).contains("continuity lost"), "{}", text(&again.stderr));
    stage.until_screen(&session, "answered");
    let opened = stage.view(&session)["run"]["opened"].clone();
    assert_eq!(opened, "lost");
}

#[test]
fn a_daemon_that_is_killed_types_nothing_twice_and_finds_the_screen_as_it_is() {
    let mut stage = Stage::new();
    let session = stage.detached();
    stage.until_screen(&session, "size 80x24");
    assert_eq!(stage.type_keys(&session, "k1", "a").status, 200);
    stage.until_screen(&session, "keys 1");
    let sized = stage.post(&session, "terminal/size", &[], &json!({"cols": 70, "rows": 20}));
    assert_eq!(sized.status, 200, "{}", sized.text());
    // In the middle of its output.
    assert_eq!(stage.type_keys(&session, "k2", "f").status, 200);
    stage.until_screen(&session, "flood");
    stage.daemon.kill_9();
    stage.daemon.try_start().unwrap();
    let shown = stage.until_screen(&session, "flood 19999");
    assert_eq!(shown["size"], json!({"cols": 70, "rows": 20}));
    assert!(shown["text"].as_str().unwrap().starts_with("full screen\nsize "), "{shown:#}");
    // What may or may not have arrived is sent again.
    assert_eq!(stage.type_keys(&session, "k1", "a").json()["repeated"], true);
    assert_eq!(stage.type_keys(&session, "k2", "f").json()["repeated"], true);
    assert_eq!(stage.type_keys(&session, "k3", "b").status, 200);
    let before = stage.until_at_rest(&session, "keys 2 last <b>");
    stage.daemon.kill_9();
    stage.daemon.try_start().unwrap();
    assert_eq!(stage.until_at_rest(&session, "keys 2 last <b>"), before);
    assert_eq!(stage.typed(), "ab");
}

#[test]
fn a_stop_ends_it_with_what_it_started_and_the_receipt_says_how() {
    let stage = Stage::new();
    let session = stage.detached();
    stage.until_screen(&session, "size 80x24");
    let stopped = stage.daemon.lanyard(&["stop", &session]);
    assert!(stopped.status.success(), "{}", text(&stopped.stderr));
    let ended = stage.until_ended(&session);
    assert_eq!(stage.view(&session)["state"], "stopped");
    let processes = ended["receipt"]["processes"].as_array().unwrap();
    assert!(!processes.is_empty(), "{ended:#}");
}

#[test]
fn closing_the_terminal_only_detaches_and_the_next_one_shows_the_same_screen() {
    let stage = Stage::new();
    let (script, typed) = (stage.path("program.sh"), stage.path("typed"));
    let cwd = stage.folder.path().to_str().unwrap().to_owned();
    let words =
        Stage::words(&["--cwd", &cwd, "--name", "prog"], script.to_str().unwrap(), typed.to_str().unwrap());
    let mut first = Terminal::lanyard(&stage.daemon, &words, 100, 20);
    first.until_shows("size 100x19");
    first.until_shows("writing");
    first.press("a");
    first.until_shows("keys 1 last <a>");
    first.hang_up();
    drop(first);
    let session = stage.view("prog")["id"].as_str().unwrap().to_owned();
    stage.until_screen(&session, "keys 1 last <a>");

    let mut second = Terminal::lanyard(&stage.daemon, &["attach", "prog"], 90, 25);
    second.until_shows("keys 1 last <a>");
    // Its window is the writer's, once the one before hands over or is gone.
    second.press("\x1cw");
    second.until_shows("writing");
    second.press("b");
    second.until_shows("keys 2 last <b>");
    second.until_shows("size 90x24");

    // One who only watches sees the writer's size, and types nothing.
    let mut watcher = Terminal::lanyard(&stage.daemon, &["attach", "-r", "prog"], 60, 10);
    watcher.until_shows("keys 2 last <b>");
    watcher.until_shows("90x24");
    watcher.press("xyz");
    second.press("c");
    watcher.until_shows("keys 3 last <c>");
    watcher.press("q");
    assert_eq!(watcher.ended(), Some(0));
    watcher.until_shows("detached");

    second.press("\x1cd");
    assert_eq!(second.ended(), Some(0));
    second.until_shows("detached; the program runs on");
    assert_eq!(stage.typed(), "abc");
    assert_eq!(stage.screen(&session)["running"], true);
}

#[test]
fn who_is_attached_goes_on_over_a_restart_of_the_daemon() {
    let mut stage = Stage::new();
    let session = stage.detached();
    stage.until_screen(&session, "size 80x24");
    let mut terminal = Terminal::lanyard(&stage.daemon, &["attach", &session], 90, 25);
    terminal.until_shows("writing");
    terminal.press("a");
    terminal.until_shows("keys 1");
    stage.daemon.kill_9();
    terminal.until_shows("the daemon does not answer");
    terminal.press("b");
    stage.daemon.try_start().unwrap();
    terminal.until_shows("keys 2 last <b>");
    terminal.press("c");
    terminal.until_shows("keys 3 last <c>");
    terminal.press("q");
    assert_eq!(terminal.ended(), Some(0));
    terminal.until_shows("the program has ended");
    assert_eq!(stage.typed(), "abc");
}

#[test]
fn a_flood_slows_no_other_session_and_leaves_a_bounded_folder() {
    let stage = Stage::new();
    let cwd = stage.folder.path().to_str().unwrap().to_owned();
    let flood = ["run", "--pty", "-d", "--cwd", &cwd, "--", "sh", "-c", "yes a line of the flood"];
    let flooding = text(&stage.daemon.lanyard(&flood).stdout).trim().to_owned();
    stage.until_screen(&flooding, "a line of the flood");
    let session = stage.detached();
    stage.until_screen(&session, "size 80x24");
    for number in 0..20 {
        assert_eq!(stage.type_keys(&session, &format!("k{number}"), "a").status, 200);
    }
    stage.until_screen(&session, "keys 20");
    // What was drawn is given back.
    let run = stage.view(&flooding)["run"]["id"].as_str().unwrap().to_owned();
    let folder = stage.daemon.home().join("runs").join(run);
    let (out, cast) = (folder.join("out"), folder.join("recording.cast"));
    let given_back = || std::fs::metadata(&out).is_ok_and(|meta| meta.len() > blocks(&out) + (1 << 20));
    assert!(until(given_back), "{} bytes take {}", std::fs::metadata(&out).unwrap().len(), blocks(&out));
    assert!(std::fs::metadata(&cast).unwrap().len() < 33 << 20);
    let stopped = stage.daemon.lanyard(&["stop", &flooding]);
    assert!(stopped.status.success(), "{}", text(&stopped.stderr));
}

fn blocks(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).unwrap().blocks() * 512
}
