//! Scenarios: a text of commands in, a transcript out. The real binary and the real daemon, with seeded ids and a
//! clock in a file. `UPDATE_EXPECT=1` writes the transcripts anew.
//!
//! Lines of a scenario:
//!
//! - `lanyard …`, or `NAME = lanyard …` to keep what it printed; `$NAME` stands for it later
//! - `http METHOD PATH [JSON] [key=KEY]`: a request with the operator's token
//! - `until SESSION STATE`: wait until the session is in that state
//! - `$DIR` is an empty folder to work in
//! - `clock +2h`: move time; `kill` and `start`: end the daemon with SIGKILL and start it again

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use expect_test::expect_file;

use crate::support::{Daemon, Setup};

/// 2026-11-15 08:00 UTC.
const BEGINNING_MS: i64 = 1_794_729_600_000;
/// How long `until` looks.
const PATIENCE: Duration = Duration::from_secs(20);

macro_rules! scenarios {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                play(stringify!($name));
            }
        )*
    };
}

scenarios! {
    addresses agents bad_input cancel compaction crash family guidance handover keys life quiet stall stop
}

#[test]
fn every_scenario_file_is_played() {
    let mut files: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort();
    assert_eq!(files, NAMES);
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

fn play(name: &str) {
    let script = std::fs::read_to_string(folder().join(format!("{name}.txt"))).unwrap();
    let mut stage = Stage::new();
    for line in script.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        stage.play(line);
    }
    expect_file![folder().join(format!("{name}.out"))].assert_eq(&stage.transcript);
}

struct Stage {
    daemon: Daemon,
    clock: PathBuf,
    now_ms: i64,
    starts: u64,
    names: BTreeMap<String, String>,
    transcript: String,
    _folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = folder.path().join("clock");
        std::fs::write(&clock, BEGINNING_MS.to_string()).unwrap();
        let daemon = Daemon::start(setup(&clock, 1));
        let work = folder.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let work = work.canonicalize().unwrap().display().to_string();
        let (names, transcript) = (BTreeMap::from([("DIR".to_owned(), work)]), String::new());
        Self { daemon, clock, now_ms: BEGINNING_MS, starts: 1, names, transcript, _folder: folder }
    }

    fn play(&mut self, line: &str) {
        if line.starts_with('#') {
            let _ = writeln!(self.transcript, "{line}");
            return;
        }
        let _ = writeln!(self.transcript, "\n> {line}");
        let (name, command) = match line.split_once(" = ") {
            Some((name, command)) if name.chars().all(char::is_uppercase) => (Some(name), command),
            Some(_) | None => (None, line),
        };
        let words = split(command);
        let words: Vec<String> = words.iter().map(|word| self.expand(word)).collect();
        match words[0].as_str() {
            "lanyard" => self.lanyard(name, &words[1..]),
            "http" => self.http(&words[1..]),
            "until" => self.until(&words[1], &words[2]),
            "clock" => self.move_clock(&words[1]),
            "kill" => self.daemon.kill_9(),
            "start" => {
                self.starts += 1;
                let setup = setup(&self.clock, self.starts);
                self.daemon.restart_with(setup);
            }
            other => panic!("no such command in a scenario: {other}"),
        }
    }

    fn expand(&self, word: &str) -> String {
        // Longest names first, so that $AB is not taken for $A.
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        names
            .into_iter()
            .fold(word.to_owned(), |word, (name, value)| word.replace(&format!("${name}"), value))
    }

    /// Adds to the transcript, with known ids shown by their names.
    fn show(&mut self, mark: &str, text: &str) {
        let text = self
            .names
            .iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(value.as_str(), &format!("${name}")));
        for line in text.lines() {
            let _ = writeln!(self.transcript, "{}", format!("{mark}{line}").trim_end());
        }
    }

    fn lanyard(&mut self, name: Option<&str>, words: &[String]) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = self.daemon.lanyard(&words);
        let stdout = String::from_utf8(output.stdout).unwrap();
        if let Some(name) = name {
            self.names.insert(name.to_owned(), stdout.trim().to_owned());
        }
        self.show("", &stdout);
        self.show("! ", &String::from_utf8(output.stderr).unwrap());
        if !output.status.success() {
            let _ = writeln!(self.transcript, "! exit code {}", output.status.code().unwrap_or(-1));
        }
    }

    fn http(&mut self, words: &[String]) {
        let (method, path) = (&words[0], format!("/api/v1{}", words[1]));
        let key = words[2..].iter().find_map(|word| word.strip_prefix("key="));
        let body = words[2..].iter().find(|word| !word.starts_with("key="));
        let mut headers = Vec::new();
        if let Some(key) = key {
            headers.push(("idempotency-key", key));
        }
        let answer = self.daemon.request(method, &path, &headers, body.map(String::as_str));
        let replayed = answer.header("idempotent-replayed").map_or("", |_| " (replayed)");
        let _ = writeln!(self.transcript, "HTTP {}{replayed}", answer.status);
        self.show("", &answer.text());
    }

    fn until(&mut self, session: &str, state: &str) {
        let since = Instant::now();
        loop {
            let shown = self.daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None);
            let shown: serde_json::Value = serde_json::from_str(&shown.text()).unwrap();
            if shown["state"] == state {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "{session} is {} and not {state}", shown["state"]);
            // sleep: between two looks at a daemon whose timers run by themselves.
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn move_clock(&mut self, by: &str) {
        let (amount, unit) = by.split_at(by.len() - 1);
        let unit_ms = match unit {
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            other => panic!("no such unit of time: {other}"),
        };
        self.now_ms += amount.parse::<i64>().unwrap() * unit_ms;
        // Renamed into place: the daemon never reads half a number.
        let aside = self.clock.with_extension("new");
        std::fs::write(&aside, self.now_ms.to_string()).unwrap();
        std::fs::rename(&aside, &self.clock).unwrap();
    }
}

fn setup(clock: &Path, seed: u64) -> Setup {
    Setup::default()
        .env("LANYARD_CLOCK_FILE", clock)
        .env("LANYARD_SEED", seed.to_string())
        // Where the demo agent keeps its conversations.
        .env("XDG_STATE_HOME", clock.with_extension("state"))
}

/// Words as a shell would see them: quotes group, and JSON may stand without any.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let end = rest[1..].find(quote).map_or(rest.len(), |at| at + 1);
                (&rest[1..end], rest.get(end + 1..).unwrap_or(""))
            }
            Some('{' | '[') => {
                let end = rest.find(" key=").unwrap_or(rest.len());
                (&rest[..end], &rest[end..])
            }
            Some(_) | None => {
                let end = rest.find(' ').unwrap_or(rest.len());
                (&rest[..end], &rest[end..])
            }
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}
