//! What an agent does becomes events: in order, joined, whole.

use serde_json::{Value, json};

use super::kit::{Stage, Talk};

/// Events of the conversation itself, in a short form.
fn transcript(talk: &Talk<'_>) -> Vec<String> {
    let short = |event: &Value| {
        let data = &event["data"];
        let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        Some(match event["type"].as_str()? {
            "message" => format!("{}: {}", text("role"), text("text")),
            "thought" => format!("thought: {}", text("text")),
            "plan.updated" => format!("plan: {}", data["entries"].as_array()?.len()),
            "tool.called" => format!("called {}", text("tool")),
            "tool.returned" => format!("returned, error {}", data["is_error"]),
            "file.changed" => format!("changed, +{} -{}", data["added"], data["removed"]),
            "usage.reported" => {
                format!("used {} {} {}", data["input_tokens"], data["output_tokens"], data["context_tokens"])
            }
            "context.compacted" => format!("compacted {} {}", data["size_before"], data["size_after"]),
            "turn.finished" => format!("finished {}", text("outcome")),
            _ => return None,
        })
    };
    talk.seen.iter().filter_map(short).collect()
}

#[test]
fn everything_an_agent_does_is_in_the_log_in_order() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.ask(
        "/think let me see\n/say hello dear world\n/plan look | do\n/tool read {\"path\":\"x\"}\n\
         /tool-fail grep nothing found\n/edit note.txt one\\ntwo\n/say done\n/compact 9000 1000\n/usage 120 8 4000",
    );
    let expected = [
        "thought: let me see",
        "agent: hello dear world",
        "plan: 2",
        "called read",
        "returned, error false",
        "called grep",
        "returned, error true",
        "called edit",
        "changed, +2 -0",
        "returned, error false",
        "agent: done",
        "compacted 9000 1000",
        "used 120 8 128",
        "finished completed",
    ];
    assert_eq!(transcript(&talk), expected, "{:#?}", talk.seen);
    let change = &talk.all("tool.returned")[2]["data"]["content"][0];
    assert_eq!((&change["type"], &change["newText"]), (&json!("diff"), &json!("one\ntwo\n")));
    let ready = talk.all("run.ready")[0];
    assert_eq!(ready["data"]["info"]["name"], "lanyard-scripted");
    assert_eq!(ready["data"]["capabilities"]["load"], true);
    assert!(ready["data"]["continuity"].is_null(), "nothing came over into the first run");
}

#[test]
fn what_an_agent_says_it_cost_is_added_up() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.answer_to("/usage 10 2\n/cost 25");
    talk.answer_to("/usage 10 2\n/cost 5\n/cost 1");
    let told: Vec<u64> =
        talk.all("usage.reported").iter().filter_map(|event| event["data"]["cost_micros"].as_u64()).collect();
    // The agent tells the whole each time. A rise is reported when it comes, and the rest with the end of the turn.
    assert_eq!(told.iter().sum::<u64>(), 310_000, "{:#?}", talk.seen);
    assert_eq!(talk.record()["usage"]["cost_micros"], 310_000);
}

#[test]
fn a_flood_of_words_is_joined_and_nothing_is_lost_or_moved() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    let said = talk.answer_to("/chatter 2000 100");
    let chunks: Vec<String> = (1..=2_000).map(|number| format!("{number:08}{}", "x".repeat(92))).collect();
    let expected = chunks.concat();
    assert!(said == expected, "{} bytes of {}", said.len(), expected.len());
    let pieces = talk.all("message").len();
    assert!(pieces < 200, "2000 pieces became {pieces} events");
}

/// S3-B15: the daemon answers, and other agents work, while one agent writes without a pause.
#[test]
fn an_agent_that_never_pauses_keeps_nobody_waiting() {
    let busy = "[agents.busy]\ndriver = \"command\"\nkill_grace_ms = 200\n\
                command = [\"sh\", \"-c\", \"while :; do /bin/echo more words; done\"]\n\
                [agents.busy.budget]\noutput_bytes = 0\n";
    let stage = Stage::beside(&[("a", &[], "")], busy);
    let mut busy = stage.talk_with("busy");
    busy.turn("write on");
    busy.until("message");
    for round in ["one", "two", "three"] {
        assert_eq!(stage.talk().answer_to(&format!("/say {round}")), round);
    }
    assert_eq!(busy.record()["state"], "executing", "it wrote all the time");
    busy.cancel();
    super::kit::interrupted(&busy.over(), "user");
}

#[test]
fn turns_follow_each_other_in_one_process() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.answer_to("first words\n/run echo $PPID");
    talk.answer_to("second words\n/run echo $PPID");
    let returned = talk.all("tool.returned");
    assert_eq!(returned[0]["data"]["content"], returned[1]["data"]["content"]);
    assert_eq!(talk.answer_to("/recall"), "I know 2 earlier prompts, the last: second words /run echo $PPID");
    assert_eq!(talk.runs(), 1);
    assert_eq!(talk.record()["run"]["turns"], 3);
}

#[test]
fn a_refusal_and_the_agents_own_limits_are_told_apart() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    assert_eq!(talk.ask("/stop refusal")["data"]["outcome"], "refused");
    for limit in ["max_tokens", "max_turn_requests"] {
        let end = talk.ask(&format!("/stop {limit}"));
        super::kit::interrupted(&end, "limit");
    }
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
}

/// S1-34, S1-B03.
#[test]
fn subagents_are_sessions_of_their_own() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    let said = talk.answer_to(
        "/spawn scout look around ; /say all clear\n/spawn digger /think hm ; /say found it\n/join",
    );
    assert_eq!(said, "child scout: all clearchild digger: found it");
    let children: Vec<String> = talk
        .all("session.child_linked")
        .iter()
        .map(|event| event["data"]["child"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(children.len(), 2);
    for (child, name, words) in [(&children[0], "scout", "all clear"), (&children[1], "digger", "found it")] {
        let mut child = stage.follow(child);
        let end = child.over();
        assert_eq!(end["data"]["outcome"], "completed");
        assert_eq!(child.said(), words);
        let record = child.record();
        assert_eq!(record["parent"], json!(talk.id));
        assert_eq!((&record["title"], &record["source"]), (&json!(name), &json!("subagent")));
        assert_eq!(child.all("run.started")[0]["data"]["mirrored"], true);
        assert_eq!(record["state"], "between_turn");
    }
    // The parent's end is the end of its subagents' process too.
    talk.stop();
    talk.until("session.ended");
}

/// The protocol has no way to speak to a subagent: that is said, and nothing hangs.
#[test]
fn a_prompt_for_a_subagent_is_refused_with_a_reason() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.answer_to("/spawn scout /say all clear\n/join");
    let child = talk.all("session.child_linked")[0]["data"]["child"].as_str().unwrap().to_owned();
    let mut child = stage.follow(&child);
    child.over();
    let refused = child.try_turn("/say more");
    assert_eq!((refused.status, refused.code()), (409, "prompt_not_taken".to_owned()), "{}", refused.text());
    child.stop();
    assert_eq!(child.until("session.ended")["data"]["how"], "stopped");
    assert_eq!(talk.answer_to("/say on"), "on", "its parent goes on");
    assert_eq!(talk.runs(), 1);
}

#[test]
fn a_subagent_is_over_with_its_parents_process() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.answer_to("/spawn scout /say all clear\n/join");
    let child = talk.all("session.child_linked")[0]["data"]["child"].as_str().unwrap().to_owned();
    let mut child = stage.follow(&child);
    talk.ask("/die");
    child.until("run.ended");
    let refused = child.try_turn("/say more");
    assert_eq!((refused.status, refused.code()), (409, "prompt_not_taken".to_owned()), "{}", refused.text());
    child.stop();
    assert_eq!(child.until("session.ended")["data"]["how"], "stopped");
}

#[test]
fn a_subagent_at_work_shares_its_parents_fate() {
    let stage = Stage::with(&[], "cancel_grace_ms = 200\n");
    for (step, cause) in [("/die", "crash"), ("/ignore-cancel", "user")] {
        let mut talk = stage.talk();
        talk.turn(&format!(
            "/spawn slow /touch there ; /wait 60000\n/wait-file go\n{step}\n/touch past\n/wait 60000"
        ));
        stage.await_file("there");
        let child = talk.until("session.child_linked")["data"]["child"].as_str().unwrap().to_owned();
        let mut child = stage.follow(&child);
        child.until("turn.started");
        stage.touch("go");
        if cause == "user" {
            stage.await_file("past");
            talk.stop();
        }
        super::kit::interrupted(&child.over(), cause);
        super::kit::interrupted(&talk.over(), cause);
        for name in ["there", "go"] {
            std::fs::remove_file(stage.file(name)).unwrap();
        }
    }
}

#[test]
fn a_subagent_can_be_cancelled_alone() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/spawn slow /touch there ; /wait 60000\n/spawn quick /say fine\n/join");
    stage.await_file("there");
    let child = talk.until("session.child_linked")["data"]["child"].as_str().unwrap().to_owned();
    let mut child = stage.follow(&child);
    child.until("turn.started");
    child.cancel();
    super::kit::interrupted(&child.over(), "user");
    let end = talk.over();
    assert_eq!(end["data"]["outcome"], "completed", "its parent goes on: {end:#}");
    assert!(talk.said().contains("child quick: fine"));
}

#[test]
fn words_that_wait_are_delivered_with_the_next_prompt() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.answer_to("/say one");
    let answer = talk.post("guidance", &json!({"text": "mind the gap"}));
    assert_eq!(answer.status, 201, "{}", answer.text());
    let note = talk.until("guidance.queued")["data"]["note"].clone();
    assert!(!stage.memory().contains("mind the gap"));
    talk.turn("/say two");
    let delivered = talk.until("guidance.delivered");
    assert_eq!(
        (&delivered["data"]["notes"], &delivered["data"]["channel"]),
        (&json!([note]), &json!("prompt"))
    );
    talk.over();
    talk.answer_to("/say three");
    assert_eq!(stage.memory().matches("mind the gap").count(), 1, "told once");
    assert_eq!(talk.all("guidance.delivered").len(), 1);
}

/// S1-18: a role is told once per conversation, anchors when it opens.
#[test]
fn a_role_and_anchors_are_told_once() {
    let stage = Stage::with(&[], "instructions = \"You count the sheep.\"\n");
    let mut talk = stage.talk();
    let answer = talk.post("anchors", &json!({"anchors": ["the barn is red"]}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    talk.answer_to("/say one");
    talk.answer_to("/say two");
    let told = stage.memory();
    assert_eq!(told.matches("You count the sheep.").count(), 1, "{told}");
    assert_eq!(told.matches("the barn is red").count(), 1, "{told}");
    let (role, anchor) = (told.find("sheep").unwrap(), told.find("barn").unwrap());
    assert!(role < anchor && anchor < told.find("/say one").unwrap(), "{told}");
    // Also in a new process of the same conversation: it knows.
    talk.ask("/die");
    talk.answer_to("/say three");
    assert_eq!(stage.memory().matches("You count the sheep.").count(), 1);
}
