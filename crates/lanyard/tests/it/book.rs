//! The console blocks of the docs, run in their order as a new user would run them.
//!
//! Every line behind `$` runs in a shell, in a new git repository with a new daemon per page. The lines below it are what
//! it prints, on either stream. Ids differ from run to run: an id of the page stands for the one that was printed in its
//! place, from then on also in commands. `…` stands for any text in a line, and alone for any lines.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use lanyard_api::home::Home;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{binary, until};

/// Pages whose blocks are run. Those of the others are only parsed: they show agents that need an account, or moments
/// that cannot be had twice.
const PAGES: [&str; 1] = ["first-session.md"];

/// One command of a page, and what the page says it prints.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    command: String,
    printed: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            let command = command.split("  #").next().unwrap_or_default().trim_end();
            steps.push(Step { command: command.to_owned(), printed: Vec::new() });
        } else if let Some(step) = steps.last_mut().filter(|_| inside) {
            step.printed.push(line.trim_end().to_owned());
        }
    }
    for step in &mut steps {
        let used = step.printed.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        step.printed.truncate(used);
    }
    steps
}

/// Ids of the page, each with the id that it stands for.
type Ids = BTreeMap<String, String>;

/// The id at the beginning of a text: a kind, `_` and 26 characters.
fn id_at(text: &str) -> Option<&str> {
    let kind =
        text.find('_').filter(|end| *end > 0 && text[..*end].bytes().all(|c| c.is_ascii_lowercase()))?;
    let id = text.get(..kind + 27)?;
    id[kind + 1..].bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()).then_some(id)
}

/// Whether a line is what the page says. Returns what is known of ids then.
fn fits(wanted: &str, line: &str, ids: &Ids) -> Option<Ids> {
    if let Some(rest) = wanted.strip_prefix('…') {
        let ends = (0..=line.len()).filter(|end| line.is_char_boundary(*end));
        return ends.into_iter().find_map(|end| fits(rest, &line[end..], ids));
    }
    if let Some(id) = id_at(wanted) {
        let real = id_at(line).filter(|real| ids.get(id).is_none_or(|known| known == real))?;
        let mut ids = ids.clone();
        ids.insert(id.to_owned(), real.to_owned());
        return fits(&wanted[id.len()..], &line[real.len()..], &ids);
    }
    match (wanted.chars().next(), line.chars().next()) {
        (None, None) => Some(ids.clone()),
        (Some(one), Some(other)) if one == other => {
            fits(&wanted[one.len_utf8()..], &line[one.len_utf8()..], ids)
        }
        (_, _) => None,
    }
}

fn all_fit(wanted: &[String], lines: &[&str], ids: &Ids) -> Option<Ids> {
    match (wanted, lines) {
        ([], []) => Some(ids.clone()),
        ([any, rest @ ..], _) if any == "…" => {
            (0..=lines.len()).find_map(|skipped| all_fit(rest, &lines[skipped..], ids))
        }
        ([one, rest @ ..], [line, lines @ ..]) => {
            fits(one, line.trim_end(), ids).and_then(|ids| all_fit(rest, lines, &ids))
        }
        (_, _) => None,
    }
}

/// Whether a command only shows how something is.
fn is_look(command: &str) -> bool {
    ["gates", "ls", "log"].iter().any(|verb| command.starts_with(&format!("lanyard {verb}")))
}

/// A new user's machine: a home, a repository, and Lanyard on PATH.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        // In /tmp, since a socket's path must be short.
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        let desk = Self { folder };
        std::fs::create_dir_all(desk.shop()).unwrap();
        std::fs::write(desk.shop().join("README.md"), "# Shop\n\nA small shop.\n").unwrap();
        std::fs::write(desk.path("config.toml"), "[daemon]\nlisten = \"127.0.0.1:0\"\n").unwrap();
        desk.shell("git init -q -b main . && git add . && git commit -q -m 'a shop'");
        desk
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn shop(&self) -> std::path::PathBuf {
        self.path("shop")
    }

    /// What a command prints on both streams.
    fn shell(&self, command: &str) -> String {
        let programs = binary().parent().unwrap().display();
        let output = Command::new("bash")
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(self.shop())
            .env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap()))
            .env("HOME", self.folder.path())
            .env("LANYARD_DATA_DIR", self.path("data"))
            .env("LANYARD_CONFIG", self.path("config.toml"))
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b"), ("GIT_COMMITTER_NAME", "a")])
            .env("GIT_COMMITTER_EMAIL", "a@b")
            .env_remove("LANYARD_NO_START")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let running = Home { dir: self.path("data") }.running().ok().flatten();
        if let Some(pid) = running.and_then(|running| Pid::from_raw(running.pid.cast_signed())) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[test]
fn the_console_blocks_of_the_docs_print_what_they_show() {
    for name in PAGES {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        let desk = Desk::new();
        let mut ids = Ids::new();
        let steps = steps(&std::fs::read_to_string(page).unwrap());
        assert!(!steps.is_empty(), "{name} shows no commands");
        for Step { command, printed } in steps {
            let command = ids.iter().fold(command, |command, (page, real)| command.replace(page, real));
            let fitting = |told: &str| all_fit(&printed, &told.lines().collect::<Vec<&str>>(), &ids);
            let mut told = String::new();
            let mut once = || {
                told = desk.shell(&command);
                fitting(&told).is_some()
            };
            // A person looks again until it is there; what changes something is done once.
            let _ = if is_look(&command) { until(once) } else { once() };
            let Some(now) = fitting(&told) else {
                panic!("{name}: `{command}` printed\n{told}\nand not\n{}", printed.join("\n"));
            };
            ids = now;
        }
    }
}

#[test]
fn a_line_fits_with_other_ids_and_with_any_text_at_the_dots() {
    let ids = Ids::new();
    let page = "session sess_01m7n5djg0fayvh8t5cxyjkdnf made … ago";
    let real = "session sess_01m9n5djg0fayvh8t5cxyjkdaa made 3 s ago";
    let ids = fits(page, real, &ids).unwrap();
    assert!(fits("sess_01m7n5djg0fayvh8t5cxyjkdnf", "sess_01m9n5djg0fayvh8t5cxyjkdaa", &ids).is_some());
    assert!(fits("sess_01m7n5djg0fayvh8t5cxyjkdnf", "sess_01m9n5djg0fayvh8t5cxyjkdbb", &ids).is_none());
    assert!(fits("made … ago", "made 3 s later", &ids).is_none());
    let wanted: Vec<String> = ["one", "…", "four"].map(str::to_owned).into();
    assert!(all_fit(&wanted, &["one", "two", "three", "four"], &ids).is_some());
    assert!(all_fit(&wanted, &["one", "two", "three"], &ids).is_none());
}

#[test]
fn a_page_is_read_as_commands_with_what_they_print() {
    let page = "text\n```console\n$ one  # why\n  out\n\n$ two\n```\n```toml\n$ not\n```\n";
    let step = |command: &str, printed: &[&str]| Step {
        command: command.to_owned(),
        printed: printed.iter().map(|line| (*line).to_owned()).collect(),
    };
    assert_eq!(steps(page), [step("one", &["  out"]), step("two", &[])]);
}
