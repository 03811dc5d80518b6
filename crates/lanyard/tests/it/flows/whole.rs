//! A flow from its beginning to its end.

use serde_json::{Value, json};

use super::kit::{DONE, READY, Stage, corrections, git, id};

fn names(values: &[Value], field: &str) -> Vec<String> {
    values.iter().map(|value| id(value, field)).collect()
}

/// Two phases, one with a correction: done, checked, judged, mended, checked and judged again, and on to the end.
#[test]
fn a_plan_is_worked_through() {
    let stage = Stage::with(
        "rules.phase_gate = \"auto\"\n\
         [[flow.quality]]\nname = \"tests\"\ncommand = [\"sh\", \"-c\", \"echo checked >> SIGNS/checks; cat work.txt\"]",
    );
    stage.plan(&["Greet", "Part"]);
    stage.author("greet", DONE);
    stage.reviewer("look", &corrections("say it louder", "auto_fix"));
    stage.author("louder", DONE);
    stage.reviewer("look-again", READY);
    stage.author("part", DONE);
    stage.reviewer("look-once-more", READY);
    let before = git(&stage.repo(), &["rev-parse", "HEAD"]);
    let flow = stage.begin(&json!({}));
    let shown = stage.settled(&flow, "completed");
    assert_eq!(stage.scripts_left(), 0);
    let turns = ["greet", "look", "louder", "look-again", "part", "look-once-more"];
    assert_eq!(stage.lines("turns"), turns);
    assert_eq!(stage.lines("checks"), ["checked"; 3]);

    let states = names(&stage.events(&flow, "flow.moved"), "to");
    let round = ["quality_check", "review"];
    let end = ["phase_gate", "phase_complete"];
    let expected = [&round[..], &["auto_fix"], &round, &end, &["execute"], &round, &end].concat();
    assert_eq!(states, expected);
    assert_eq!(names(shown["phases"].as_array().unwrap(), "state"), ["complete"; 2]);
    assert_eq!(stage.events(&flow, "flow.gate_opened"), Vec::<Value>::new(), "nobody was asked");
    let checks = stage.events(&flow, "flow.check_ended");
    assert_eq!(checks[2]["result"]["output"], "greet\nlouder\npart\n");

    // It worked beside the repository, on a branch that stays.
    assert_eq!(git(&stage.repo(), &["rev-parse", "HEAD"]), before);
    let branch = id(&shown["tree"], "branch");
    assert_eq!(git(&stage.repo(), &["show", &format!("{branch}:work.txt")]), "greet\nlouder\npart\n");
    assert_eq!(shown["tree"]["removed"], true);
    let commit = id(&shown["phases"][1], "commit");
    assert_eq!(git(&stage.repo(), &["rev-parse", &branch]).trim(), commit, "the phase's last commit");
    assert_eq!(git(&stage.repo(), &["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);

    // Until somebody merges it, which can be said again.
    git(&stage.repo(), &["checkout", "-q", "--", "PLAN.md"]);
    let merge = || stage.daemon.lanyard(&["flow", "merge", &flow]);
    let merged = merge();
    assert!(merged.status.success(), "{}", String::from_utf8_lossy(&merged.stderr));
    assert_eq!(git(&stage.repo(), &["rev-parse", "HEAD"]), git(&stage.repo(), &["rev-parse", &branch]));
    assert!(String::from_utf8(merge().stderr).unwrap().contains("nothing to merge"));

    // The author of a correction was told what the reviewer asked for.
    assert!(
        stage.told("author").iter().any(|told| told.contains("say it louder")),
        "{:?}",
        stage.told("author")
    );
}

/// S2-01, S2-05: a phase that is ready waits for a person, who lets it pass or has something changed first.
#[test]
fn a_phase_gate_waits_for_a_person() {
    let stage = Stage::with("");
    stage.author("greet", DONE);
    stage.reviewer("look", READY);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "phase_ready");
    let merged = stage.post(&format!("/flows/{flow}/merge"), &json!({}));
    assert_eq!((merged.status, merged.code()), (409, "flow_at_work".to_owned()));
    assert_eq!((&gate["kind"], &gate["continue_session"]), (&json!("phase"), &Value::Null));
    let listed = stage.get("/gates");
    assert_eq!(listed["flows"][0]["gate"]["id"], gate["id"], "{listed}");
    assert_eq!(
        (&listed["flows"][0]["flow"], &listed["flows"][0]["state"]),
        (&json!(flow), &json!("phase_gate"))
    );

    stage.author("softer", DONE);
    stage.reviewer("look-again", READY);
    stage.answer(&flow, &gate, "continue", Some("Softer, please."));
    stage.until(&flow, "another gate", |seen| seen["gate"]["id"] != gate["id"] && seen["gate"].is_object());
    let second = stage.gate(&flow, "phase_ready");
    assert!(stage.told("author").iter().any(|told| told.contains("Softer, please.")));
    stage.answer(&flow, &second, "approve", None);
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["greet", "look", "softer", "look-again"]);
    assert_eq!(stage.asking(), Vec::<Value>::new());
}

/// Corrections wait for a person where that is wanted.
#[test]
fn a_review_gate_waits_for_a_person() {
    let stage = Stage::with("rules.phase_gate = \"auto\"\nrules.review_gate = \"ask\"");
    stage.author("greet", DONE);
    stage.reviewer("look", &corrections("say it louder", "auto_fix"));
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "corrections");
    assert_eq!((&gate["kind"], &gate["items"][0]["title"]), (&json!("review"), &json!("say it louder")));
    stage.answer(&flow, &gate, "approve", None);
    let shown = stage.settled(&flow, "completed");
    assert_eq!(shown["phases"][0]["state"], "overridden");
    assert_eq!(stage.lines("turns"), ["greet", "look"]);
}

/// What a plan has ticked, or what is before `from`, is not worked at.
#[test]
fn a_flow_begins_where_it_is_told() {
    let stage = Stage::new();
    stage.write_plan(
        "# A plan\n\n## Phase 1: Greet\n\n- [x] done\n\n## Phase 2: Wait\n\n- [ ] wait\n\n## Phase 3: Part\n\n- [ ] part\n",
    );
    stage.author("part", DONE);
    stage.reviewer("look", READY);
    let flow = stage.begin(&json!({ "from": "3" }));
    let shown = stage.settled(&flow, "completed");
    assert_eq!(names(shown["phases"].as_array().unwrap(), "state"), ["skipped", "skipped", "complete"]);
    stage.author("wait", DONE);
    stage.reviewer("look-again", READY);
    stage.author("part-again", DONE);
    stage.reviewer("look-once-more", READY);
    let flow = stage.begin(&json!({}));
    let shown = stage.settled(&flow, "completed");
    assert_eq!(names(shown["phases"].as_array().unwrap(), "state"), ["skipped", "complete", "complete"]);
}

/// Hooks are told of what they ask for, in order; one that fails changes nothing.
#[test]
fn hooks_are_told() {
    let stage = Stage::with(
        "rules.phase_gate = \"auto\"\n\
         [[flow.hooks]]\non = [\"flow.created\", \"flow.ended\"]\n\
         command = [\"sh\", \"-c\", \"cat >/dev/null; echo $LANYARD_EVENT >> SIGNS/hooks\"]\n\
         [[flow.hooks]]\non = [\"flow.phase_ended\"]\ncommand = [\"false\"]",
    );
    stage.author("greet", DONE);
    stage.reviewer("look", READY);
    let flow = stage.begin(&json!({}));
    stage.settled(&flow, "completed");
    let told = |seen: &Value| seen["hooked"].as_u64() >= Some(1) && stage.lines("hooks").len() == 2;
    stage.until(&flow, "told to hooks", told);
    assert_eq!(stage.lines("hooks"), ["flow.created", "flow.ended"]);
    let failed = || {
        let told = stage.events(&flow, "flow.hooked");
        told.iter()
            .any(|one| one["failed"][0].as_str().is_some_and(|why| why.starts_with("flow.phase_ended")))
    };
    super::kit::until("what a hook failed at", failed);
}

/// A flow that works in the folder itself has nothing to merge, and says so.
#[test]
fn a_flow_without_a_worktree_has_no_branch_to_merge() {
    let stage = Stage::with("rules.phase_gate = \"auto\"\nrules.require_commit = false\n");
    stage.author("greet", DONE);
    stage.reviewer("look", READY);
    let flow = stage.begin(&json!({ "worktree": false }));
    stage.settled(&flow, "completed");
    let refused = stage.daemon.lanyard(&["flow", "merge", &flow]);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("flow_without_branch") && told.contains("works in the folder"), "{told}");
}
