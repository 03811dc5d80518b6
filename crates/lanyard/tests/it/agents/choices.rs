//! Models, modes and effort levels: offered by an agent, chosen for a session and for a turn, refused, and kept over
//! restarts of the daemon and of the agent.

use serde_json::{Value, json};

use super::kit::{Stage, Talk};

const OFFERS: [&str; 8] =
    ["--models", "small,large", "--modes", "ask,plan,yolo", "--efforts", "low,high", "--commands", "say"];

fn offering() -> Stage {
    Stage::with(&OFFERS, "")
}

fn choosing(how: &str) -> Stage {
    let flags: Vec<&str> = OFFERS.into_iter().chain(["--set", how]).collect();
    Stage::with(&flags, "")
}

fn choose(talk: &Talk<'_>, choice: &Value) {
    let answer = talk.post("choice", choice);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// A prompt with a choice of its own, to the end of its turn.
fn ask_with(talk: &mut Talk<'_>, prompt: &str, choice: &Value) -> Value {
    let answer = talk.post("turns", &json!({ "prompt": prompt, "choice": choice }));
    assert_eq!(answer.status, 201, "{}", answer.text());
    talk.over()
}

fn in_force(talk: &mut Talk<'_>) -> Value {
    talk.catch_up();
    talk.all("run.in_force").last().unwrap()["data"].clone()
}

#[test]
fn what_an_agent_offers_is_in_the_log_and_listed_before_the_next_session() {
    let stage = offering();
    assert_eq!(stage.get("/agents/a").get("offer"), None, "it was never asked");
    let mut talk = stage.talk();
    assert_eq!(talk.answer_to("/choices"), "model=small mode=ask effort=low");
    let record = talk.record();
    let ids = |menu: &str| -> Vec<Value> {
        let items = record["offer"][menu]["items"].as_array().unwrap();
        items.iter().map(|item| item["id"].clone()).collect()
    };
    assert_eq!(ids("models"), ["small", "large"]);
    assert_eq!(ids("modes"), ["ask", "plan", "yolo"]);
    assert_eq!(ids("efforts"), ["low", "high"]);
    assert_eq!(record["offer"]["commands"][0]["name"], "say");
    assert_eq!(record["offer"]["modes"]["items"][2]["unguarded"], true);
    assert_eq!(record["in_force"], json!({ "model": "small", "mode": "ask", "effort": "low" }));
    assert_eq!(stage.get("/agents/a")["offer"], record["offer"]);
}

#[test]
fn a_choice_of_the_session_holds_over_restarts_of_the_daemon_and_of_the_agent() {
    let mut stage = offering();
    let choice = json!({ "model": "large", "effort": "high" });
    let session = {
        let mut talk = stage.talk_of(&json!({ "agent": "a", "workspace": stage.work(), "choice": choice }));
        assert_eq!(talk.answer_to("/choices"), "model=large mode=ask effort=high");
        talk.id.clone()
    };
    stage.restart();
    let mut talk = stage.follow(&session);
    talk.catch_up();
    assert_eq!(talk.answer_to("/choices"), "model=large mode=ask effort=high");
    let end = talk.ask("/die");
    assert_eq!(end["type"], "turn.interrupted");
    // The scripted agent forgets with its process what was chosen.
    assert!(talk.answer_to("/choices").ends_with("model=large mode=ask effort=high"));
    assert_eq!(talk.runs(), 2);
    choose(&talk, &json!({ "mode": "plan" }));
    assert!(talk.answer_to("/choices").ends_with("model=small mode=plan effort=low"));
    assert_eq!(talk.all("session.choice_set").len(), 1);
    assert_eq!(talk.all("session.choice_set")[0]["actor"]["kind"], "operator");
}

#[test]
fn a_choice_for_one_turn_is_taken_back_after_it() {
    let stage = offering();
    let mut talk = stage.talk_of(&json!({
        "agent": "a", "workspace": stage.work(), "choice": { "model": "large" },
    }));
    ask_with(&mut talk, "/choices", &json!({ "model": "small", "mode": "plan" }));
    assert_eq!(talk.said(), "model=small mode=plan effort=low");
    assert!(talk.answer_to("/choices").ends_with("model=large mode=ask effort=low"));
    assert_eq!(in_force(&mut talk), json!({ "model": "large", "mode": "ask", "effort": "low" }));
    let started = talk.all("turn.started");
    assert_eq!(started[0]["data"]["choice"], json!({ "model": "small", "mode": "plan" }));
    assert_eq!(started[1]["data"].get("choice"), None);
}

#[test]
fn what_is_not_offered_is_refused_with_the_nearest_names() {
    let stage = offering();
    let talk = {
        let mut talk = stage.talk();
        talk.ask("/say hello");
        talk
    };
    let refused = |path: &str, body: &Value| {
        let answer = talk.post(path, body);
        assert_eq!(answer.status, 422, "{}", answer.text());
        answer.json()
    };
    let unknown = refused("choice", &json!({ "model": "larg" }));
    assert_eq!(unknown["code"], "choice_not_known");
    assert!(unknown["title"].as_str().unwrap().contains("large"), "{unknown:#}");
    assert_eq!(
        refused("turns", &json!({ "prompt": "/say x", "choice": { "mode": "pl" } }))["code"],
        "choice_not_known"
    );
    let new = json!({ "agent": "a", "workspace": stage.work(), "choice": { "effort": "huge" } });
    let answer = stage.post("/sessions", &new);
    assert_eq!((answer.status, answer.json()["code"].clone()), (422, json!("choice_not_known")));
    assert_eq!(talk.record()["choice"], json!({}));
}

#[test]
fn an_agent_that_offers_no_choice_says_so() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    // Before its first run nothing is known: the turn says what is wrong, and the next one works.
    choose(&talk, &json!({ "model": "large" }));
    let end = talk.ask("/say hello");
    assert_eq!(end["data"]["outcome"], "failed");
    assert_eq!(end["data"]["reason"], "choice_refused: the agent offers no choice of model");
    choose(&talk, &json!({}));
    assert_eq!(talk.answer_to("/say hello"), "hello");
}

#[test]
fn an_agent_that_refuses_ignores_or_answers_nonsense_fails_the_turn_and_nothing_else() {
    for (how, why) in [
        ("refuse", "the agent refused the model `large`: `large` is not for you"),
        ("ignore", "the agent did not take the model `large`; `small` is in force"),
    ] {
        let stage = choosing(how);
        let mut talk = stage.talk();
        assert_eq!(talk.answer_to("/say before"), "before");
        let end = ask_with(&mut talk, "/say never", &json!({ "model": "large" }));
        assert_eq!(end["data"]["outcome"], "failed", "{how}: {end:#}");
        assert_eq!(end["data"]["reason"], format!("choice_refused: {why}"));
        assert!(!stage.memory().contains("/say never"), "the agent was not given the prompt");
        assert!(talk.answer_to("/say after").ends_with("after"));
        assert_eq!(talk.runs(), 1);
    }
    let stage = choosing("garbage");
    let mut talk = stage.talk();
    talk.ask("/say before");
    // An answer that says nothing of what is in force is taken for a yes.
    let end = ask_with(&mut talk, "/say on", &json!({ "model": "large" }));
    assert_eq!(end["data"]["outcome"], "completed");
}

#[test]
fn a_prompt_that_waits_for_its_model_can_be_cancelled() {
    let stage = choosing("silent");
    let mut talk = stage.talk();
    talk.ask("/say before");
    let answer = talk.post("turns", &json!({ "prompt": "/say never", "choice": { "model": "large" } }));
    assert_eq!(answer.status, 201, "{}", answer.text());
    talk.until("turn.started");
    talk.cancel();
    assert_eq!(talk.over()["type"], "turn.interrupted");
    assert!(!stage.memory().contains("/say never"));
}

#[test]
fn a_mode_without_approvals_is_visible_and_the_agent_cannot_go_to_it_by_itself() {
    let stage = offering();
    let mut talk = stage.talk();
    talk.ask("/say hello");
    assert_eq!(talk.record()["bypasses_approvals"], false);
    talk.ask("/mode yolo");
    assert!(talk.answer_to("/choices").ends_with("mode=ask effort=low"), "it was asked to leave it");
    choose(&talk, &json!({ "mode": "yolo" }));
    assert!(talk.answer_to("/choices").ends_with("mode=yolo effort=low"));
    assert_eq!(talk.record()["bypasses_approvals"], true);
}

#[test]
fn a_command_of_the_agent_comes_first_in_its_prompt() {
    let stage = Stage::with(&OFFERS, "instructions = \"Be brief.\"");
    let mut talk = stage.talk();
    talk.ask("/choices");
    assert_eq!(
        stage.post(&format!("/sessions/{}/guidance", talk.id), &json!({ "text": "mind the gap" })).status,
        201
    );
    assert!(talk.answer_to("/say hello").ends_with("hello"));
    let told = stage.memory();
    assert!(told.contains("/say hello\\n\\n"), "what else was to be said stands behind it: {told}");
}

#[test]
fn places_in_the_arguments_of_a_command_are_what_it_offers() {
    let settings = "model = \"small\"\n[agents.a.per_turn]\nfirst = [\"--model\", \"{model}\", \"--effort\", \"{effort}\", \"{prompt}\"]\n";
    let stage = Stage::once("echo \"$*\"", settings);
    let mut talk = stage.talk();
    assert_eq!(talk.answer_to("hello").trim(), "--model small hello");
    ask_with(&mut talk, "hello", &json!({ "model": "large", "effort": "high" }));
    assert!(talk.said().trim().ends_with("--model large --effort high hello"), "{}", talk.said());
    let answer = talk.post("choice", &json!({ "mode": "plan" }));
    assert_eq!((answer.status, answer.json()["code"].clone()), (422, json!("choice_unavailable")));
}
