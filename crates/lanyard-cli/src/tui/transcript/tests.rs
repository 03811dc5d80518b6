//! The transcript as a reader sees it.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::tui::testing::event;

fn shown(transcript: &Transcript, height: usize) -> String {
    transcript.visible(height).iter().fold(String::new(), |text, row| text + row.text + "\n")
}

fn story() -> Vec<Value> {
    [
        (
            "turn.started",
            json!({"turn": "turn_01m7n5djg0fayvh8t5cxyjkdnt", "prompt": "fix it", "prompt_hash": "x", "opening": {"kind": "new"}}),
        ),
        ("thought", json!({"text": "hm, a test fails"})),
        ("message", json!({"role": "agent", "text": "Looking at the "})),
        ("message", json!({"role": "agent", "text": "failing test."})),
        ("tool.called", json!({"call": "1", "tool": "bash", "arguments": {"command": "cargo test"}})),
        ("tool.returned", json!({"call": "1", "is_error": true, "content": "no such file"})),
        ("tool.called", json!({"call": "2", "tool": "read", "arguments": {"path": "src/a.rs"}})),
        ("no.such.event", json!({"text": "from a later version"})),
        ("turn.queued", json!({"turn": "turn_01m7n5djg0fayvh8t5cxyjkdnv", "prompt": "and the docs", "delivery": "queue"})),
        ("turn.finished", json!({"turn": "turn_01m7n5djg0fayvh8t5cxyjkdnt", "outcome": "completed"})),
    ]
    .into_iter()
    .zip(1..)
    .map(|((kind, data), seq)| event(seq, kind, &data))
    .collect()
}

fn told(width: usize) -> Transcript {
    let mut transcript = Transcript { layout: Layout { width, all_open: false }, ..Transcript::default() };
    for raw in story() {
        transcript.live(raw["seq"].as_u64().unwrap(), &raw);
    }
    transcript
}

fn check(transcript: &Transcript, height: usize, expected: &Expect) {
    expected.assert_eq(&shown(transcript, height));
}

#[test]
fn a_turn_reads_from_prompt_to_end_and_an_unknown_event_is_passed_over() {
    check(
        &told(60),
        20,
        &expect![[r"

            > fix it
            ┊ hm, a test fails
            Looking at the failing test.
            ▸ bash cargo test: failed, no such file
            · read src/a.rs …
            ── completed after 9s
        "]],
    );
}

/// FND-N8.
#[test]
fn fnd_n8_messages_of_different_ids_stand_apart_and_a_preview_goes_on_with_its_own() {
    let mut transcript =
        Transcript { layout: Layout { width: 40, all_open: false }, ..Transcript::default() };
    let said = |seq, id: &str, text: &str| {
        event(seq, "message", &json!({"role": "agent", "text": text, "message_id": id}))
    };
    for (seq, (id, text)) in (1..).zip([("m1", "Looking"), ("m1", " at it."), ("m2", "Found")]) {
        transcript.live(seq, &said(seq, id, text));
    }
    transcript.preview(false, " it.", Some("m2"));
    let expected = expect![[r"
        Looking at it.

        Found it.
    "]];
    check(&transcript, 20, &expected);
    transcript.live(4, &said(4, "m2", " it."));
    check(&transcript, 20, &expected);
    transcript.preview(false, "Done.", Some("m3"));
    check(
        &transcript,
        20,
        &expect![[r"
            Looking at it.

            Found it.

            Done.
        "]],
    );
}

/// S3-B05: what arrives again after a reconnect is shown once.
#[test]
fn an_event_counts_once() {
    let mut transcript = told(60);
    let before = shown(&transcript, 20);
    for raw in story() {
        transcript.live(raw["seq"].as_u64().unwrap(), &raw);
    }
    assert_eq!(shown(&transcript, 20), before);
}

#[test]
fn a_preview_goes_on_in_the_same_line_and_the_event_takes_its_place() {
    let mut transcript =
        Transcript { layout: Layout { width: 40, all_open: false }, ..Transcript::default() };
    transcript.live(1, &event(1, "message", &json!({"role": "agent", "text": "I am "})));
    transcript.preview(false, "goi", None);
    transcript.preview(false, "going", None);
    check(
        &transcript,
        5,
        &expect![[r"
        I am going
    "]],
    );
    assert_eq!(transcript.total(), 1);
    transcript.live(2, &event(2, "message", &json!({"role": "agent", "text": "going on."})));
    check(
        &transcript,
        5,
        &expect![[r"
        I am going on.
    "]],
    );
    transcript.preview(true, "why not", None);
    check(
        &transcript,
        5,
        &expect![[r"
        I am going on.
        ┊ why not
    "]],
    );
}

#[test]
fn older_events_come_before_and_a_call_finds_its_result() {
    let all = story();
    let mut transcript =
        Transcript { layout: Layout { width: 60, all_open: false }, ..Transcript::default() };
    transcript.join(5);
    for raw in &all[5..] {
        transcript.live(raw["seq"].as_u64().unwrap(), raw);
    }
    assert_eq!(transcript.older(), Some((0, 5)));
    check(
        &transcript,
        3,
        &expect![[r"
            ▸ an earlier call: failed, no such file
            · read src/a.rs …
            ── completed
        "]],
    );
    transcript.prepend(&all[..5]);
    assert_eq!(transcript.older(), None);
    check(
        &transcript,
        20,
        &expect![[r"

            > fix it
            ┊ hm, a test fails
            Looking at the failing test.
            ▸ bash cargo test: failed, no such file
            · read src/a.rs …
            ── completed
        "]],
    );
}

#[test]
fn whoever_scrolled_up_is_not_moved_by_what_comes() {
    let mut transcript = told(60);
    assert!(!transcript.up(2, 4));
    let before = shown(&transcript, 4);
    for seq in 11..30 {
        transcript.live(seq, &event(seq, "file.changed", &json!({"path": format!("src/{seq}.rs")})));
    }
    transcript.preview(false, "more", None);
    assert_eq!(shown(&transcript, 4), before);
    assert!(transcript.up(1_000, 4));
    assert!(transcript.down(1_000));
}

#[test]
fn memory_is_bounded_and_what_was_let_go_is_asked_for_again() {
    let line = |seq: u64| event(seq, "file.changed", &json!({"path": format!("src/{seq}.rs")}));
    let bound = u64::try_from(ENTRIES_MAX).unwrap();
    let mut transcript =
        Transcript { layout: Layout { width: 60, all_open: false }, ..Transcript::default() };
    let last = 3 * bound;
    for seq in 1..=last {
        transcript.live(seq, &line(seq));
    }
    assert_eq!(transcript.entries.len(), ENTRIES_MAX);
    assert_eq!(transcript.older(), Some((last - bound - PAGE_EVENTS, PAGE_EVENTS)));
    transcript.up(usize::MAX / 2, 10);
    let page: Vec<Value> = (last - bound - PAGE_EVENTS + 1..=last - bound).map(line).collect();
    transcript.prepend(&page);
    assert_eq!(transcript.entries.len(), ENTRIES_MAX);
    assert!(!transcript.is_live());
    // What is said meanwhile is not lost: it is read when one comes down again.
    transcript.live(last + 1, &line(last + 1));
    assert_eq!(transcript.newer(), Some(last - PAGE_EVENTS));
    let page: Vec<Value> = (last - PAGE_EVENTS + 1..=last + 1).map(line).collect();
    transcript.append(&page);
    assert!(transcript.is_live());
    transcript.down(usize::MAX);
    check(
        &transcript,
        1,
        &expect![[r"
        · file src/9001.rs
    "]],
    );
    transcript.replace(&page);
    assert!(transcript.is_live());
    assert_eq!(transcript.entries.len(), page.len());
}
