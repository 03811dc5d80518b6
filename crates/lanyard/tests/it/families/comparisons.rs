//! Comparisons, and the end of a session's own worktree: merged, discarded, and what a kill on the way leaves.

use std::path::Path;

use lanyard_base::failpoint;
use serde_json::{Value, json};

use super::kit::{Stage, git, id};

/// What all of them are told: each writes a file and commits nothing.
const WORK: &str = "/edit new.txt from one of them\n/say done";

fn body(stage: &Stage, prompt: &str) -> Value {
    json!({ "prompt": prompt, "workspace": stage.repo(), "agents": [{ "agent": "a" }, { "agent": "a" }] })
}

fn sessions(comparison: &Value) -> Vec<String> {
    comparison["sessions"].as_array().unwrap().iter().map(|one| id(one, "session")).collect()
}

fn compared(stage: &Stage, prompt: &str) -> (String, Vec<String>) {
    let made = stage.ok("/comparisons", &body(stage, prompt));
    let sessions = sessions(&made);
    for session in &sessions {
        stage.rests(session);
    }
    (id(&made, "id"), sessions)
}

fn branch(stage: &Stage, session: &str) -> Value {
    stage.get(&format!("/sessions/{session}/branch"))
}

fn told(stage: &Stage, session: &str, kind: &str) -> usize {
    stage.daemon.log_after(session, 0).iter().filter(|event| event["type"] == kind).count()
}

#[test]
fn two_agents_get_one_message_in_worktrees_of_their_own_and_one_is_kept() {
    let stage = Stage::new();
    let (comparison, made) = compared(&stage, WORK);
    let (kept, lost) = (&made[0], &made[1]);
    for session in &made {
        let view = stage.get(&format!("/sessions/{session}"));
        assert_eq!(view["comparison"], comparison.as_str(), "each knows its group");
        assert_eq!(view["tree"]["base"], git(&stage.repo(), &["rev-parse", "HEAD"]).trim());
        assert_eq!(branch(&stage, session)["uncommitted"], json!(["new.txt"]));
    }
    assert_eq!(stage.worktrees(), 3);
    let path = format!("/comparisons/{comparison}/keep");
    // Nothing is lost unasked: neither of the others, nor of the one that is kept.
    assert_eq!(stage.refused(&path, &json!({ "session": kept })), "uncommitted_work");
    let forced = json!({ "session": kept, "merge": true, "force": true });
    assert_eq!(stage.refused(&path, &forced), "uncommitted_work");
    assert_eq!(stage.worktrees(), 3);
    let whole = json!({ "session": kept, "merge": true, "commit": true, "force": true });
    let done = stage.ok(&path, &whole);
    assert_eq!((&done["merged"]["into"], &done["comparison"]["kept"]), (&json!("main"), &json!(kept)));
    assert_eq!(git(&stage.repo(), &["show", "HEAD:new.txt"]), "from one of them");
    let reference = id(&done["discarded"][0], "reference");
    assert_eq!(git(&stage.repo(), &["show", &format!("{reference}:new.txt")]), "from one of them");
    let gone = stage.get(&format!("/sessions/{lost}"));
    assert_eq!((&gone["archived"], &gone["tree"]["removed"]), (&json!(true), &json!(true)));
    assert_eq!(told(&stage, kept, "context.branch_merged"), 1);
    assert_eq!(told(&stage, lost, "context.branch_discarded"), 1);
    assert_eq!(stage.worktrees(), 2);
    // Asked again, it is as it was; another one cannot be kept any more.
    assert_eq!(stage.ok(&path, &whole)["comparison"]["kept"], json!(kept));
    assert_eq!(stage.refused(&path, &json!({ "session": lost })), "comparison_kept");
    let turns = format!("/sessions/{lost}/turns");
    stage.ok(&format!("/sessions/{lost}/unarchive"), &json!({}));
    assert_eq!(stage.refused(&turns, &json!({ "prompt": "go on" })), "branch_discarded");
}

#[test]
fn what_could_never_run_makes_nothing() {
    let stage = Stage::new();
    let one = json!({ "prompt": "x", "workspace": stage.repo(), "agents": [{ "agent": "a" }] });
    assert_eq!(stage.refused("/comparisons", &one), "comparison_size");
    let ghost = json!({ "prompt": "x", "workspace": stage.repo(),
        "agents": [{ "agent": "a" }, { "agent": "ghost" }] });
    assert!(stage.refused("/comparisons", &ghost).starts_with("agent_"));
    let folder = stage.sign("plain");
    std::fs::create_dir(&folder).unwrap();
    let plain = json!({ "prompt": "x", "workspace": folder, "agents": [{ "agent": "a" }, { "agent": "a" }] });
    assert_eq!(stage.refused("/comparisons", &plain), "not_a_repository");
    assert_eq!(stage.get("/comparisons")["comparisons"], json!([]));
    assert_eq!(stage.get("/sessions?limit=10")["sessions"], json!([]));
    assert_eq!(stage.worktrees(), 1);
}

/// Killed at each place, the daemon makes what is missing when the request is repeated, and nothing twice.
#[test]
fn a_comparison_that_meets_a_kill_is_made_once() {
    for place in ["comparison_after_note:1", "comparison_after_session:1", "comparison_after_session:2"] {
        let mut stage = Stage::new();
        stage.up_to(place);
        let asked = body(&stage, WORK).to_string();
        let key = [("idempotency-key", "one-comparison")];
        let _ = stage.daemon.caller().try_request("POST", "/api/v1/comparisons", &key, Some(&asked));
        stage.dies();
        stage.up();
        let noted = sessions(&stage.get("/comparisons")["comparisons"][0]);
        let again = stage.daemon.request("POST", "/api/v1/comparisons", &key, Some(&asked));
        assert_eq!(again.status, 201, "{place}: {}", again.text());
        let made = sessions(&again.json());
        assert_eq!(made, noted, "{place}");
        let listed = stage.get("/sessions?limit=10");
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 2, "{place}");
        for session in &made {
            stage.rests(session);
            assert_eq!(told(&stage, session, "turn.started"), 1, "{place}");
        }
        assert_eq!(stage.worktrees(), 3, "{place}");
        let third = stage.daemon.request("POST", "/api/v1/comparisons", &key, Some(&asked));
        assert_eq!(sessions(&third.json()), made, "{place}");
    }
}

#[test]
fn keeping_one_goes_on_after_a_kill() {
    for place in failpoint::OF_COMPARISONS.iter().filter(|place| !place.ends_with("_note")) {
        if *place == "comparison_after_session" {
            continue;
        }
        let mut stage = Stage::new();
        let (comparison, made) = compared(&stage, WORK);
        stage.up_to(&format!("{place}:1"));
        let path = format!("/api/v1/comparisons/{comparison}/keep");
        let ask = json!({ "session": made[0], "merge": true, "commit": true, "force": true }).to_string();
        let _ = stage.daemon.caller().try_request("POST", &path, &[], Some(&ask));
        stage.dies();
        stage.up();
        let done = stage.daemon.request("POST", &path, &[], Some(&ask));
        assert_eq!(done.status, 200, "{place}: {}", done.text());
        assert_eq!(done.json()["left"], Value::Null, "{place}");
        assert!(stage.repo().join("new.txt").exists(), "{place}");
        assert_eq!(stage.worktrees(), 2, "{place}");
        let view = stage.get(&format!("/sessions/{}", made[1]));
        assert_eq!(view["tree"]["removed"], json!(true), "{place}");
    }
}

#[test]
fn a_sessions_own_branch_is_merged_and_discarded() {
    let stage = Stage::new();
    let new =
        json!({ "agent": "a", "title": "Fix", "workspace": stage.repo(), "worktree": { "branch": "fix" } });
    let session = id(&stage.ok("/sessions", &new), "session");
    let (turns, merge) = (format!("/sessions/{session}/turns"), format!("/sessions/{session}/merge"));
    stage.ok(&turns, &json!({ "prompt": WORK }));
    stage.rests(&session);
    let before = branch(&stage, &session);
    assert_eq!((&before["into"], &before["merged"]), (&json!("main"), &json!(false)));
    assert_eq!(before["files"][0]["path"], "new.txt");
    assert_eq!(stage.refused(&merge, &json!({})), "uncommitted_work");
    // Work of others is in the way: nothing is merged, and nothing of it touched.
    std::fs::write(stage.repo().join("first.txt"), "mine\n").unwrap();
    assert_eq!(stage.refused(&merge, &json!({ "commit": true })), "dirty_workspace");
    git(&stage.repo(), &["checkout", "-q", "first.txt"]);
    assert_eq!(stage.ok(&merge, &json!({ "commit": true }))["into"], "main");
    assert!(stage.repo().join("new.txt").exists());
    assert_eq!(branch(&stage, &session)["merged"], json!(true));
    assert_eq!(stage.ok(&merge, &json!({}))["nothing"], json!(true));
    stage.ok(&turns, &json!({ "prompt": "/edit more.txt not committed\n/say done" }));
    stage.rests(&session);
    let discard = format!("/sessions/{session}/discard");
    assert_eq!(stage.refused(&discard, &json!({})), "uncommitted_work");
    let tree = id(&stage.get(&format!("/sessions/{session}"))["tree"], "path");
    assert!(Path::new(&tree).join("more.txt").exists());
    let gone = stage.ok(&discard, &json!({ "force": true }));
    let kept = format!("{}:more.txt", id(&gone, "reference"));
    assert_eq!(git(&stage.repo(), &["show", &kept]), "not committed");
    assert!(!Path::new(&tree).exists() && !stage.branch("fix"));
    assert_eq!(branch(&stage, &session)["discarded"], json!(true));
    assert_eq!(stage.ok(&discard, &json!({}))["reference"], gone["reference"], "once is enough");
    assert_eq!(stage.refused(&merge, &json!({})), "branch_discarded");
    let other = stage.chat();
    assert_eq!(stage.refused(&format!("/sessions/{other}/merge"), &json!({})), "no_worktree");
}

#[test]
fn a_session_that_works_is_neither_merged_nor_discarded() {
    let stage = Stage::new();
    let made = stage.ok("/comparisons", &body(&stage, "/wait-file never"));
    let all = sessions(&made);
    let path = format!("/comparisons/{}/keep", id(&made, "id"));
    for below in ["merge", "discard"] {
        let code = stage.refused(&format!("/sessions/{}/{below}", all[0]), &json!({}));
        assert_eq!(code, "turn_rejected_busy", "{below}");
    }
    assert_eq!(stage.refused(&path, &json!({ "session": all[0] })), "session_working");
    // By force the others are stopped first.
    let done = stage.ok(&path, &json!({ "session": all[0], "force": true }));
    assert_eq!(done["left"], Value::Null, "{done:#}");
    assert_eq!(stage.get(&format!("/sessions/{}", all[1]))["state"], "stopped");
}

#[test]
fn the_command_line_compares_shows_and_keeps() {
    let stage = Stage::new();
    let repo = stage.repo();
    let run = |words: &[&str]| {
        let output = stage.daemon.lanyard(words);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let cwd = repo.to_str().unwrap();
    let (code, made, said) =
        run(&["compare", "run", "--agent", "a", "--agent", "a", "--cwd", cwd, "--title", "race", WORK]);
    assert_eq!(code, Some(0), "{said}");
    let comparison = made.trim();
    let all = sessions(&stage.get(&format!("/comparisons/{comparison}")));
    for session in &all {
        stage.rests(session);
    }
    let (_, shown, _) = run(&["compare", "show", &all[1]]);
    assert!(shown.contains("1 file, +1 −0, 0 commits, 1 file not committed"), "{shown}");
    let (code, _, said) = run(&["compare", "keep", &all[1], "--yes", "--merge", "--commit"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("[uncommitted_work]"), "{said}");
    let (code, _, said) = run(&["compare", "keep", &all[1], "--yes", "--merge", "--commit", "--force"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("merged into main") && said.contains("git keeps it as refs/lanyard/discarded/"));
    let (_, listed, _) = run(&["compare", "ls"]);
    assert!(listed.contains(comparison), "{listed}");
    let (_, status, _) = run(&["worktree", "status", &all[0]]);
    assert!(status.ends_with(": discarded\n"), "{status}");
    let (_, status, _) = run(&["worktree", "status", &all[1]]);
    assert!(status.contains("\nmerged into main of "), "{status}");
    run(&["rename", &all[1], "the", "winner"]);
    assert_eq!(stage.get(&format!("/sessions/{}", all[1]))["title"], "the winner");
}
