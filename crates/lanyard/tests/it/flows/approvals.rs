//! What a flow's agents wait to be allowed is part of the flow's view (FND-N6).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::kit::{DONE, READY, Stage, id, work};

/// A flow whose author asks before it works.
fn asking(stage: &Stage) -> String {
    stage.script("author", &format!("/ask May I write?\n{}", work("asked")));
    stage.script("author", &format!("/say! {DONE}"));
    stage.reviewer("look", READY);
    stage.begin(&json!({}))
}

#[test]
fn fnd_n6_a_flow_shows_what_its_author_asks() {
    let stage = Stage::new();
    let flow = asking(&stage);
    let shown = stage.until(&flow, "the author to ask", |seen| seen["approvals"].is_array());
    let entry = &shown["approvals"][0];
    assert_eq!(entry["session"], shown["invocation"]["session"], "{shown}");
    let listed = stage.get("/gates");
    assert_eq!(listed["gates"][0], *entry, "the same shape as a row of the gates");
    let (session, gate) = (id(entry, "session"), id(entry, "id"));

    // Whoever knows of it waits for other news; whoever does not is told at once.
    let head = shown["seq"].as_u64().unwrap();
    let told = |known: &str, wait_ms: u64| {
        let begun = Instant::now();
        let path = format!("/flows/{flow}/events?after={head}&wait_ms={wait_ms}&approvals={known}");
        (stage.get(&path), begun.elapsed())
    };
    let (page, _) = told("", 30_000);
    assert_eq!(page["flow"]["approvals"][0]["id"], gate.as_str(), "{page}");
    let (_, waited) = told(&gate, 300);
    assert!(waited >= Duration::from_millis(300), "nothing was new: {waited:?}");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| told(&gate, 30_000));
        stage.ok(&format!("/sessions/{session}/gates/{gate}"), &json!({ "option": "allow" }));
        let (page, _) = waiting.join().unwrap();
        assert_eq!(page["flow"]["approvals"], Value::Null, "answered: {page}");
    });
    stage.settled(&flow, "completed");
    assert_eq!(stage.show(&flow)["approvals"], Value::Null);
}
