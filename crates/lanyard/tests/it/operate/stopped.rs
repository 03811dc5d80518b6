//! FND-N5: a stop ends the run and keeps the conversation. An operator resumes it, also after the daemon was killed; the run
//! that was stopped stays refused.

use std::process::Output;

use serde_json::{Value, json};

use super::stage::{Stage, text};
use crate::support::{Answer, Caller};

impl Stage {
    fn stopped(&self, session: &str) -> Value {
        let done = self.lanyard(&["stop", session, "--reason", "wrong branch"]);
        assert_eq!(done.status.code(), Some(0), "{}{}", text(&done.stdout), text(&done.stderr));
        self.until(session, |shown| shown["state"] == "stopped")
    }

    /// Works through a prompt to its end.
    fn told(&self, prompt: &str) -> String {
        let session = self.detached(prompt);
        self.until_at_rest(&session);
        session
    }

    /// The token of the session's run, which its agent wrote into a file.
    fn run_token(&self, name: &str) -> String {
        std::fs::read_to_string(self.workspace().join(name)).unwrap()
    }

    fn as_agent(&self, token: &str, path: &str, body: &Value) -> Answer {
        let caller = Caller { token: token.to_owned(), ..self.daemon.caller() };
        caller.try_request("POST", path, &[], Some(&body.to_string())).unwrap()
    }

    /// A call of one of Lanyard's own tools, with an agent's token.
    fn calls(&self, session: &str, token: &str, tool: &str, arguments: &Value) -> String {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        });
        self.as_agent(token, &format!("/mcp/{session}/lanyard"), &body).text()
    }

    fn kinds(&self, session: &str) -> Vec<String> {
        let log = self.daemon.log_after(session, 0);
        log.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// The conversation knows its first prompt, by the agent's own load.
    fn recalls(&self, session: &str) {
        let back = self.lanyard(&["send", session, "/recall"]);
        assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
        assert!(knows(&back), "it knows what was said: {}", text(&back.stdout));
        let run = self.until_at_rest(session)["run"].clone();
        assert_eq!((&run["number"], &run["continuity"]), (&json!(2), &json!("native")), "{run:#}");
    }
}

/// Whether the answer to `/recall` names earlier prompts.
fn knows(back: &Output) -> bool {
    let said = text(&back.stdout);
    said.contains("earlier prompt") && !said.contains("no earlier prompt")
}

/// Keeps the token of the run in a file.
fn keeps_token(name: &str) -> String {
    format!("/run printf %s \"$LANYARD_TOKEN\" > {name}")
}

#[test]
fn fnd_n5_a_stopped_session_is_resumed_and_its_conversation_goes_on() {
    let stage = Stage::new();
    let session = stage.told("/say hello there");
    let view = stage.stopped(&session);
    assert_eq!(
        (&view["resumable"], &view["stop"]["by"]["name"]),
        (&json!(true), &json!("local")),
        "{view:#}"
    );
    assert!(view["native"].is_string() && view["workspace"].is_string(), "{view:#}");

    let refused = stage.lanyard(&["send", &session, "/recall"]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("session_ended") && said.contains(&format!("lanyard resume {session}")), "{said}");
    let asks = stage.lanyard(&["resume", &session]);
    let said = text(&asks.stderr);
    assert_eq!(asks.status.code(), Some(1), "{said}");
    assert!(said.contains("confirmation_needed") && said.contains("stopped by local at"), "{said}");
    assert!(said.contains("--yes"), "{said}");

    let back = stage.lanyard(&["resume", &session, "--yes", "--prompt", "/recall"]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
    assert!(text(&back.stderr).contains("continuity native"), "{}", text(&back.stderr));
    assert!(knows(&back), "it knows the first prompt: {}", text(&back.stdout));
    let view = stage.until_at_rest(&session);
    assert_eq!((&view["state"], &view["stop"]), (&json!("between_turn"), &Value::Null), "{view:#}");
    let log = stage.daemon.log_after(&session, 0);
    let resumed: Vec<&Value> = log.iter().filter(|event| event["type"] == "session.resumed").collect();
    assert_eq!(resumed.len(), 1);
    assert_eq!(resumed[0]["actor"], json!({"kind": "operator", "name": "local"}));
    let receipt = stage.get(&format!("/sessions/{session}/stop"));
    assert_eq!(receipt["confirmed"], true, "{receipt:#}");

    // And again.
    stage.stopped(&session);
    let back = stage.lanyard(&["resume", &session, "--yes"]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
    assert!(text(&back.stderr).contains("continuity native"), "{}", text(&back.stderr));
    // Only complete, fail and rm are final.
    assert_eq!(stage.post(&format!("/sessions/{session}/complete"), &json!({})).status, 200);
    let over = stage.post(&format!("/sessions/{session}/resume"), &json!({}));
    assert_eq!((over.status, over.code()), (409, "session_ended".to_owned()), "{}", over.text());
}

/// An agent that cannot load its conversation says so; another way is an operator's choice.
#[test]
fn fnd_n5_the_label_of_a_resume_is_honest() {
    let stage = Stage::with(&["--refuse-resume"], "");
    let session = stage.told("/say hello there");
    stage.stopped(&session);
    let back = stage.lanyard(&["resume", &session, "--yes"]);
    assert_eq!(back.status.code(), Some(1), "{}", text(&back.stderr));
    assert!(text(&back.stderr).contains("continuity lost"), "{}", text(&back.stderr));
    let back = stage.lanyard(&["resume", &session, "--way", "native", "--way", "preamble"]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
    assert!(text(&back.stderr).contains("continuity preamble"), "{}", text(&back.stderr));
}

/// S0-B06: every call of the run that was stopped gets the error of level 3, after the resume too. The next run works.
#[test]
fn fnd_n5_the_token_of_the_stopped_run_stays_refused() {
    let stage = Stage::new();
    let session = stage.told(&keeps_token("old"));
    let old = stage.run_token("old");
    let look = json!({"action": "info"});
    assert!(!stage.calls(&session, &old, "memory_workspace", &look).contains("TERMINATED"));
    let resume = format!("/api/v1/sessions/{session}/resume");
    stage.stopped(&session);
    assert!(stage.calls(&session, &old, "memory_workspace", &look).contains("❌ SESSION TERMINATED"));
    let own = stage.as_agent(&old, &resume, &json!({}));
    assert!(matches!(own.status, 401 | 403), "no agent resumes itself: {} {}", own.status, own.text());

    assert_eq!(stage.post(&format!("/sessions/{session}/resume"), &json!({})).status, 202);
    stage.until(&session, |shown| shown["run"]["number"] == 2 && shown["run"]["phase"] == "ready");
    let back = stage.lanyard(&["send", &session, &keeps_token("new")]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
    let new = stage.run_token("new");
    for (tool, arguments) in [
        ("memory_workspace", look.clone()),
        ("memory_agent", json!({"action": "complete", "summary": "I am done"})),
    ] {
        let said = stage.calls(&session, &old, tool, &arguments);
        assert!(said.contains("❌ SESSION TERMINATED"), "{tool}: {said}");
    }
    let call = json!({"id": "1", "tool": "Bash", "channel": "hook"});
    let hooked = stage.as_agent(&old, &format!("/api/v1/sessions/{session}/calls"), &call);
    assert_eq!((hooked.status, &hooked.json()["go"]), (200, &json!(false)), "{}", hooked.text());
    assert_eq!(hooked.json()["level"], 3);
    assert_eq!(stage.as_agent(&old, &resume, &json!({})).status, own.status);
    assert_eq!(stage.as_agent(&new, &resume, &json!({})).status, 403, "nor does the new run");

    let view = stage.get(&format!("/sessions/{session}"));
    assert_eq!((&view["state"], &view["stop"]), (&json!("between_turn"), &Value::Null), "{view:#}");
    let said = stage.calls(&session, &new, "memory_workspace", &look);
    assert!(!said.contains("TERMINATED") && !said.contains("SESSION STOP"), "{said}");
    let hooked = stage.as_agent(&new, &format!("/api/v1/sessions/{session}/calls"), &call);
    assert_eq!(hooked.json()["go"], true, "{}", hooked.text());
}

/// A stop of a family stops each of it, and each is resumed by itself.
#[test]
fn fnd_n5_members_of_a_stopped_family_are_resumed_one_by_one() {
    let stage = Stage::new();
    let parent = stage.told("/say hello there");
    let new = json!({"agent": "scripted", "parent": parent, "workspace": stage.workspace()});
    let child = stage.post("/sessions", &new).json()["session"].as_str().unwrap().to_owned();
    let sent = stage.lanyard(&["send", &child, "/say I am below"]);
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    let done = stage.lanyard(&["stop", &parent, "--subtree"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    for session in [&parent, &child] {
        stage.until(session, |shown| shown["state"] == "stopped");
    }
    let back = stage.lanyard(&["resume", &parent, "--yes"]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
    assert_eq!(stage.get(&format!("/sessions/{child}"))["state"], "stopped");
    stage.recalls(&parent);
    // A child born under the resumed parent inherits no stop.
    let late = stage.post("/sessions", &new).json()["session"].as_str().unwrap().to_owned();
    assert_eq!(stage.get(&format!("/sessions/{late}"))["stop"], Value::Null);
    let back = stage.lanyard(&["resume", &child, "--yes"]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
    stage.recalls(&child);
}

/// The parent hears of the stop of its child, and of the resume; not as of an interruption.
#[test]
fn fnd_n5_a_parent_is_told_that_its_stopped_child_was_resumed() {
    let stage = Stage::new();
    let parent = stage.told("/say hello there");
    let new = json!({"agent": "scripted", "parent": parent, "workspace": stage.workspace()});
    let child = stage.post("/sessions", &new).json()["session"].as_str().unwrap().to_owned();
    let sent = stage.lanyard(&["send", &child, "/say I am below"]);
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    stage.stopped(&child);
    let queued = || {
        let log = stage.daemon.log_after(&parent, 0);
        let words: Vec<Value> = log.into_iter().filter(|event| event["type"] == "guidance.queued").collect();
        words
    };
    stage.until(&child, |_| queued().len() == 1);
    let back = stage.lanyard(&["resume", &child, "--yes"]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
    stage.until(&child, |_| queued().len() == 2);
    let told = &queued()[1]["data"];
    assert_eq!(told["about"], json!(child), "{told:#}");
    assert!(told["text"].as_str().unwrap().contains("has been resumed by an operator"), "{told:#}");
    let heard = stage.lanyard(&["send", &parent, "/recall"]);
    assert_eq!(heard.status.code(), Some(0), "{}", text(&heard.stderr));
    stage.until_at_rest(&parent);
    assert_eq!(queued().len(), 2, "each is told once");
    let sent = stage.kinds(&child).iter().filter(|kind| *kind == "notice.sent").count();
    assert_eq!(sent, 2);
}

/// S0-B06: after twenty stops and resumes the conversation is whole, and the first run gets the error of level 3 still.
#[test]
fn fnd_n5_twenty_rounds_keep_the_conversation_and_the_first_run_refused() {
    const ROUNDS: u64 = 20;
    let stage = Stage::new();
    let session = stage.told(&keeps_token("old"));
    let old = stage.run_token("old");
    for round in 1..=ROUNDS {
        stage.stopped(&session);
        let resumed = stage.post(&format!("/sessions/{session}/resume"), &json!({}));
        assert_eq!(resumed.status, 202, "round {round}: {}", resumed.text());
        stage
            .until(&session, |shown| shown["run"]["number"] == round + 1 && shown["run"]["phase"] == "ready");
    }
    let said = stage.calls(&session, &old, "memory_workspace", &json!({"action": "info"}));
    assert!(said.contains("❌ SESSION TERMINATED"), "{said}");
    let back = stage.lanyard(&["send", &session, "/recall"]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
    assert!(knows(&back), "{}", text(&back.stdout));
}

/// A halt stops runs the same way; once it is lifted they are resumed.
#[test]
fn fnd_n5_what_a_halt_stopped_is_resumed_when_it_is_lifted() {
    let stage = Stage::new();
    let session = stage.told("/say hello there");
    let sent = stage.post(&format!("/sessions/{session}/turns"), &json!({"prompt": "/wait-file never"}));
    assert_eq!(sent.status, 201, "{}", sent.text());
    stage.until(&session, |shown| shown["state"] == "executing");
    assert!(stage.lanyard(&["halt", "--now", "--reason", "all out"]).status.success());
    stage.until(&session, |shown| shown["state"] == "stopped");
    let held = stage.lanyard(&["resume", &session, "--yes"]);
    assert_eq!(held.status.code(), Some(1));
    assert!(text(&held.stderr).contains("[halted]"), "{}", text(&held.stderr));
    assert_eq!(stage.get(&format!("/sessions/{session}"))["state"], "stopped");
    assert!(stage.lanyard(&["halt", "--lift"]).status.success());
    let back = stage.lanyard(&["resume", &session, "--yes"]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
    assert!(text(&back.stderr).contains("continuity native"), "{}", text(&back.stderr));
    stage.recalls(&session);
}

/// Killed between the stop and the resume, and right after the resume was acknowledged: nothing is lost.
#[test]
fn fnd_n5_a_resume_survives_a_killed_daemon() {
    let mut stage = Stage::new();
    let session = stage.told("/say hello there");
    stage.stopped(&session);
    stage.daemon.kill_9();
    stage.daemon.try_start().unwrap();
    assert_eq!(stage.get(&format!("/sessions/{session}"))["resumable"], true);
    let resumed = stage.post(&format!("/sessions/{session}/resume"), &json!({}));
    assert_eq!(resumed.status, 202, "{}", resumed.text());
    stage.daemon.kill_9();
    stage.daemon.try_start().unwrap();
    let view = stage.until(&session, |shown| shown["run"]["phase"] == "ready");
    assert_eq!((&view["state"], &view["stop"]), (&json!("interrupted"), &Value::Null), "{view:#}");
    assert_eq!(stage.kinds(&session).iter().filter(|kind| *kind == "session.resumed").count(), 1);
    let back = stage.lanyard(&["resume", &session, "--prompt", "/recall"]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
    assert!(knows(&back), "{}", text(&back.stdout));
}

/// The daemon dies with the resume in its log: before the log knows of a run, before that run has a process, and before the
/// process was told anything. The next daemon has the run.
#[test]
fn fnd_n5_a_resume_is_carried_out_by_the_next_daemon() {
    for place in ["before_run", "before_spawn", "after_spawn"] {
        let mut stage = Stage::new();
        let session = stage.told("/say hello there");
        stage.stopped(&session);
        stage.daemon.kill_9();
        stage.daemon.add_env("LANYARD_FAILPOINT", format!("{place}:1"));
        stage.daemon.try_start().unwrap();
        // Its answer may be lost with the daemon.
        let path = format!("/api/v1/sessions/{session}/resume");
        let _ = stage.daemon.caller().try_request("POST", &path, &[], Some("{}"));
        stage.daemon.wait();
        stage.daemon.add_env("LANYARD_FAILPOINT", "");
        stage.daemon.try_start().unwrap();
        let view = stage.until(&session, |shown| shown["run"]["phase"] == "ready");
        assert_ne!(view["run"]["number"], 1, "{place}: {view:#}");
        let wanted = stage.kinds(&session).iter().filter(|kind| *kind == "run.wanted").count();
        assert_eq!(wanted, 1, "{place}: nobody asked twice");
        let back = stage.lanyard(&["send", &session, "/recall"]);
        assert_eq!(back.status.code(), Some(0), "{place}: {}", text(&back.stderr));
        assert!(knows(&back), "{place}: {}", text(&back.stdout));
    }
}

/// FND-M12, S0-B10, S0-B18: words that waited are settled and their sender is told; so is the operator when a child is
/// stopped and nobody above it lives.
#[test]
fn fnd_m12_what_a_stop_leaves_unheard_is_told_to_operators() {
    let stage = Stage::new();
    let hub = stage.told("/say hello there");
    let new = json!({"agent": "scripted", "parent": hub, "workspace": stage.workspace()});
    let child = stage.post("/sessions", &new).json()["session"].as_str().unwrap().to_owned();
    assert_eq!(stage.post(&format!("/sessions/{hub}/complete"), &json!({})).status, 200);
    let note = stage.post(&format!("/sessions/{child}/guidance"), &json!({"text": "look at the tests"}));
    assert_eq!(note.status, 201, "{}", note.text());
    stage.stopped(&child);
    let listed = stage.get(&format!("/sessions/{child}/guidance"));
    assert_eq!(listed["waiting"], json!([]), "{listed:#}");
    assert_eq!(listed["settled"][0]["status"], "undelivered", "{listed:#}");
    let receipt = stage.get(&format!("/sessions/{child}/stop"));
    let steps = receipt["steps"].as_array().unwrap();
    assert!(steps.iter().any(|step| step["channel"] == "guidance"), "{receipt:#}");
    let told = |kind: &str| {
        let all = stage.get(&format!("/notifications?kind={kind}"));
        all["notifications"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["session"] == json!(child)))
    };
    stage.until(&child, |_| told("guidance_undelivered") && told("child_stopped"));
    // A resume is the end of the matter.
    let back = stage.lanyard(&["resume", &child, "--yes"]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
    let over = |one: &Value| one["kind"] == "child_stopped" && one["over_at"].is_string();
    stage.until(&child, |_| {
        let all = stage.get("/notifications?kind=child_stopped");
        all["notifications"].as_array().is_some_and(|all| all.is_empty() || all.iter().any(over))
    });
}

/// FND-M8, X-01, S1-29: a chat channel talks to roots only; stops, guidance and answers reach every level. An operator
/// talks to any session, unless the config says otherwise.
#[test]
fn fnd_m8_who_may_send_turns_below_the_root() {
    let stage = Stage::new();
    let root = stage.told("/say hello there");
    let new = json!({"agent": "scripted", "parent": root, "workspace": stage.workspace()});
    let child = stage.post("/sessions", &new).json()["session"].as_str().unwrap().to_owned();
    let made = stage.post("/tokens", &json!({"name": "telegram", "role": "operator"}));
    assert_eq!(made.status, 201, "{}", made.text());
    let chat = made.json()["token"].as_str().unwrap().to_owned();
    let turn = json!({"prompt": "/say words"});
    let to = |session: &str, what: &str| format!("/api/v1/sessions/{session}/{what}");
    let refused = stage.as_agent(&chat, &to(&child, "turns"), &turn);
    assert_eq!(
        (refused.status, refused.code()),
        (409, "intervention_root_only".to_owned()),
        "{}",
        refused.text()
    );
    assert!(refused.text().contains(&root), "it names the root: {}", refused.text());
    assert_eq!(stage.as_agent(&chat, &to(&root, "turns"), &turn).status, 201);
    assert_eq!(stage.as_agent(&chat, &to(&child, "guidance"), &json!({"text": "slowly"})).status, 201);
    // The operator's own turn at level 2, then the channel's stop of it, recorded with its name.
    assert_eq!(
        stage.post(&format!("/sessions/{child}/turns"), &json!({"prompt": "/wait-file never"})).status,
        201
    );
    assert_eq!(stage.as_agent(&chat, &to(&child, "stop"), &json!({"now": true})).status, 202);
    let view = stage.until(&child, |shown| shown["state"] == "stopped");
    assert_eq!(view["stop"]["by"], json!({"kind": "operator", "name": "telegram"}));
}

/// FND-M8: `root_only` for everybody, and a channel that is allowed more.
#[test]
fn fnd_m8_the_config_says_who_may() {
    let config = "[intervention]\noperators = \"root_only\"\n[intervention.channels]\ntelegram = \"any\"\n";
    let stage = Stage::with(&[], config);
    let root = stage.told("/say hello there");
    let new = json!({"agent": "scripted", "parent": root, "workspace": stage.workspace()});
    let child = stage.post("/sessions", &new).json()["session"].as_str().unwrap().to_owned();
    let refused = stage.lanyard(&["send", &child, "/say words"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("intervention_root_only"), "{}", text(&refused.stderr));
    let chat = stage.post("/tokens", &json!({"name": "telegram", "role": "operator"})).json();
    let chat = chat["token"].as_str().unwrap().to_owned();
    let turn = json!({"prompt": "/say words"});
    assert_eq!(stage.as_agent(&chat, &format!("/api/v1/sessions/{child}/turns"), &turn).status, 201);
}
