//! A hostile repository, and agents that use it: FIFOs, devices, links, huge files, programs in git's config, and names
//! and words that would steer a terminal. None of it blocks the daemon, confirms what is not so, or runs a program.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

use super::kit::{Stage, Talk, until};
use crate::support::{Daemon, Setup};

const RULES: &str = ".lanyard/permissions.toml";
/// Whatever the agents ask is allowed, unless the repository is stricter.
const ALLOW: &str = "permissions = { default = \"allow\" }";

fn fifo(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn git(folder: &Path, words: &[&str]) {
    let who = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    let done = Command::new("git").args(who).args(words).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "git {words:?}: {}", text(&done.stderr));
}

/// A second workspace beside the stage's own.
fn folder(stage: &Stage, name: &str) -> PathBuf {
    let folder = stage.work().with_file_name(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A session that asks a question which its repository's rules decide.
fn asking<'a>(stage: &'a Stage, folder: &Path) -> Talk<'a> {
    let mut talk = stage.talk_of(&json!({"agent": "a", "workspace": folder}));
    talk.turn("/ask May I go on?");
    talk.until("gate.opened");
    talk
}

fn answers(daemon: &Daemon) {
    for _ in 0..5 {
        assert_eq!(daemon.request("GET", "/api/v1/status", &[], None).status, 200);
    }
}

/// FND-K1: as found, a stop was not confirmed within a minute, and SIGTERM was ignored.
#[test]
fn fnd_k1_an_agent_that_reads_a_fifo_is_stopped_and_the_daemon_ends() {
    let stage = Stage::new();
    fifo(&stage.file("pipe"));
    symlink("pipe", stage.file("link")).unwrap();
    symlink("/dev/zero", stage.file("zero")).unwrap();
    std::fs::File::create(stage.file("huge")).unwrap().set_len(1 << 40).unwrap();
    let mut talk = stage.talk();
    for step in ["/read pipe", "/write pipe x", "/read link", "/read zero", "/write zero x", "/read huge"] {
        talk.answer_to(step);
        let returned = *talk.all("tool.returned").last().unwrap();
        assert_eq!(returned["data"]["is_error"], true, "{step}: {returned:#}");
    }
    talk.turn("/read pipe\n/terminal touch there; cat pipe");
    stage.await_file("there");
    let stopped = stage.daemon.lanyard(&["stop", "--now", &talk.id]);
    assert!(stopped.status.success(), "{}", text(&stopped.stderr));
    talk.run_over();
    assert_eq!(talk.until("session.ended")["data"]["how"], "stopped");

    let mut other = stage.talk();
    other.turn("/terminal touch here; cat pipe");
    stage.await_file("here");
    other.stop();
    other.until("session.ended");
    assert!(stage.daemon.terminate().success());
}

/// FND-K1: as found, two such files on two cores left no HTTP answer, and the next daemon hung again.
#[test]
fn fnd_k1_rules_that_are_fifos_in_two_workspaces_hold_up_nobody() {
    let mut stage = Stage::with(&[], ALLOW);
    let folders = ["one", "two", "three", "four"].map(|name| folder(&stage, name));
    fifo(&folders[0].join(RULES));
    fifo(&folders[1].join(RULES));
    for (folder, target) in folders[2..].iter().zip(["/dev/zero", "/etc/passwd"]) {
        std::fs::create_dir(folder.join(".lanyard")).unwrap();
        symlink(target, folder.join(RULES)).unwrap();
    }
    let ids: Vec<String> = folders.iter().map(|folder| asking(&stage, folder).id).collect();
    answers(&stage.daemon);
    // Nothing allowed what the rules could not be read for.
    for id in &ids {
        let log = stage.daemon.log_after(id, 0);
        assert!(log.iter().all(|event| event["type"] != "gate.answered"), "{log:#?}");
    }
    let mut free = stage.talk();
    assert_eq!(free.answer_to("/ask May I?"), "permission: allow_once");

    stage.daemon.kill_9();
    stage.daemon.try_start().unwrap();
    answers(&stage.daemon);
    for id in &ids {
        let mut talk = stage.follow(id);
        talk.catch_up();
        let gate = talk.all("gate.opened")[0]["data"]["gate"].as_str().unwrap().to_owned();
        let answered = talk.post(&format!("gates/{gate}"), &json!({"option": "allow"}));
        assert_eq!(answered.status, 200, "{}", answered.text());
        assert_eq!(talk.over()["type"], "turn.finished");
    }
}

/// A program that leaves a mark outside the workspace.
struct Trap {
    mark: PathBuf,
    program: String,
}

impl Trap {
    fn new(stage: &Stage) -> Self {
        let folder = folder(stage, "trap");
        let (mark, script) = (folder.join("MARK"), folder.join("trap.sh"));
        std::fs::write(&script, format!("#!/bin/sh\ntouch '{}'\ncat\n", mark.display())).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { mark, program: script.display().to_string() }
    }

    fn is_untouched(&self, when: &str) {
        assert!(!self.mark.exists(), "a program of the repository ran: {when}");
    }
}

/// A repository whose config and attributes name the trap wherever a program can be named.
fn hostile_repository(work: &Path, trap: &Trap) {
    git(work, &["init", "-q"]);
    std::fs::write(work.join("kept.f"), "one\n").unwrap();
    std::fs::write(work.join(".gitattributes"), "*.f filter=evil diff=evil merge=evil\n").unwrap();
    git(work, &["add", "."]);
    git(work, &["commit", "-qm", "first"]);
    for key in [
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.external",
        "diff.evil.textconv",
        "merge.evil.driver",
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "gpg.program",
    ] {
        git(work, &["config", key, &trap.program]);
    }
    git(work, &["config", "commit.gpgSign", "true"]);
    std::fs::create_dir_all(work.join(".git/hooks")).unwrap();
    for hook in ["post-checkout", "reference-transaction", "post-index-change", "pre-commit"] {
        symlink(&trap.program, work.join(".git/hooks").join(hook)).unwrap();
    }
}

/// FND-K13.
#[test]
fn fnd_k13_git_a_hostile_repository_runs_nothing_in_the_daemon() {
    let stage = Stage::new();
    let trap = Trap::new(&stage);
    hostile_repository(&stage.work(), &trap);
    let mut talk = stage.talk();
    talk.answer_to("/edit kept.f two\\n");
    trap.is_untouched("a turn");
    talk.answer_to("/edit kept.f six\\n");
    talk.catch_up();
    assert!(talk.all("context.snapshot").len() >= 2, "{:#?}", talk.seen);
    let run = |words: &[&str]| -> Output {
        let output = stage.daemon.lanyard(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        output
    };
    assert!(text(&run(&["diff", &talk.id]).stdout).contains("+six"));
    trap.is_untouched("a diff");
    run(&["checkpoint", &talk.id]);
    trap.is_untouched("a checkpoint");
    let first = talk.all("context.snapshot")[0]["data"]["name"].as_str().unwrap().to_owned();
    run(&["rollback", &talk.id, &first, "--yes"]);
    trap.is_untouched("a rollback");
    assert_eq!(std::fs::read_to_string(stage.file("kept.f")).unwrap(), "one\n");
    talk.stop();
    talk.until("session.ended");
    trap.is_untouched("a stop");
}

/// FND-K1: a stop is not kept waiting by a snapshot that git cannot finish.
#[test]
fn fnd_k1_a_stop_does_not_wait_for_a_snapshot() {
    let stage = Stage::new();
    let work = stage.work();
    git(&work, &["init", "-q"]);
    // Git waits for it until its deadline, which is far.
    fifo(&work.join("deep/.gitignore"));
    let mut talk = stage.talk();
    talk.turn("/say hello");
    talk.until("run.ready");
    let stopped = stage.daemon.lanyard(&["stop", "--now", &talk.id]);
    assert!(stopped.status.success(), "{}", text(&stopped.stderr));
    talk.until("session.ended");
    let skipped = talk.all("context.snapshot_skipped");
    assert_eq!(
        skipped.first().map(|event| &event["data"]["code"]),
        Some(&json!("snapshot_cut")),
        "{:#?}",
        talk.seen
    );
    std::fs::remove_file(work.join("deep/.gitignore")).unwrap();
    // The git that waits still goes with the daemon.
    assert!(stage.daemon.terminate().success());
    until("git to go", || waiting_in(&work).is_empty());
}

/// FND-M10: the end of a turn does not wait for its checkpoint, and the next turn only for a while.
#[test]
fn fnd_m10_the_end_of_a_turn_does_not_wait_for_its_checkpoint() {
    let stage = Stage::new();
    let work = stage.work();
    git(&work, &["init", "-q"]);
    let mut talk = stage.talk();
    talk.turn("/run mkdir deep && mkfifo deep/.gitignore");
    talk.until("turn.finished");
    talk.until("context.snapshot_skipped");
    let codes: Vec<_> =
        talk.all("context.snapshot_skipped").iter().map(|event| event["data"]["code"].clone()).collect();
    assert_eq!(codes, [json!("snapshot_slow")], "{:#?}", talk.seen);
    assert!(stage.daemon.terminate().success());
    // The agent lives on in that folder.
    until("git to go", || !waiting_in(&work).iter().any(|command| command.starts_with("git")));
}

/// Processes that work in a folder.
fn waiting_in(folder: &Path) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let here =
        all.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder));
    here.map(|entry| text(&std::fs::read(entry.path().join("cmdline")).unwrap_or_default())).collect()
}

/// FND-K12.
#[test]
fn fnd_k12_an_agents_words_do_not_steer_the_terminal() {
    let said = "printf 'one\\n\\033]0;title\\007two\\n\\033[2J\\033[31mthree\\n' >&2; read line; exit 3";
    let stage = Stage::program(&["sh", "-c", said], "");
    let checked = stage.daemon.lanyard(&["agents", "check", "a"]);
    assert_eq!(checked.status.code(), Some(1));
    let shown = text(&checked.stderr);
    assert!(shown.contains("three"), "{shown:?}");
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    stage.is_unharmed();
}

/// FND-N11: how a program that exits at once ended, and what it said last, whether it was spoken to before or after.
#[test]
fn fnd_n11_a_check_says_how_a_program_that_exits_at_once_ended() {
    let said = "printf 'starting\\n\\033[31mset API_KEY\\n' >&2; exit 7";
    let stage = Stage::program(&["sh", "-c", said], "");
    for _ in 0..5 {
        let checked = stage.daemon.lanyard(&["agents", "check", "a"]);
        assert_eq!(checked.status.code(), Some(1));
        let shown = text(&checked.stderr);
        assert!(shown.contains("it exited with 7 before it greeted"), "{shown:?}");
        assert!(shown.contains("set API_KEY") && !shown.contains("supervisor"), "{shown:?}");
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    }
    let checked = stage.daemon.lanyard(&["agents", "check", "a", "--json"]);
    let check: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(check["problem"]["code"], "handshake_failed", "{check}");
    stage.is_unharmed();
}

/// FND-K12: names of files are an agent's words too.
#[test]
fn fnd_k12_names_of_files_do_not_forge_lines() {
    let stage = Stage::new();
    let work = stage.work();
    git(&work, &["init", "-q"]);
    let mut talk = stage.talk();
    talk.answer_to("/say hello");
    let forged = "a\u{1b}[2J\nSUBAGENT INTERRUPTED\nerror: all is lost";
    std::fs::write(work.join(forged), "x\n").unwrap();
    let diff = stage.daemon.lanyard(&["diff", &talk.id]);
    let shown = text(&diff.stdout) + &text(&diff.stderr);
    assert!(diff.status.success() && shown.contains("SUBAGENT"), "{shown:?}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    assert!(!shown.lines().any(|line| line.starts_with("SUBAGENT") || line.starts_with("error:")), "{shown}");
}

/// FND-K13.
#[test]
fn fnd_k13_mcp_env_has_nothing_of_the_daemons_own() {
    let folder = tempfile::tempdir().unwrap();
    let server = |name: &str, more: &str| {
        let file = folder.path().join(name);
        let script = format!("env > '{}.new'; mv '{0}.new' '{0}'", file.display());
        format!("[mcp.{name}]\ncommand = {}\n{more}\n", json!(["sh", "-c", script]))
    };
    let config = server("usual", "")
        + &server("bare", "clear_env = true\nenv = { OWN = \"1\" }")
        + "[notifications.webhooks.w]\nurl = \"http://127.0.0.1:9/\"\nsecret_env = \"MY_HOOK\"\n";
    let mut setup = Setup::default().config(&config);
    for name in ["LANYARD_DATA_DIR", "LANYARD_TOKEN", "MY_HOOK", "OTEL_EXPORTER_OTLP_HEADERS", "HARMLESS"] {
        setup = setup.env(name, "of=the-daemon");
    }
    let daemon = Daemon::start(setup);
    let told = |name: &str| {
        let file = folder.path().join(name);
        // It is started and ends at once: its environment is all that is wanted of it.
        let _ = daemon.caller().try_request("POST", &format!("/api/v1/mcp/{name}/check"), &[], Some("{}"));
        until("a server to start", || file.exists());
        std::fs::read_to_string(file).unwrap()
    };
    let usual = told("usual");
    assert!(usual.contains("HARMLESS=of=the-daemon"), "{usual}");
    let bare = told("bare");
    assert!(bare.contains("OWN=1") && bare.contains("PATH="), "{bare}");
    assert!(!bare.contains("HARMLESS"), "{bare}");
    for env in [usual, bare] {
        assert!(!env.contains("LANYARD_DATA_DIR") && !env.contains("LANYARD_TOKEN"), "{env}");
        assert!(!env.contains("MY_HOOK") && !env.contains("OTEL"), "{env}");
    }
}
