//! What is asked for and cannot be: refused with a code of its own, and nothing is lost or left.

use serde_json::{Value, json};

use super::kit::{DONE, HELP, READY, Stage, id, until};

fn no(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// Plans, agents and folders that will not do.
#[test]
fn a_flow_that_makes_no_sense_is_not_begun() {
    let stage = Stage::new();
    let begin = |more: Value| stage.no("/flows", &stage.new_flow(&more));
    for (more, status, code) in [
        (json!({ "author": "nobody" }), 422, "agent_unknown"),
        (json!({ "reviewer": "nobody" }), 422, "agent_unknown"),
        (json!({ "plan": stage.repo().join("NOTHING.md") }), 422, "plan_unreadable"),
        (json!({ "plan": stage.repo() }), 422, "plan_unreadable"),
        (json!({ "plan": "PLAN.md" }), 422, "path_bad"),
        (json!({ "plan": stage.repo().join("../repo/PLAN.md") }), 422, "path_bad"),
        (json!({ "workspace": "/nonexistent/folder" }), 422, "workspace_bad"),
        (json!({ "workspace": stage.repo().join("PLAN.md") }), 422, "workspace_bad"),
        (json!({ "from": "7" }), 422, "phase_unknown"),
        (json!({ "from": "no such phase" }), 422, "phase_unknown"),
        (json!({ "kind": "dance" }), 422, "body_invalid"),
        (json!({ "colour": "red" }), 422, "body_invalid"),
    ] {
        assert_eq!(begin(more.clone()), no(status, code), "{more}");
    }
    stage.write_plan("# Notes\n\nNothing to be done here.\n");
    assert_eq!(begin(json!({})), no(409, "plan_without_phases"));
    stage.write_plan("# A plan\n\n## Phase 1: Greet\n\n- [x] say hello\n");
    assert_eq!(begin(json!({})), no(409, "plan_is_done"));
    stage.write_plan("");
    assert_eq!(begin(json!({})).0, 422);
    std::fs::write(stage.repo().join("PLAN.md"), [0xff, 0xfe, 0x00]).unwrap();
    assert_eq!(begin(json!({})), no(422, "plan_unreadable"));
    assert_eq!(stage.get("/flows")["flows"], json!([]), "nothing is left of them");
    assert_eq!(stage.get("/sessions")["sessions"], json!([]));
}

#[test]
fn what_does_not_exist_is_not_found() {
    let stage = Stage::new();
    let nobody = "flow_00000000000000000000000001";
    for (path, body) in [("cancel", json!({})), ("resume", json!({}))] {
        assert_eq!(stage.no(&format!("/flows/{nobody}/{path}"), &body), no(404, "flow_not_found"), "{path}");
        assert_eq!(stage.no(&format!("/flows/nothing/{path}"), &body), no(400, "flow_id_bad"), "{path}");
    }
    let answer = json!({ "choice": "abort" });
    let path = format!("/flows/{nobody}/gates/gate_00000000000000000000000001");
    assert_eq!(stage.no(&path, &answer), no(404, "flow_not_found"));
    for path in ["", "/events", "/report"] {
        let answer = stage.daemon.request("GET", &format!("/api/v1/flows/{nobody}{path}"), &[], None);
        assert_eq!((answer.status, answer.code().as_str()), (404, "flow_not_found"), "{path}");
    }
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    stage.gate(&flow, "needs_human");
    let path = format!("/flows/{flow}/gates/gate_00000000000000000000000001");
    assert_eq!(stage.no(&path, &answer), no(409, "gate_not_open"));
    assert_eq!(stage.no(&format!("/flows/{flow}/gates/x"), &answer), no(400, "gate_id_bad"));
}

/// S2-B05: one flow at a time works at a plan.
#[test]
fn two_flows_do_not_work_at_one_plan() {
    let stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    let refused = stage.post("/flows", &stage.new_flow(&json!({})));
    assert_eq!((refused.status, refused.code().as_str()), (409, "plan_taken"));
    assert!(refused.text().contains(&flow), "{}", refused.text());
    let review = stage.new_flow(&json!({ "kind": "plan_review" }));
    assert_eq!(stage.no("/flows", &review), no(409, "plan_taken"));
    // By another name it is the same plan.
    std::os::unix::fs::symlink(stage.repo().join("PLAN.md"), stage.repo().join("LINK.md")).unwrap();
    let linked = stage.new_flow(&json!({ "plan": stage.repo().join("LINK.md") }));
    assert_eq!(stage.no("/flows", &linked), no(409, "plan_taken"));
    stage.answer(&flow, &gate, "abort", None);
    stage.settled(&flow, "aborted");
    stage.author("greet", DONE);
    stage.reviewer("look", READY);
    let second = stage.begin(&json!({}));
    let (status, code) = stage.no(&format!("/flows/{flow}/resume"), &json!({}));
    assert_eq!((status, code.as_str()), (409, "plan_taken"), "the first is not taken up beside it");
    stage.settled(&second, "completed");
}

/// S2-B05: nor do two daemons.
#[test]
fn two_daemons_do_not_work_at_one_plan() {
    let stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    stage.gate(&flow, "needs_human");
    let other = crate::support::Daemon::start(stage.setup());
    let body = stage.new_flow(&json!({})).to_string();
    let refuses = || {
        let refused = other.request("POST", "/api/v1/flows", &[], Some(&body));
        assert_eq!((refused.status, refused.code().as_str()), (409, "plan_locked"), "{}", refused.text());
        assert!(refused.text().contains(&flow), "who works at it is told: {}", refused.text());
    };
    refuses();
    // Also when it has flows of its own.
    let own = stage.repo().join("OTHER.md");
    std::fs::write(&own, "# Another plan\n\n## Phase 1: Wait\n\n- [ ] wait\n").unwrap();
    let begun = json!({ "kind": "plan_review", "plan": own }).to_string();
    let begun = other.request("POST", "/api/v1/flows", &[], Some(&begun));
    assert_eq!(begun.status, 201, "{}", begun.text());
    refuses();
    // Its agents would outlive it, so they are ended first.
    let own = format!("/api/v1/flows/{}", id(&begun.json(), "id"));
    let cancelled = other.request("POST", &format!("{own}/cancel"), &[], Some("{}"));
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    let look = |path: &str| other.request("GET", path, &[], None).json();
    until("the end of its flow", || look(&own)["settled"] == true);
    let rows = || look("/api/v1/sessions")["sessions"].as_array().unwrap().clone();
    for row in rows() {
        let stop = format!("/api/v1/sessions/{}/stop", id(&row, "id"));
        other.request("POST", &stop, &[], Some(r#"{"now":true}"#));
    }
    until("the end of its agents", || rows().iter().all(|row| row["lifecycle"] == "terminal"));
}

/// A repeated request is the same request; a different one under the same key is refused.
#[test]
fn a_request_that_is_sent_again_begins_one_flow() {
    let stage = Stage::new();
    stage.author("half", HELP);
    let body = stage.new_flow(&json!({})).to_string();
    let key = [("Idempotency-Key", "k-1")];
    let made: Vec<String> = std::thread::scope(|scope| {
        let ask = |_| {
            scope.spawn(|| id(&stage.daemon.request("POST", "/api/v1/flows", &key, Some(&body)).json(), "id"))
        };
        let asks: Vec<_> = (0..6).map(ask).collect();
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    assert!(made.iter().all(|flow| *flow == made[0]), "{made:?}");
    assert_eq!(stage.get("/flows")["flows"].as_array().unwrap().len(), 1);
    let other = stage.new_flow(&json!({ "kind": "plan_review" })).to_string();
    let answer = stage.daemon.request("POST", "/api/v1/flows", &key, Some(&other));
    assert_eq!((answer.status, answer.code().as_str()), (409, "idempotency_conflict"));
    stage.gate(&made[0], "needs_human");
}

/// An agent that cannot be started asks a person, who may have it tried again.
#[test]
fn an_agent_that_does_not_start_asks_a_person() {
    let stage = Stage::with_agents("rules.phase_gate = \"auto\"\nrules.auto_retries = 0", "");
    let config = std::fs::read_to_string(stage.daemon.config()).unwrap();
    assert!(config.contains("[agents.author]"));
    // No script is left: the agent answers its prompt with an error.
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "agent_failed");
    assert!(id(&gate, "reason").contains("no script is left"), "{gate}");
    stage.author("greet", DONE);
    stage.reviewer("look", READY);
    stage.answer(&flow, &gate, "continue", None);
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["greet", "look"]);
}
