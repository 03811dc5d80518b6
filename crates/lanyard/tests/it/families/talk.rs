//! Talking to an agent: it does steps in a turn, and what its calls came back with is read from its log.

use serde_json::{Value, json};

use super::kit::{Stage, id, until};

/// A turn that was begun.
pub(super) struct Turn {
    session: String,
    id: String,
    /// Where it begins in the session's log.
    after: u64,
}

/// Begins a turn with these steps, after whatever the session does already.
pub(super) fn begin(stage: &Stage, session: &str, steps: &str) -> Turn {
    let body = json!({ "prompt": steps, "delivery": "queue" });
    let receipt = stage.ok(&format!("/sessions/{session}/turns"), &body);
    let after = receipt["log"]["after"].as_u64().unwrap();
    Turn { session: session.to_owned(), id: id(&receipt, "turn"), after }
}

impl Turn {
    /// Waits until it is over, and answers how it ended.
    pub(super) fn over(&self, stage: &Stage) -> String {
        let path = format!("/sessions/{}/turns/{}", self.session, self.id);
        let status = || id(&stage.get(&path), "status");
        until("the turn to be over", || !["queued", "running"].contains(&status().as_str()));
        status()
    }

    /// What its calls came back with, once it is completed.
    pub(super) fn returned(&self, stage: &Stage) -> Vec<Value> {
        assert_eq!(self.over(stage), "completed", "{}", stage.daemon.stderr());
        let log = stage.daemon.log_after(&self.session, self.after);
        let at = |kind: &str| {
            let found = |event: &Value| event["type"] == kind && event["data"]["turn"] == self.id.as_str();
            log.iter().position(found).unwrap_or_else(|| panic!("no {kind}"))
        };
        let mine = &log[at("turn.started")..at("turn.finished")];
        let returned = mine.iter().filter(|event| event["type"] == "tool.returned");
        returned.map(|event| event["data"].clone()).collect()
    }
}

/// A step that calls the tool `tasks`.
pub(super) fn step(arguments: &Value) -> String {
    format!("/mcp lanyard tasks {arguments}")
}

/// What the tool `tasks` answers to the session's agent.
pub(super) fn tasks(stage: &Stage, session: &str, arguments: &Value) -> Value {
    let returned = begin(stage, session, &step(arguments)).returned(stage);
    assert_eq!((returned.len(), &returned[0]["is_error"]), (1, &json!(false)), "{returned:?}");
    answer(&returned[0])
}

/// The answer itself; what waits for the agent may stand before it.
pub(super) fn answer(returned: &Value) -> Value {
    let text = returned["content"].as_str().unwrap();
    let at = if text.starts_with('{') { 0 } else { text.rfind("\n{\n").unwrap_or_else(|| panic!("{text}")) };
    serde_json::from_str(&text[at..]).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The code with which the tool `tasks` refuses.
pub(super) fn refused(stage: &Stage, session: &str, arguments: &Value) -> String {
    let returned = begin(stage, session, &step(arguments)).returned(stage);
    assert_eq!((returned.len(), &returned[0]["is_error"]), (1, &json!(true)), "{returned:?}");
    code(&returned[0])
}

/// The code of a call that was refused.
pub(super) fn code(returned: &Value) -> String {
    let text = returned["content"].as_str().unwrap();
    let at = text.find("refused: ").unwrap_or_else(|| panic!("{text}"));
    assert!(text[at..].contains("\ntry: "), "{text}");
    text[at..].split_once('[').unwrap().1.split_once(']').unwrap().0.to_owned()
}

/// The tasks below a task or session, oldest first.
pub(super) fn below(stage: &Stage, above: &str) -> Vec<Value> {
    stage.get(&format!("/tasks?reports_to={above}"))["tasks"].as_array().unwrap().clone()
}

/// What the calls of an ended or idle session came back with, all of its life.
pub(super) fn all_returned(stage: &Stage, session: &str) -> Vec<Value> {
    let log = stage.daemon.log_after(session, 0);
    log.iter().filter(|event| event["type"] == "tool.returned").map(|event| event["data"].clone()).collect()
}
