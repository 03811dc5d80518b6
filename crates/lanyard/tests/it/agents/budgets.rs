//! Budgets in money, as agents report it: announced, enforced at each report, and kept over restarts.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::kit::{Stage, interrupted, until};

/// One agent, and these lines under `[budgets]`.
fn stage(budgets: &str) -> Stage {
    Stage::beside(&[("a", &[], "")], &format!("[budgets]\ntime_zone = \"{}\"\n{budgets}\n", midday()))
}

/// A zone in which it is about noon: no day ends within a test.
fn midday() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let offset = 12 - i64::try_from(seconds / 3_600 % 24).unwrap();
    format!("{}{:02}:00", if offset < 0 { '-' } else { '+' }, offset.abs())
}

/// The titles of the notifications of a kind.
fn told(stage: &Stage, kind: &str) -> Vec<String> {
    let found = stage.get(&format!("/notifications?kind={kind}"));
    let items = found["notifications"].as_array().unwrap();
    items.iter().map(|one| one["title"].as_str().unwrap().to_owned()).collect()
}

fn refused(answer: &crate::support::Answer) -> (String, String) {
    assert_eq!(answer.status, 409, "{}", answer.text());
    let problem = answer.json();
    assert_eq!(problem["code"], "budget_spent", "{problem:#}");
    let text = |name: &str| problem[name].as_str().unwrap().to_owned();
    (text("title"), text("advice"))
}

#[test]
fn a_turn_is_interrupted_at_the_report_that_spends_its_budget() {
    let stage = Stage::with(&[], "budget = { cost_usd = 0.5 }\n");
    let mut talk = stage.talk();
    assert_eq!(talk.answer_to("/cost 20\n/say fine"), "fine");
    let end = talk.ask("/cost 45\n/cost 15\n/wait 60000");
    assert_eq!(interrupted(&end, "limit"), "budget_spent: the turn's budget of $0.50 is spent: $0.60");
    until("a warning", || told(&stage, "budget_warning").len() == 1);
    assert_eq!(talk.answer_to("/say on"), "on", "each turn has its own");
    assert_eq!(talk.runs(), 1);
}

#[test]
fn a_spent_session_takes_no_turn_but_one_that_is_forced() {
    let stage = stage("session_usd = 1.0");
    let mut talk = stage.talk();
    assert_eq!(talk.answer_to("/cost 30\n/say fine"), "fine");
    let end = talk.ask("/cost 80\n/wait 60000");
    assert_eq!(interrupted(&end, "limit"), "budget_spent: the session's budget of $1.00 is spent: $1.10");
    let (title, advice) = refused(&talk.try_turn("/say no"));
    assert!(title.contains("the session's budget of $1.00 is spent: $1.10"), "{title}");
    assert!(advice.contains("`budgets.session_usd`") && advice.contains("--force"), "{advice}");
    let forced = talk.post("turns", &json!({"prompt": "/cost 50\n/say on", "forced": true}));
    assert_eq!(forced.status, 201, "{}", forced.text());
    let end = talk.over();
    assert_eq!(end["data"]["outcome"], "completed", "{end:#}");
    refused(&talk.try_turn("/say no"));
    let mut other = stage.talk();
    assert_eq!(other.answer_to("/say each session has its own"), "each session has its own");
    let left = stage.get(&format!("/sessions/{}/budgets", talk.id));
    assert_eq!(left["budgets"][0]["stage"], "spent", "{left:#}");
    assert_eq!(left["budgets"][0]["spent_micros"], 1_600_000, "{left:#}");
}

#[test]
fn a_child_spends_what_its_family_has() {
    let stage = stage("family_usd = 1.0");
    let mut root = stage.talk();
    let mut child = stage.talk_of(&json!({"agent": "a", "workspace": stage.work(), "parent": root.id}));
    assert_eq!(child.answer_to("/cost 60\n/say fine"), "fine");
    let end = root.ask("/cost 50\n/wait 60000");
    assert_eq!(interrupted(&end, "limit"), "budget_spent: the family's budget of $1.00 is spent: $1.10");
    refused(&child.try_turn("/say no"));
    refused(&root.try_turn("/say no"));
    let another = stage.talk_of(&json!({"agent": "a", "workspace": stage.work(), "parent": root.id}));
    refused(&another.try_turn("/say a new child has nothing left either"));
    let mut alone = stage.talk();
    assert_eq!(alone.answer_to("/say fine"), "fine");
}

#[test]
fn the_day_s_budget_is_told_of_and_survives_a_restart() {
    let mut stage = stage("day_usd = 1.0");
    let first = {
        let mut talk = stage.talk();
        assert_eq!(talk.answer_to("/cost 85\n/say fine"), "fine");
        until("a warning", || {
            told(&stage, "budget_warning") == ["Most of the day's budget is spent: $0.85 of $1.00"]
        });
        talk.id.clone()
    };
    stage.restart();
    let mut talk = stage.talk();
    let end = talk.ask("/cost 20\n/wait 60000");
    assert_eq!(interrupted(&end, "limit"), "budget_spent: the day's budget of $1.00 is spent: $1.05");
    let title = "The day's budget is spent: $1.05 of $1.00".to_owned();
    until("people are told", || told(&stage, "budget_spent").contains(&title));
    let (_, advice) = refused(&stage.follow(&first).try_turn("/say no"));
    assert!(advice.starts_with("wait for the next day"), "{advice}");
    drop(talk);
    stage.restart();
    refused(&stage.talk().try_turn("/say no"));
    let day = stage.get("/budgets");
    assert_eq!((&day["budgets"][0]["scope"], &day["budgets"][0]["left_micros"]), (&json!("day"), &json!(0)));
}

#[test]
fn a_message_that_waits_is_held_while_a_budget_is_spent() {
    let stage = stage("day_usd = 1.0");
    let mut talk = stage.talk();
    talk.turn("/wait-file go");
    let queued = talk.post("turns", &json!({"prompt": "/say later", "delivery": "queue"}));
    assert_eq!(queued.status, 201, "{}", queued.text());
    let mut other = stage.talk();
    interrupted(&other.ask("/cost 120\n/wait 60000"), "limit");
    stage.touch("go");
    assert_eq!(talk.over()["data"]["outcome"], "completed", "a turn without a report goes to its end");
    let paused = talk.until("inbox.paused");
    assert_eq!(paused["data"]["reason"], "budget_spent", "{paused:#}");
    refused(&talk.post("inbox/go", &json!({})));
}

#[test]
fn wrong_reports_cost_nothing_and_an_agent_that_reports_none_is_not_stopped() {
    let stage = stage("day_usd = 1.0");
    let mut talk = stage.talk();
    assert_eq!(talk.answer_to("/cost-is -5\n/cost-is nan\n/cost-is 1e300\n/cost-is inf\n/say fine"), "fine");
    assert_eq!(talk.answer_to("/say silent"), "silent");
    let cost = |talk: &super::kit::Talk<'_>| talk.record()["usage"]["cost_micros"].as_u64().unwrap_or(0);
    assert_eq!(cost(&talk), 0);
    assert_eq!(talk.answer_to("/cost-is 0.25\n/say fine"), "fine");
    assert_eq!(cost(&talk), 250_000);
}

/// What a day's turns cost and did, by agent, in the caller's days.
#[test]
fn insight_sums_up_what_logs_tell() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.answer_to("/usage 10 2\n/tool read {}\n/cost 25\n/say one");
    talk.answer_to("/usage 10 2\n/cost 5\n/say two");
    let report = stage.get("/insight?days=2&by=agent&zone=UTC");
    let row = &report["rows"][0];
    let sums = ["cost_micros", "input_tokens", "output_tokens", "turns", "turns_failed", "calls"];
    let told: Vec<u64> = sums.iter().map(|name| row[*name].as_u64().unwrap()).collect();
    assert_eq!((&row["name"], told), (&json!("a"), vec![300_000, 20, 4, 2, 0, 1]), "{report:#}");
    assert_eq!(report["days"].as_array().map(Vec::len), Some(2));
    assert_eq!((&report["total"]["turns"], &report["zone"]), (&json!(2), &json!("UTC")));
    let folder = stage.get("/insight?days=2&by=folder&zone=%2B05:30");
    assert_eq!(folder["rows"][0]["name"], Value::from(stage.work().display().to_string()));
    for wrong in ["days=0", "days=401", "limit=0", "zone=Mars%2FOlympus", "by=week"] {
        let answer = stage.daemon.request("GET", &format!("/api/v1/insight?{wrong}"), &[], None);
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.text());
    }
}
