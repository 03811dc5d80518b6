//! What a session may remember: set, inherited, taken into every turn (S3-25, S3-32, S3-33).

use super::*;
use crate::memory::{MemoryAsk, MemoryPolicy, tag};
use crate::session::Message;

fn ask(value: serde_json::Value) -> MemoryAsk {
    serde_json::from_value(value).unwrap()
}

fn set(value: serde_json::Value) -> Input {
    Command::SetMemory { ask: ask(value), above: None }.into()
}

fn with(mode: MemoryMode) -> Given {
    born(&NewSession { memory_mode: Some(mode), ..NewSession::default() })
}

fn message(turn: u128, delivery: Delivery, memory: serde_json::Value) -> Input {
    let message = Message {
        turn: turn_id(turn),
        note: note_id(turn),
        client_turn_id: None,
        prompt: "go".into(),
        parts: Vec::new(),
        delivery,
        memory: Some(ask(memory)),
        choice: crate::session::AgentChoice::default(),
        forced: false,
        take_over: false,
        review: None,
    };
    to_inbox(InboxChange::Send(Box::new(message)))
}

fn of_turn(given: &Given) -> MemoryPolicy {
    given.session.turn.as_ref().unwrap().memory.clone().unwrap()
}

/// S3-33: each field by itself; what is left out stays.
#[test]
fn the_policy_is_set_field_by_field() {
    story(
        with(MemoryMode::SessionOnly),
        [
            set(serde_json::json!({ "mode": "selective", "allow": ["API"] })),
            set(serde_json::json!({ "tags": ["dev_test"] })),
            set(serde_json::json!({ "tags": ["dev_test"] })),
            set(serde_json::json!({ "session_memory": false })),
            set(serde_json::json!({ "allow": ["a,b"] })),
        ],
        expect![[r#"
            > set_memory
            session.memory_set policy={allow=[api] mode=selective}
            beginning
            > set_memory
            session.memory_set policy={allow=[api] mode=selective tags=[dev_test]}
            beginning
            > set_memory
            beginning
            > set_memory
            session.memory_set policy={allow=[api] mode=selective session_memory=false tags=[dev_test]}
            beginning
            > set_memory
            refused memory_tag_bad: `a,b` cannot be a tag; use letters, digits and - _ . : / +, at most 64 characters
            beginning
        "#]],
    );
}

/// A child may be given more only up to what those above it have.
#[test]
fn a_session_is_not_allowed_more_than_those_above_it() {
    let above = Some(Box::new(MemoryPolicy::of(MemoryMode::SessionOnly)));
    let ask = ask(serde_json::json!({ "mode": "full" }));
    check(
        with(MemoryMode::Off),
        Command::SetMemory { ask, above },
        expect![[r#"
            refused memory_policy_wider: the memory policy would allow more than that of a session above does; a policy is only ever tightened below; ask for less, or widen the one above first
            beginning
        "#]],
    );
}

/// S3-32: by value, in every turn, whichever way it begins.
#[test]
fn every_turn_carries_the_policy_it_began_with() {
    let given = with(MemoryMode::Full).after(start_turn(1));
    assert_eq!(of_turn(&given), MemoryPolicy::of(MemoryMode::Full));
    // What waits takes the policy of the moment it starts, and what it asked for.
    let given = given.after(message(2, Delivery::Queue, serde_json::json!({ "tags": ["run-2"] })));
    let given = given.after(set(serde_json::json!({ "mode": "session_only" })));
    assert_eq!(given.session.memory().mode, MemoryMode::SessionOnly, "less counts at once");
    let given = given.after(turn_finished());
    let turn = of_turn(&given);
    assert_eq!((turn.mode, tag::joined(&turn.tags)), (MemoryMode::SessionOnly, "run-2".to_owned()));
    // More does not, in a turn that began with less.
    let given = given.after(set(serde_json::json!({ "mode": "full" })));
    assert_eq!(given.session.memory().mode, MemoryMode::SessionOnly);
}

/// S3-32: an answered question goes on in the turn that asked, with the policy that turn began with.
#[test]
fn a_turn_that_waited_for_an_answer_has_the_policy_it_began_with() {
    let begun =
        with(MemoryMode::Full).after(message(1, Delivery::Reject, serde_json::json!({ "mode": "off" })));
    let policy = of_turn(&begun);
    assert_eq!(policy.mode, MemoryMode::Off);
    let asked = begun.after(run_started(1)).after(gate_asked(1, 1));
    let answered = asked.after(answer(1, "allow"));
    assert_eq!(of_turn(&answered), policy);
}

/// S3-B08: asked for more, it is refused and not cut down in silence.
#[test]
fn a_message_cannot_ask_for_more_than_its_session_may() {
    check(
        with(MemoryMode::SessionOnly),
        message(1, Delivery::Reject, serde_json::json!({ "mode": "full" })),
        expect![[r#"
            refused memory_policy_wider: the memory policy would allow more than the session's does; a policy is only ever tightened below; ask for less, or widen the one above first
            beginning
        "#]],
    );
    check(
        with(MemoryMode::SessionOnly).after(start_turn(1)),
        message(2, Delivery::Queue, serde_json::json!({ "mode": "full" })),
        expect![[r#"
            refused memory_policy_wider: the memory policy would allow more than the session's does; a policy is only ever tightened below; ask for less, or widen the one above first
            executing
        "#]],
    );
}

/// Inherited whole, and only ever tightened.
#[test]
fn a_child_inherits_the_policy_and_tightens_it() {
    let parent = NewSession {
        memory: Some(ask(serde_json::json!({
            "mode": "selective", "allow": ["api", "design"], "tags": ["dev_test"]
        }))),
        ..NewSession::default()
    };
    let parent = born(&parent).session;
    let child = |memory: Option<serde_json::Value>| {
        let new = NewSession { memory: memory.map(ask), ..NewSession::default() };
        let made = create(&new, "ann", Some((&parent, &Lineage::default())), &Limits::default()).unwrap();
        let ChangeEvent::Created(created) = made else { panic!() };
        created.policy.memory
    };
    assert_eq!(child(None), parent.policy.memory);
    let wider =
        child(Some(serde_json::json!({ "mode": "full", "tags": ["mine"], "allow": ["api", "other"] })));
    assert_eq!(wider.mode, MemoryMode::Selective);
    assert_eq!(tag::joined(&wider.tags), "dev_test, mine");
    assert!(!wider.is_wider_than(&parent.policy.memory));
}

/// S3-B08: a session whose stored policy cannot be read is there, and remembers nothing.
#[test]
fn an_unreadable_stored_policy_closes_the_memory_and_keeps_the_session() {
    let session = with(MemoryMode::Full).session;
    for (field, value) in [
        ("memory_mode", serde_json::json!("everything")),
        ("memory_mode", serde_json::json!(7)),
        ("memory", serde_json::json!({ "mode": "full", "tags": "x" })),
    ] {
        let mut stored = serde_json::to_value(&session).unwrap();
        stored["policy"][field] = value.clone();
        let read: Session = serde_json::from_value(stored).unwrap();
        assert_eq!(read.policy.memory.mode, MemoryMode::Off, "{value}");
        assert!(read.policy.memory.unreadable.is_some(), "{value}");
        let again: Session = serde_json::from_value(serde_json::to_value(&read).unwrap()).unwrap();
        assert_eq!(again, read);
    }
}
