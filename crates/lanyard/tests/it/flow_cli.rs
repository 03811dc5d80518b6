//! Flows as people meet them on the command line: one run to its end, one that asks, answered from anywhere. The agents
//! are scripted: one says about all its work the same, and one finds everything ready.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::operate::Stage;
use crate::support::{PATIENCE, Setup, binary};

pub(crate) const NEEDS_HUMAN: &str =
    r#"/say {"status":"needs_human","reason":"which key?","notes":"staging or production"}"#;
pub(crate) const ASKS: &str = "/ask May I write?";
const COMPLETE: &str = r#"/say {"status":"complete"}"#;
const READY: &str = r#"/say {"readiness":"ready","score":90}"#;

/// A daemon, an author, a reviewer and a plan.
pub(crate) struct Desk {
    pub(crate) stage: Stage,
    folder: tempfile::TempDir,
}

impl Desk {
    /// An author that says this about all its work.
    pub(crate) fn new(author: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("state").display().to_string();
        let program = binary().display().to_string();
        let reviewer = [&program, "scripted-agent", "--state", &kept, "--otherwise", READY];
        let settings = format!(
            "[agents.reviewer]\ndriver = \"acp\"\ncommand = {}\nkill_grace_ms = 500\n\
             [flow]\nauthor.agent = \"scripted\"\nreviewer.agent = \"reviewer\"\n\
             [[flow.quality]]\nname = \"tests\"\ncommand = [\"sh\", \"-c\", \"echo 3 passed\"]\n",
            serde_json::to_string(&reviewer).unwrap()
        );
        let stage = Stage::with(&["--otherwise", author], &settings);
        let desk = Self { stage, folder };
        let plan = format!(
            "# Release 1.0\n\n## Phase 1: Write it down\n\n- [ ] a note\n\n/wait-file {}\n\n\
             ## Phase 2: Tell people\n\n- [ ] a mail\n",
            desk.go().display()
        );
        std::fs::write(desk.plan(), plan).unwrap();
        desk
    }

    /// What the agents of the first phase wait for.
    fn go(&self) -> PathBuf {
        self.folder.path().join("go")
    }

    pub(crate) fn let_go(&self) {
        std::fs::write(self.go(), "").unwrap();
    }

    pub(crate) fn plan(&self) -> String {
        self.stage.workspace().join("PLAN.md").display().to_string()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(words)
            .env("LANYARD_DATA_DIR", self.stage.daemon.home())
            .env("LANYARD_CONFIG", self.stage.daemon.config())
            .env("LANYARD_NO_START", "1")
            .env_remove("LANYARD_FAILPOINT")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The command with these lines on its stdin.
    fn typed(&self, words: &[&str], lines: &str) -> Output {
        let mut child = self.command(words).spawn().unwrap();
        // Whoever has heard enough does not read on.
        let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
        child.wait_with_output().unwrap()
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let output = self.stage.lanyard(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    }

    /// The gate that waits, once it is not the one before.
    pub(crate) fn gate_after(&self, before: &str) -> Value {
        self.until("gates", |list| {
            let gate = list["flows"].as_array()?.first()?["gate"].clone();
            (gate["id"] != before).then_some(gate)
        })
    }

    pub(crate) fn until<T>(&self, path: &str, wanted: impl Fn(&Value) -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            let shown = self.stage.get(&format!("/{path}"));
            if let Some(found) = wanted(&shown) {
                return found;
            }
            assert!(since.elapsed() < PATIENCE, "still {shown:#}");
            // sleep: between two looks at a flow that goes on.
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Says what was refused, and has the code and the next command in it.
#[track_caller]
fn refused(output: &Output, code: &str, advice: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("[{code}]")) && said.contains(advice), "{said}");
}

#[test]
fn a_flow_is_run_to_its_end_listed_shown_and_reported() {
    let desk = Desk::new(COMPLETE);
    desk.let_go();
    let ran = desk.stage.lanyard(&["flow", "run", &desk.plan(), "--auto"]);
    let (id, told) = (text(&ran.stdout).trim().to_owned(), text(&ran.stderr));
    assert!(ran.status.success() && id.starts_with("flow_") && !id.contains('\n'), "{id}: {told}");
    for words in [
        "Release 1.0 (2 phases, ",
        "phase 1/2 Write it down",
        "step 1 execute: author in sess_",
        "author: complete",
        "check tests: passed in ",
        "reviewer: ready, score 90",
        "phase 1 Write it down: complete",
        "phase 2 Tell people: complete",
        "completed after ",
    ] {
        assert!(told.contains(words), "no {words:?} in {told}");
    }
    assert!(
        text(&desk.stage.lanyard(&["flow", "ls"]).stderr).contains("no flows; --all shows ended ones too")
    );
    let listed = desk.ok(&["flow", "ls", "--all"]);
    assert!(listed.contains(&id[id.len() - 6..]) && listed.contains("completed"), "{listed}");
    let shown = desk.ok(&["flow", "show"]);
    assert!(shown.contains("[x] Phase 1: Write it down") && shown.contains("tests: passed"), "{shown}");
    // Told again from the log, it is the same story.
    let log = desk.ok(&["flow", "show", &id, "--log"]);
    assert!(told.contains(log.lines().nth(1).unwrap()), "{log}\n{told}");

    let report = desk.ok(&["flow", "report"]);
    assert!(report.contains("Release 1.0"), "{report}");
    let file = desk.folder.path().join("report.md").display().to_string();
    desk.ok(&["flow", "report", &id, "-o", &file]);
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim_end(), report);
    let told: Value = serde_json::from_str(&desk.ok(&["flow", "report", "--json"])).unwrap();
    assert_eq!(told["title"], "Release 1.0", "{told:#}");
    refused(&desk.stage.lanyard(&["flow", "resume"]), "no_flow", "lanyard flow ls --all");
    refused(&desk.stage.lanyard(&["flow", "cancel", &id]), "flow_ended", "lanyard flow run");
}

/// S2-B07: never hangs and never aborts by itself. S2-01, S2-06, S2-12, S2-15: the prompt, and what is not offered.
#[test]
fn without_a_terminal_a_gate_stays_open_and_says_how_to_answer_it() {
    let desk = Desk::new(NEEDS_HUMAN);
    desk.let_go();
    let ran = desk.stage.lanyard(&["flow", "run", &desk.plan()]);
    let (flow, told) = (text(&ran.stdout).trim().to_owned(), text(&ran.stderr));
    assert_eq!(ran.status.code(), Some(4), "{told}");
    let first = desk.gate_after("")["id"].as_str().unwrap().to_owned();
    for words in [
        "The author needs a person: which key?",
        "| staging or production",
        &format!("lanyard answer {first} c [--message \"…\"]"),
        &format!("lanyard answer {first} q "),
        &format!("lanyard flow watch {flow}"),
    ] {
        assert!(told.contains(words), "no {words:?} in {told}");
    }
    let listed = desk.ok(&["approvals"]);
    assert!(
        listed.contains(&first[first.len() - 6..])
            && listed.contains(&flow[flow.len() - 6..])
            && listed.contains("c, f, o, q"),
        "{listed}"
    );
    let rows: Value = serde_json::from_str(&desk.ok(&["approvals", "--json"])).unwrap();
    let row = &rows["items"][0];
    assert_eq!((row["id"].as_str(), row["flow"].as_str()), (Some(&*first), Some(&*flow)), "{rows:#}");
    assert!(desk.ok(&["top", "--once"]).starts_with("APPROVAL"));
    let watched = desk.stage.lanyard(&["flow", "watch", "--last", "0"]);
    assert_eq!(watched.status.code(), Some(4), "{}", text(&watched.stderr));

    let silent = desk.stage.lanyard(&["answer"]);
    assert_eq!(silent.status.code(), Some(4));
    assert!(text(&silent.stderr).contains(&format!("{first} stays open")), "{}", text(&silent.stderr));
    let answered = desk.typed(&["answer"], "zz\n\nc\nthe staging key\n");
    let said = text(&answered.stderr);
    assert!(answered.status.success() && said.contains("`zz` is no answer"), "{said}");
    assert!(said.contains("answered: continue_session"), "{said}");

    // The same author asks the same again, and can be continued again (FND-M2), until its session is gone.
    let second = desk.gate_after(&first);
    let session = second["continue_session"]["session"].as_str().unwrap();
    let id = second["id"].as_str().unwrap();
    desk.ok(&["complete", session]);
    refused(&desk.stage.lanyard(&["answer", id, "c"]), "continuation_gone", "fix it in a new session");
    refused(&desk.stage.lanyard(&["answer", id, "c"]), "choice_not_offered", "type f (fix)");
    refused(&desk.stage.lanyard(&["answer", id, "maybe"]), "choice_unknown", &format!("lanyard answer {id}"));
    refused(&desk.stage.lanyard(&["answer", &first, "o"]), "gate_not_open", "lanyard approvals");
    let o = desk.stage.lanyard(&["answer", id, "o", "--guidance", "never mind"]);
    refused(&o, "guidance_not_taken", "leave the words away");
    let pressed = desk.typed(&["answer", &flow], "c\ncontinue-session\n");
    assert_eq!(pressed.status.code(), Some(4), "{}", text(&pressed.stderr));
    assert_eq!(text(&pressed.stderr).matches("that is not offered").count(), 2, "{}", text(&pressed.stderr));
    desk.ok(&["answer", id, "override"]);
    desk.gate_after(id);
    desk.ok(&["answer", &flow, "q"]);
    let log = desk.ok(&["flow", "show", "--log"]);
    assert!(log.contains("told \"the staging key\"") && log.contains("aborted by "), "{log}");
    let watched = desk.stage.lanyard(&["flow", "watch", &flow]);
    assert_eq!(watched.status.code(), Some(1), "{}", text(&watched.stderr));
    assert!(text(&watched.stderr).contains(&format!("lanyard flow resume {flow}")));
    refused(&desk.stage.lanyard(&["answer", &flow, "o"]), "gate_answered", "lanyard flow show");
    desk.ok(&["flow", "resume"]);
    desk.ok(&["flow", "cancel", "--reason", "wrong plan"]);
    assert!(desk.ok(&["flow", "show"]).contains("wrong plan"));
}

#[test]
fn what_cannot_be_done_says_what_can() {
    let desk = Desk::new(COMPLETE);
    let lanyard = |words: &[&str]| desk.stage.lanyard(words);
    refused(&lanyard(&["flow", "run", "/nowhere/PLAN.md"]), "plan_unreadable", "Markdown file");
    let empty = desk.stage.workspace().join("empty.md").display().to_string();
    std::fs::write(&empty, "# A title and nothing else\n").unwrap();
    refused(&lanyard(&["flow", "run", &empty]), "plan_without_phases", "## Phase 1");
    refused(
        &lanyard(&["flow", "run", &desk.plan(), "--author", "nobody"]),
        "agent_unknown",
        "lanyard config edit",
    );
    refused(&lanyard(&["flow", "watch"]), "no_flow", "lanyard flow run PLAN.md");
    refused(&lanyard(&["flow", "report"]), "no_flow", "lanyard flow run PLAN.md");
    refused(
        &lanyard(&["flow", "show", "flow_01m7n5djg0fayvh8t5cxyjkdnf"]),
        "flow_not_found",
        "lanyard flow ls",
    );
    refused(&lanyard(&["answer", "gate_01m7n5djg0fayvh8t5cxyjkdnf"]), "gate_not_open", "lanyard approvals");
    refused(
        &lanyard(&["answer", "gate_01m7n5djg0fayvh8t5cxyjkdnf", "c"]),
        "gate_not_open",
        "lanyard approvals",
    );
    assert!(text(&lanyard(&["answer"]).stderr).contains("no approval is open"));
    // One flow at a time works at a plan.
    let first = desk.ok(&["flow", "run", &desk.plan(), "--detach"]);
    refused(&lanyard(&["flow", "run", &desk.plan(), "--detach"]), "plan_taken", &first);
    desk.ok(&["flow", "cancel"]);
}

/// `lanyard flow run` whose daemon is killed in its first step; what it told so far is in the file.
fn watched_and_killed(desk: &Desk, wait_ms: &str) -> (Child, PathBuf) {
    let file = desk.folder.path().join("told");
    let mut watching = desk.command(&["flow", "run", &desk.plan(), "--auto"]);
    watching.env("LANYARD_DAEMON_WAIT_MS", wait_ms).stderr(std::fs::File::create(&file).unwrap());
    let mut watching = watching.spawn().unwrap();
    drop(watching.stdin.take());
    until_told(&file, "step 1 execute");
    desk.stage.daemon.kill_9();
    until_told(&file, "the daemon is gone; start it with `lanyard up --detach`");
    (watching, file)
}

fn until_told(file: &Path, words: &str) {
    let since = Instant::now();
    let told = || std::fs::read_to_string(file).unwrap();
    while !told().contains(words) {
        assert!(since.elapsed() < PATIENCE, "no {words:?} in {}", told());
        // sleep: between two looks at what somebody who watches is told.
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A flow that is watched while its daemon is killed is watched on, and nothing is told twice.
#[test]
fn watching_outlasts_the_daemon() {
    let mut desk = Desk::new(COMPLETE);
    let (watching, file) = watched_and_killed(&desk, "60000");
    let config = std::fs::read_to_string(desk.stage.daemon.config()).unwrap();
    desk.stage.daemon.restart_with(Setup::default().config(&config));
    desk.let_go();
    let watched = watching.wait_with_output().unwrap();
    let told = std::fs::read_to_string(file).unwrap();
    assert!(watched.status.success(), "{told}");
    assert!(told.contains("the daemon is back; going on after event"), "{told}");
    let mut steps: Vec<&str> =
        told.lines().filter_map(|line| line.split_once("step ")).map(|(_, step)| step).collect();
    let all = steps.len();
    steps.dedup();
    assert_eq!(steps.len(), all, "{told}");
    assert_eq!(told.matches("completed after").count(), 1, "{told}");
}

/// FND-N12: a daemon that does not come back is not waited for without end.
#[test]
fn fnd_n12_watching_a_flow_ends_when_the_daemon_stays_away() {
    let mut desk = Desk::new(COMPLETE);
    let (watching, file) = watched_and_killed(&desk, "1500");
    let watched = watching.wait_with_output().unwrap();
    let (flow, told) = (text(&watched.stdout).trim().to_owned(), std::fs::read_to_string(file).unwrap());
    assert_eq!(watched.status.code(), Some(3), "{told}");
    assert!(told.contains("[daemon_gone]"), "{told}");
    assert!(told.contains(&format!("then continue with `lanyard flow watch {flow}`")), "{told}");
    let config = std::fs::read_to_string(desk.stage.daemon.config()).unwrap();
    desk.stage.daemon.restart_with(Setup::default().config(&config));
    desk.let_go();
    desk.ok(&["flow", "watch", &flow]);
}

/// FND-N6: a watcher says at once that the author waits to be allowed something, and how to answer.
#[test]
fn fnd_n6_a_watched_flow_says_what_its_author_asks() {
    let desk = Desk::new(ASKS);
    desk.let_go();
    let mut child = desk.command(&["flow", "run", &desk.plan()]).spawn().unwrap();
    drop(child.stdin.take());
    let gate =
        desk.until("gates", |list| list["gates"].as_array()?.first()?["id"].as_str().map(str::to_owned));
    let shown = desk.ok(&["flow", "show"]);
    assert!(shown.contains("asks for approval: May I write?") && shown.contains(&gate), "{shown}");
    assert!(shown.contains(&format!("lanyard answer {gate} allow")), "{shown}");
    let flow: Value = serde_json::from_str(&desk.ok(&["flow", "show", "--json"])).unwrap();
    assert_eq!(flow["approvals"][0]["id"], gate.as_str());
    // Said while it is open: the watcher is read before anybody answers.
    let mut told = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(&format!("lanyard answer {gate} allow")) {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut told, &mut line).unwrap() > 0, "it ended without a word");
    }
    desk.ok(&["flow", "cancel"]);
    let _ = child.wait();
}
