//! Sessions with a git worktree of their own, and the setup that a repository asks for in new worktrees.

use std::path::Path;

use lanyard_base::failpoint;
use serde_json::{Value, json};

use super::kit::{Stage, git, id, until};
use crate::support::{Answer, Caller};

const FILE: &str = ".lanyard/worktree.toml";

fn new(stage: &Stage, worktree: &Value) -> Value {
    json!({ "agent": "a", "title": "Fix the login", "workspace": stage.repo(), "worktree": worktree })
}

fn made(stage: &Stage, worktree: &Value) -> String {
    id(&stage.ok("/sessions", &new(stage, worktree)), "session")
}

fn shown(stage: &Stage, session: &str) -> Value {
    stage.get(&format!("/sessions/{session}"))
}

fn told(stage: &Stage, session: &str, words: &str) {
    stage.ok(&format!("/sessions/{session}/turns"), &json!({ "prompt": words }));
    stage.rests(session);
}

/// Deletes a session that has ended, and waits until nothing is left of it.
fn removed(stage: &Stage, session: &str) {
    stage.ok(&format!("/sessions/{session}/complete"), &json!({}));
    let path = format!("/api/v1/sessions/{session}");
    let answer = stage.daemon.request("DELETE", &path, &[], Some("{}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    until("the purge", || stage.get(&format!("/sessions/{session}/purge"))["complete"] == true);
}

/// The setup file, and files for it that git ignores.
fn setup(stage: &Stage, text: &str) {
    let repo = stage.repo();
    std::fs::create_dir_all(repo.join(".lanyard")).unwrap();
    std::fs::write(repo.join(FILE), text).unwrap();
    std::fs::write(repo.join(".gitignore"), ".lanyard/\n.env\nset-up*\n").unwrap();
    std::fs::write(repo.join(".env"), "KEY=1\n").unwrap();
    git(&repo, &["add", ".gitignore"]);
    git(&repo, &["commit", "-q", "--allow-empty", "-m", "ignore"]);
}

fn trust(stage: &Stage) -> Value {
    let path = format!("/worktree-setup?workspace={}", stage.repo().display());
    let hash = stage.get(&path)["hash"].clone();
    stage.ok("/worktree-setup", &json!({ "workspace": stage.repo(), "hash": hash }))
}

fn refusal(answer: &Answer) -> String {
    assert!(answer.status >= 400, "{}", answer.text());
    answer.code()
}

#[test]
fn a_session_works_in_a_worktree_of_its_own_and_leaves_a_branch() {
    let stage = Stage::new();
    let session = made(&stage, &json!({}));
    let view = shown(&stage, &session);
    let (branch, path) = (id(&view["tree"], "branch"), id(&view["tree"], "path"));
    assert!(branch.starts_with("lanyard/fix-the-login-"), "{branch}");
    assert_eq!(view["workspace"], path.as_str());
    assert_eq!(view["tree"]["repository"], stage.repo().to_str().unwrap());
    told(&stage, &session, "/edit new.txt from the worktree\n/say done");
    assert!(Path::new(&path).join("new.txt").exists());
    assert!(!stage.repo().join("new.txt").exists());
    let card = String::from_utf8(stage.daemon.lanyard(&["show", &session]).stdout).unwrap();
    assert!(card.contains(&branch) && card.contains(&path), "{card}");
    let listed = String::from_utf8(stage.daemon.lanyard(&["ls"]).stdout).unwrap();
    assert!(listed.contains(&branch), "{listed}");
    // What is in no commit outlives the session, on its branch.
    removed(&stage, &session);
    assert!(!Path::new(&path).exists());
    assert_eq!(git(&stage.repo(), &["show", &format!("{branch}:new.txt")]), "from the worktree");
    assert_eq!(stage.worktrees(), 1);
}

#[test]
fn a_clean_worktree_goes_and_one_that_others_work_in_stays() {
    let stage = Stage::new();
    let session = made(&stage, &json!({ "branch": "fix/login" }));
    let path = id(&shown(&stage, &session)["tree"], "path");
    let fork = id(&stage.ok(&format!("/sessions/{session}/fork"), &json!({})), "session");
    removed(&stage, &session);
    assert!(Path::new(&path).exists(), "the fork works there");
    removed(&stage, &fork);
    assert!(!Path::new(&path).exists());
    assert!(stage.branch("fix/login"));
    // The branch is there and checked out nowhere: it can be gone on with.
    let again = made(&stage, &json!({ "branch": "fix/login" }));
    assert_eq!(shown(&stage, &again)["tree"]["branch"], "fix/login");
}

#[test]
fn bad_worktrees_are_refused_and_leave_nothing() {
    let stage = Stage::new();
    for (worktree, code) in [
        (json!({ "branch": "main" }), "branch_in_use"),
        (json!({ "branch": "a b" }), "bad_branch_name"),
        (json!({ "branch": "-x" }), "bad_branch_name"),
        (json!({ "branch": "x", "base": "nowhere" }), "unknown_base"),
        (json!({ "brunch": "x" }), "body_invalid"),
    ] {
        assert_eq!(stage.refused("/sessions", &new(&stage, &worktree)), code, "{worktree}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let there = |folder: &Path| json!({ "agent": "a", "workspace": folder, "worktree": {} });
    assert_eq!(stage.refused("/sessions", &there(elsewhere.path())), "not_a_repository");
    git(elsewhere.path(), &["init", "-q"]);
    assert_eq!(stage.refused("/sessions", &there(elsewhere.path())), "no_commit");
    assert_eq!(stage.refused("/sessions", &json!({ "agent": "a", "worktree": {} })), "worktree_needs_folder");
    assert_eq!(stage.worktrees(), 1);
    assert_eq!(git(&stage.repo(), &["branch", "--list"]).lines().count(), 1);
    // Nothing is checked out by name: a commit is enough.
    git(&stage.repo(), &["checkout", "-q", "--detach"]);
    made(&stage, &json!({ "branch": "main" }));
}

#[test]
fn the_same_key_makes_one_worktree() {
    let stage = Stage::new();
    let body = new(&stage, &json!({})).to_string();
    let post = || {
        let key = [("idempotency-key", "k1")];
        stage.daemon.request("POST", "/api/v1/sessions", &key, Some(&body)).json()["session"].clone()
    };
    let first = post();
    assert!(first.is_string() && first == post());
    assert_eq!(stage.worktrees(), 2);
}

#[test]
fn a_setup_file_is_applied_once_it_is_allowed() {
    let stage = Stage::new();
    setup(&stage, "setup = ['echo ready > set-up; echo told']\ncopy = ['.env']\n");
    let body = new(&stage, &json!({ "branch": "x" }));
    let answer = stage.post("/sessions", &body);
    assert_eq!(refusal(&answer), "worktree_setup_untrusted");
    let title = id(&answer.json(), "title");
    assert!(title.contains("run `echo ready > set-up; echo told`; copy `.env`"), "{title}");
    assert!(!stage.branch("x"), "nothing was begun");
    // The hash of what was read is what is allowed.
    let other = json!({ "workspace": stage.repo(), "hash": "0" });
    assert_eq!(stage.refused("/worktree-setup", &other), "worktree_setup_changed");
    assert_eq!(trust(&stage)["trusted"], true);
    let session = id(&stage.ok("/sessions", &body), "session");
    let path = id(&shown(&stage, &session)["tree"], "path");
    for (file, text) in [("set-up", "ready\n"), (".env", "KEY=1\n")] {
        assert_eq!(std::fs::read_to_string(Path::new(&path).join(file)).unwrap(), text);
    }
    let created = &stage.daemon.log_after(&session, 0)[0]["data"];
    assert_eq!(created["setup"][0]["output"], "told\n", "{created}");
    // Changed content is not what was allowed.
    setup(&stage, "setup = ['touch set-up-too']\n");
    assert_eq!(stage.refused("/sessions", &new(&stage, &json!({}))), "worktree_setup_untrusted");
}

#[test]
fn a_setup_that_fails_says_why_and_leaves_nothing() {
    let stage = Stage::new();
    setup(&stage, "setup = ['echo one', 'echo broken >&2; exit 3']\n");
    trust(&stage);
    let answer = stage.post("/sessions", &new(&stage, &json!({ "branch": "x" })));
    assert_eq!(refusal(&answer), "worktree_setup_failed");
    let title = id(&answer.json(), "title");
    assert!(title.contains("ended with code 3") && title.contains("broken"), "{title}");
    assert!(!stage.branch("x"));
    assert_eq!(stage.worktrees(), 1);
}

#[test]
fn tasks_are_set_up_too_and_fail_while_that_is_not_allowed() {
    let stage = Stage::new();
    setup(&stage, "setup = ['touch set-up']\n");
    let task = stage.task("/say hello", &json!({}));
    let failed = stage.is(&task, "failed");
    let reason = id(&failed, "reason");
    assert!(reason.contains("it would run `touch set-up`"), "{reason}");
    trust(&stage);
    stage.ok(&format!("/tasks/{task}/retry"), &json!({ "deploy": true }));
    stage.is(&task, "completed");
    let more = stage.task("/ask May I?", &json!({}));
    until("its worktree", || {
        let tree = stage.show(&more)["tree"].clone();
        tree["path"].as_str().is_some_and(|path| Path::new(path).join("set-up").exists())
    });
    stage.ok(&format!("/tasks/{more}/cancel"), &json!({}));
    stage.is(&more, "cancelled");
}

/// An agent's token allows nothing, and neither does `lanyard` in its shell.
#[test]
fn an_agent_cannot_allow_a_setup_file() {
    let stage = Stage::new();
    setup(&stage, "setup = ['touch set-up']\n");
    let session = stage.chat();
    let token = stage.ok("/tokens", &json!({ "role": "agent", "name": "x", "session": session }));
    let agent = Caller { token: id(&token, "token"), ..stage.daemon.caller() };
    let path = format!("/api/v1/worktree-setup?workspace={}", stage.repo().display());
    assert_eq!(agent.try_request("GET", &path, &[], None).unwrap().status, 403);
    let hash = stage.get(&path["/api/v1".len()..])["hash"].clone();
    let body = json!({ "workspace": stage.repo(), "hash": hash }).to_string();
    let answer = agent.try_request("POST", "/api/v1/worktree-setup", &[], Some(&body)).unwrap();
    assert_eq!(answer.status, 403, "{}", answer.text());
}

/// A daemon that dies on the way leaves either a session with its worktree or neither.
#[test]
fn a_daemon_that_dies_on_the_way_leaves_no_worktree_without_a_session() {
    for place in failpoint::OF_TREES {
        let mut stage = Stage::new();
        stage.up_to(&format!("{place}:1"));
        let body = new(&stage, &json!({ "branch": "x" })).to_string();
        let caller = stage.daemon.caller();
        let _ = caller.try_request("POST", "/api/v1/sessions", &[], Some(&body));
        stage.dies();
        stage.up();
        let sessions = stage.get("/sessions?limit=10")["sessions"].as_array().unwrap().len();
        assert_eq!(sessions, usize::from(place == "trees_after_create"), "{place}");
        assert_eq!(stage.worktrees(), 1 + sessions, "{place}");
        assert_eq!(stage.branch("x"), sessions == 1, "{place}");
        let trees = std::fs::read_dir(stage.daemon.home().join("trees")).into_iter().flatten().flatten();
        let trees = trees.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')).count();
        assert_eq!(trees, sessions, "{place}");
        if sessions == 0 {
            made(&stage, &json!({ "branch": "x" }));
        }
    }
}

#[test]
fn the_command_line_asks_for_a_worktree_and_shows_its_setup() {
    let stage = Stage::new();
    setup(&stage, "setup = ['echo from the setup']\n");
    let repo = stage.repo();
    let repo = repo.to_str().unwrap();
    let run = |words: &[&str]| {
        let output = stage.daemon.lanyard(words);
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let ask = ["run", "--agent", "a", "--cwd", repo, "--worktree=x", "/say hi"];
    let (code, _, said) = run(&ask);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("[worktree_setup_untrusted]") && said.contains("lanyard worktree trust"), "{said}");
    let (_, shown, _) = run(&["worktree", "show", repo]);
    assert_eq!(shown, format!("{repo}/{FILE}: not allowed\n  run   echo from the setup\n"));
    let (_, shown, _) = run(&["worktree", "trust", repo]);
    assert!(shown.contains(": allowed\n"), "{shown}");
    let (code, words, said) = run(&ask);
    assert_eq!((code, words.as_str()), (Some(0), "hi\n"), "{said}");
    for line in ["setup: echo from the setup\n", "  from the setup\n", " on branch x\n"] {
        assert!(said.contains(line), "{said}");
    }
    let (_, shown, _) = run(&["worktree", "trust", "--revoke", repo]);
    assert!(shown.contains(": not allowed\n"), "{shown}");
    let (code, _, said) = run(&["new", "--agent", "a", "--workspace", repo, "--worktree", "--trust"]);
    assert_eq!(code, Some(0), "{said}");
}
