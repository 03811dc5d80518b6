//! The console blocks of the README and the docs, run in their order as a new user would run them.
//!
//! Every page has a new home, a new git repository and a new daemon; all agents are scripted ones. Every
//! line behind `$` runs in a shell, and the lines below it are what it prints on either stream. `page.rs` has the comments
//! by which a page prepares a block or says why it is not run, `compare.rs` what may differ.

mod compare;
mod page;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use expect_test::expect_file;

use crate::support::{MARK, binary, end_processes, until};
use compare::{Ids, all_fit, with_ids};
use page::{Step, steps};

macro_rules! pages {
    ($($name:ident $file:literal)*) => {
        const PAGES: &[&str] = &[$($file),*];
        $(
            #[test]
            fn $name() {
                play($file);
            }
        )*
    };
}

pages! {
    readme "README.md"
    agent_tools "docs/agent-tools.md"
    attach "docs/attach.md"
    checkpoints "docs/checkpoints.md"
    configuration "docs/configuration.md"
    dashboard "docs/dashboard.md"
    first_session "docs/first-session.md"
    flows "docs/flows.md"
    hooks "docs/hooks.md"
    insight "docs/insight.md"
    install "docs/install.md"
    mcp_conformance "docs/mcp-conformance.md"
    mcp "docs/mcp.md"
    memory "docs/memory.md"
    metrics "docs/metrics.md"
    names "docs/names.md"
    notifications "docs/notifications.md"
    plans_and_tasks "docs/plans-and-tasks.md"
    reading "docs/reading.md"
    recipes "docs/recipes.md"
    review "docs/review.md"
    search "docs/search.md"
    security "docs/security.md"
    stop_and_guidance "docs/stop-and-guidance.md"
    storage "docs/storage.md"
    troubleshooting "docs/troubleshooting.md"
    turns "docs/turns.md"
    words "docs/words.md"
    worktrees "docs/worktrees.md"
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> Vec<Step> {
    steps(&std::fs::read_to_string(root().join(page)).unwrap())
}

#[test]
fn every_page_with_a_console_block_is_run() {
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let has_block = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let commands = text.lines().filter(|line| line.starts_with("$ ")).count();
        let in_blocks = page::console_lines(&text).filter(|line| line.starts_with("$ ")).count();
        assert_eq!(commands, in_blocks, "{} has a command outside of a console block", path.display());
        text.contains("```console")
    };
    let name = |path: PathBuf| path.strip_prefix(root()).unwrap().display().to_string();
    let mut found: Vec<String> =
        pages.chain([root().join("README.md")]).filter(has_block).map(name).collect();
    found.sort();
    assert_eq!(found, PAGES);
}

/// Only what needs root, an account, a registry or minutes of a build is not run, and each block says so.
#[test]
fn blocks_that_are_not_run_say_why() {
    let (mut text, mut count) = (String::new(), 0);
    for name in PAGES {
        for step in read(name) {
            if let Step::Unrun { command, reason } = step {
                count += 1;
                writeln!(text, "{name}: {command}\n    {reason}").unwrap();
            }
        }
    }
    expect_file!["snapshots/unrun_blocks.txt"].assert_eq(&format!("{count} blocks\n{text}"));
}

/// Commands that only show how something is: a reader repeats them until it is there.
const LOOKS: [&str; 25] = [
    "approvals",
    "checkpoints",
    "compare show",
    "diff",
    "flow ls",
    "flow report",
    "flow show",
    "guidance",
    "id",
    "inbox",
    "log",
    "ls",
    "mailbox show",
    "memory policy pay",
    "memory search",
    "memory show",
    "metrics",
    "notifications",
    "plan ls",
    "plan show",
    "show",
    "status",
    "task ls",
    "task show",
    "turns",
];

fn is_look(command: &str) -> bool {
    let words: Vec<&str> = command.split(' ').collect();
    LOOKS.iter().any(|verb| {
        let verb: Vec<&str> = ["lanyard"].into_iter().chain(verb.split(' ')).collect();
        words.starts_with(&verb)
            && !["snooze", "go", "pause", "--mode"].iter().any(|word| words.contains(word))
    })
}

/// Printed by a first start while another program, another test for one, has the usual port.
const PORT_IN_USE: &str = "127.0.0.1:7717 is in use;";

/// A new user's machine: a home, a repository, and Lanyard on PATH.
struct Machine {
    folder: tempfile::TempDir,
}

/// Agents of the machine.
const AGENTS: [&str; 4] = ["demo", "codex", "author", "reviewer"];
/// The name that pages have for the home of the test.
const HOME: &str = "/home/you";

impl Machine {
    fn new() -> Self {
        // In /tmp, since a socket's path must be short.
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        let machine = Self { folder };
        std::fs::create_dir_all(machine.shop()).unwrap();
        std::fs::create_dir_all(machine.path("bin")).unwrap();
        std::fs::create_dir_all(machine.path(".config/lanyard")).unwrap();
        std::fs::write(machine.shop().join("README.md"), "# Shop\n\nA small shop.\n").unwrap();
        std::fs::write(machine.path(".config/lanyard/config.toml"), machine.config()).unwrap();
        machine.hidden("git init -q -b main . && git add . && git commit -q -m 'a shop'");
        machine
    }

    /// Scripted agents under the names that the pages use. A message without steps takes them from a file in
    /// `~/scripts/AGENT`, or is answered with `Done.`.
    fn config(&self) -> String {
        let mut config = "[daemon]\nlisten = \"127.0.0.1:0\"\ndefault_agent = \"demo\"\n".to_owned();
        for agent in AGENTS {
            let scripts = self.path("scripts").join(agent);
            std::fs::create_dir_all(&scripts).unwrap();
            let command = serde_json::json!([
                binary(),
                "scripted-agent",
                "--scripts",
                scripts,
                "--otherwise",
                "/say Done."
            ]);
            writeln!(config, "[agents.{agent}]\ndriver = \"acp\"\ncommand = {command}\nkill_grace_ms = 400")
                .unwrap();
        }
        config
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn shop(&self) -> PathBuf {
        self.path("shop")
    }

    /// What a command prints on both streams, and whether it succeeds. `~/env` has variables for all commands.
    fn shell(&self, command: &str) -> (String, bool) {
        let home = self.folder.path();
        let programs = binary().parent().unwrap().display();
        let command = command.replace(HOME, &home.display().to_string());
        let output = Command::new("bash")
            .args(["-c", &format!("exec 2>&1; [ -e ~/env ] && . ~/env\n{command}")])
            .current_dir(self.shop())
            .env_clear()
            // Without agents that are installed for the user.
            .env("PATH", format!("{}:{programs}:/usr/bin:/bin", self.path("bin").display()))
            .env("HOME", home)
            .env(MARK, home)
            .env("XDG_STATE_HOME", self.path(".local/state"))
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b"), ("GIT_COMMITTER_NAME", "a")])
            .env("GIT_COMMITTER_EMAIL", "a@b")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap().replace(&home.display().to_string(), HOME);
        // A page says what a machine prints on which nothing else has the usual port.
        let told = text.lines().filter(|line| !line.starts_with(PORT_IN_USE)).collect::<Vec<_>>().join("\n");
        (told, output.status.success())
    }

    fn hidden(&self, command: &str) {
        let (told, good) = self.shell(command);
        assert!(good, "`{command}` failed:\n{told}");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let left = end_processes(self.folder.path(), &self.path(".local/share/lanyard"));
        assert!(left.is_empty() || std::thread::panicking(), "processes are left behind: {left:?}");
    }
}

fn play(name: &str) {
    let steps = read(name);
    assert!(!steps.is_empty(), "{name} shows no commands");
    let machine = Machine::new();
    let mut ids = Ids::new();
    for step in steps {
        let (command, printed) = match step {
            Step::Unrun { .. } => continue,
            Step::Hidden(command) => {
                machine.hidden(&with_ids(&command, &ids));
                continue;
            }
            Step::Shown { command, printed } => (with_ids(&command, &ids), printed),
        };
        let Some(printed) = printed else {
            machine.hidden(&command);
            continue;
        };
        let fitting = |told: &str| all_fit(&printed, &told.trim_end().lines().collect::<Vec<&str>>(), &ids);
        let mut told = String::new();
        let mut once = || {
            told = machine.shell(&command).0;
            fitting(&told).is_some()
        };
        // A reader looks again until it is there; what changes something is done once.
        let _ = if is_look(&command) { until(once) } else { once() };
        let Some(now) = fitting(&told) else {
            panic!("{name}: `{command}` printed\n{told}\nand not\n{}", printed.join("\n"));
        };
        ids = now;
    }
}
