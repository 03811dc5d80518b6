//! Events in, lines out. The streams were recorded from a real `OpenCode` 1.18.33 in front of a scripted model.

use std::fmt::Write as _;

use expect_test::expect_file;
use serde_json::{Value, json};

use super::{BridgeLedger, BridgeWish, Out, Source};

const MAIN: &str = "ses_main";
const TURN: &str = "turn_1";

const STREAMS: [(&str, &str); 4] = [
    ("tool", include_str!("fixtures/tool.jsonl")),
    ("abort", include_str!("fixtures/abort.jsonl")),
    ("child", include_str!("fixtures/child.jsonl")),
    ("compaction", include_str!("fixtures/compaction.jsonl")),
];

fn events(stream: &str) -> Vec<Value> {
    stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn opened(out: &mut Out) -> BridgeLedger {
    let mut ledger = BridgeLedger::default();
    ledger.open(MAIN, None);
    ledger.prompting(MAIN, TURN, out);
    ledger
}

/// The lines of a stream, with all that waits for a timer said at the end.
fn lines_of(events: &[Value]) -> Vec<Value> {
    let mut out = Out::default();
    let mut ledger = opened(&mut out);
    for event in events {
        ledger.event(event, Source::Stream, &mut out);
    }
    ledger.settled(MAIN, &mut out);
    out.lines
}

fn words(lines: &[Value], session: &str) -> String {
    lines
        .iter()
        .filter(|line| line["event"]["properties"]["sessionID"] == session)
        .filter_map(|line| line["event"]["properties"]["delta"].as_str())
        .collect()
}

#[test]
fn real_streams_become_these_lines() {
    for (name, stream) in STREAMS {
        let mut text = String::new();
        for line in lines_of(&events(stream)) {
            writeln!(text, "{line}").unwrap();
        }
        expect_file![format!("./fixtures/{name}.lines")].assert_eq(&text);
    }
}

#[test]
fn a_stream_seen_twice_says_nothing_twice() {
    for (name, stream) in STREAMS {
        let events = events(stream);
        let once = lines_of(&events);
        let mut out = Out::default();
        let mut ledger = opened(&mut out);
        for event in &events {
            ledger.event(event, Source::Stream, &mut out);
            // Deltas have no place of their own, so only the stream itself can repeat them, which it does not.
            if event["type"] != "message.part.delta" && event["type"] != "session.status" {
                ledger.event(event, Source::Stream, &mut out);
            }
        }
        ledger.settled(MAIN, &mut out);
        assert_eq!(out.lines, once, "{name}");
    }
}

/// What the server would answer about a conversation after these events: texts as they were last stored.
fn stored(events: &[Value]) -> Vec<Value> {
    let mut stored: Vec<Value> = Vec::new();
    for event in events {
        let kind = event["type"].as_str().unwrap();
        let id = match kind {
            "message.updated" | "session.created" => &event["properties"]["info"]["id"],
            "message.part.updated" => &event["properties"]["part"]["id"],
            _ => continue,
        };
        let same = |other: &&mut Value| {
            other["properties"]["info"]["id"] == *id || other["properties"]["part"]["id"] == *id
        };
        match stored.iter_mut().find(same) {
            Some(old) => *old = event.clone(),
            None => stored.push(event.clone()),
        }
    }
    stored
}

/// The stream breaks anywhere and for any number of events, what was missed is asked for: every word is said once.
#[test]
fn no_word_and_no_call_is_lost_or_repeated_over_a_gap() {
    for (name, stream) in STREAMS {
        let events = events(stream);
        let whole = lines_of(&events);
        let tools = |lines: &[Value]| {
            let mut tools: Vec<String> = lines
                .iter()
                .filter(|line| line["event"]["properties"]["part"]["type"] == "tool")
                .map(|line| {
                    let part = &line["event"]["properties"]["part"];
                    format!("{} {}", part["callID"], part["state"]["status"])
                })
                .collect();
            tools.sort();
            tools
        };
        for from in 0..events.len() {
            for missed in [1, 2, 3, 7, 20] {
                let to = (from + missed).min(events.len());
                let mut out = Out::default();
                let mut ledger = opened(&mut out);
                for event in &events[..from] {
                    ledger.event(event, Source::Stream, &mut out);
                }
                ledger.lost();
                for event in stored(&events[..to]) {
                    ledger.event(&event, Source::Refetch, &mut out);
                }
                for event in &events[to..] {
                    ledger.event(event, Source::Stream, &mut out);
                }
                let place = format!("{name}: {missed} missed after {from}");
                assert_eq!(words(&out.lines, MAIN), words(&whole, MAIN), "{place}");
                assert_eq!(words(&out.lines, "ses_child"), words(&whole, "ses_child"), "{place}");
                let seen = tools(&out.lines);
                let mut unique = seen.clone();
                unique.dedup();
                assert_eq!(seen, unique, "{place}");
                let ends = |all: &[String]| {
                    all.iter().filter(|tool| !tool.ends_with("\"running\"")).cloned().collect::<Vec<_>>()
                };
                assert_eq!(ends(&seen), ends(&tools(&whole)), "{place}");
            }
        }
    }
}

fn status(kind: &str) -> Value {
    json!({"type": "session.status", "properties": {"sessionID": MAIN, "status": {"type": kind}}})
}

fn fed(ledger: &mut BridgeLedger, events: &[Value]) -> Out {
    let mut out = Out::default();
    for event in events {
        ledger.event(event, Source::Stream, &mut out);
    }
    out
}

#[test]
fn an_idle_from_before_is_not_the_end() {
    let mut ledger = opened(&mut Out::default());
    let idle = json!({"type": "session.idle", "properties": {"sessionID": MAIN}});
    assert_eq!(fed(&mut ledger, &[status("idle"), idle.clone()]).lines, Vec::<Value>::new());
    let lines = fed(&mut ledger, &[status("busy"), status("idle"), idle]).lines;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["note"], json!({"turn": TURN, "error": null, "aborted": false}));
}

/// Seen with a real one: the message that was aborted is updated once more after the next prompt.
#[test]
fn an_error_of_older_work_does_not_fail_the_next() {
    let mut ledger = opened(&mut Out::default());
    let error = json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}});
    let message = |error: &Value| {
        let info = json!({"id": "msg_1", "role": "assistant", "sessionID": MAIN, "error": error});
        json!({"type": "message.updated", "properties": {"sessionID": MAIN, "info": info}})
    };
    let late = json!({"type": "session.error", "properties": {"sessionID": MAIN, "error": error}});
    fed(&mut ledger, &[status("busy"), message(&Value::Null), late.clone(), status("idle"), status("idle")]);
    ledger.prompting(MAIN, "turn_2", &mut Out::default());
    let events = [message(&error), late, status("busy"), message(&error), status("idle")];
    let lines = fed(&mut ledger, &events).lines;
    assert_eq!(lines[0]["note"], json!({"turn": "turn_2", "error": null, "aborted": false}));
}

#[test]
fn an_abort_before_the_work_began_is_repeated_when_it_begins() {
    let mut out = Out::default();
    let mut ledger = opened(&mut out);
    ledger.aborting(MAIN, &mut out);
    assert_eq!(fed(&mut ledger, &[status("busy")]).wishes, [BridgeWish::Abort { session: MAIN.to_owned() }]);
    // Given up before it began, and it begins after all.
    let mut ledger = opened(&mut out);
    ledger.aborting(MAIN, &mut out);
    let mut out = Out::default();
    ledger.unbegun(MAIN, &mut out);
    assert_eq!(out.lines[0]["note"]["aborted"], true);
    assert_eq!(fed(&mut ledger, &[status("busy")]).wishes, [BridgeWish::Abort { session: MAIN.to_owned() }]);
}

#[test]
fn a_prompt_that_fails_before_any_work_ends_with_its_error() {
    let mut ledger = opened(&mut Out::default());
    let error = json!({"name": "UnknownError", "data": {"message": "Agent not found"}});
    let event = json!({"type": "session.error", "properties": {"sessionID": MAIN, "error": error}});
    let out = fed(&mut ledger, &[event]);
    assert_eq!(out.lines, Vec::<Value>::new());
    let check = BridgeWish::Check { session: MAIN.to_owned(), turn: TURN.to_owned(), soon: true };
    assert_eq!(out.wishes, [check]);
    let mut out = Out::default();
    ledger.unbegun(MAIN, &mut out);
    assert_eq!(out.lines[0]["note"]["error"]["message"], "Agent not found");
}

#[test]
fn a_question_nobody_waits_for_any_more_is_withdrawn() {
    let mut ledger = opened(&mut Out::default());
    let asked = json!({"type": "permission.asked", "properties": {"id": "per_1", "sessionID": MAIN}});
    fed(&mut ledger, &[status("busy"), asked.clone(), asked]);
    let out = fed(&mut ledger, &[status("idle")]);
    assert_eq!(out.lines[0]["event"]["properties"]["reply"], "void");
    assert_eq!(out.lines[1]["event"]["type"], "session.idle");
    assert_eq!(out.wishes, [BridgeWish::Void { request: "per_1".to_owned(), question: false }]);
}

#[test]
fn a_child_that_is_set_to_work_again_is_announced_again() {
    let mut ledger = opened(&mut Out::default());
    let child = json!({"id": "ses_c", "parentID": MAIN, "title": "sub", "agent": "general"});
    let user = |id: &str, text: &str| {
        let info = json!({"id": id, "role": "user", "sessionID": "ses_c"});
        let part = json!({"id": format!("prt_{id}"), "messageID": id, "sessionID": "ses_c", "type": "text", "text": text});
        [
            json!({"type": "message.updated", "properties": {"sessionID": "ses_c", "info": info}}),
            json!({"type": "message.part.updated", "properties": {"sessionID": "ses_c", "part": part}}),
        ]
    };
    let created = json!({"type": "session.created", "properties": {"info": child}});
    let mut all = vec![created];
    all.extend(user("msg_1", "first"));
    all.extend(user("msg_2", "second"));
    let lines = fed(&mut ledger, &all).lines;
    let notes: Vec<&Value> = lines.iter().map(|line| &line["note"]).collect();
    assert_eq!(notes, [&json!({"prompt": "first"}), &json!({"prompt": "second", "again": true})]);
}

#[test]
fn arbitrary_events_do_no_harm() {
    let mut random = fastrand::Rng::with_seed(3);
    let all: Vec<Value> = STREAMS.iter().flat_map(|(_, stream)| events(stream)).collect();
    let mut out = Out::default();
    let mut ledger = opened(&mut out);
    for _ in 0..5_000 {
        let mut event = all[random.usize(..all.len())].clone();
        let fields = ["sessionID", "info", "part", "status", "delta", "partID"];
        event["properties"][fields[random.usize(..fields.len())]] =
            [json!(null), json!({}), json!(7)][random.usize(..3)].clone();
        ledger.event(&event, Source::Stream, &mut out);
        out = Out::default();
    }
}
