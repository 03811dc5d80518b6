//! Calls that may be a subagent's: they share the session's address, and nothing says whose they are.

use super::*;
use crate::session::calls::{Call, CallerProof};
use crate::session::testing::{begins, call, ends, notify};
use crate::session::{NoteStatus, StopScope};

fn external() -> Given {
    born(&NewSession { source: Some("external".into()), ..NewSession::default() })
}

fn anyones(n: u32) -> Call {
    Call { proof: CallerProof::Uncertain, ..call(n) }
}

fn anyone_calls(n: u32) -> [Input; 2] {
    [Input::Begins(anyones(n)), Input::Ends(anyones(n))]
}

/// FND-R2: words for the parent are neither carried nor acknowledged by a call that may be its subagent's.
#[test]
fn fnd_r2_an_uncertain_call_carries_nothing_and_acknowledges_nothing() {
    let mut given = external().after(guide(1, "look there")).after(notify(2)).after_each(anyone_calls(1));
    let pending =
        |given: &Given| given.session.guidance.iter().all(|note| note.status == NoteStatus::Pending);
    assert!(pending(&given) && given.session.guidance.len() == 2);
    // The parent's own next call carries both.
    given = given.after(begins(2)).after(ends(2));
    assert!(given.session.guidance.iter().all(|note| note.status == NoteStatus::Delivered));
    given = given.after_each(anyone_calls(3));
    assert_eq!(given.session.guidance.len(), 2, "a subagent's call acknowledges nothing");
    given = given.after(begins(4));
    assert!(given.session.guidance.is_empty());
    check(
        external().after(guide(1, "look there")),
        Input::Ends(anyones(1)),
        expect![[r#"
        tool.relayed bytes=0 call="call 1" channel=mcp is_error=false server=ev took_ms=0 tool=echo uncertain=true
        answered as it is
        beginning
    "#]],
    );
}

/// FND-R2: a stop of the session alone is not told to its subagent, and does not rise by the subagent's calls.
#[test]
fn fnd_r2_a_stop_of_the_session_alone_does_not_reach_its_subagent() {
    let mut given = external().after(stop());
    for n in 1..6 {
        given = given.after_each(anyone_calls(n));
    }
    let held = given.session.stop.as_ref().unwrap();
    assert_eq!((u8::from(held.level), held.told), (1, 0));
    let now = |scope| Input::from(Command::Stop { reason: None, scope, now: true });
    check(
        external().after(now(StopScope::Session)),
        Input::Begins(anyones(1)),
        expect![[r#"
        goes
        beginning, stop 2
    "#]],
    );
    // One of the whole family reaches whoever calls, and counts nothing.
    check(
        external().after(now(StopScope::Subtree)),
        Input::Begins(anyones(1)),
        expect![[r#"
        not carried out: level 2 of the subtree
        beginning, stop 2
    "#]],
    );
}

/// FND-R2: a subagent's call says nothing about which calls of the session come by.
#[test]
fn fnd_r2_an_uncertain_call_is_not_counted_as_the_sessions_own() {
    let given = born(&NewSession::default()).after_each(anyone_calls(1));
    let session = &given.session;
    assert_eq!((session.hears, session.seen_calls.mcp, &session.last_tool_call), (false, false, &None));
}

/// FND-R2: while a call of such a tool is open, a subagent may be at work on the same connection.
#[test]
fn fnd_r2_open_calls_that_spawn_subagents_are_remembered() {
    let called = |call: &str, tool: &str| {
        Input::from(Signal::ToolCalled {
            call: call.into(),
            tool: tool.into(),
            arguments: serde_json::Value::Null,
        })
    };
    let returned = |call: &str| {
        let content = serde_json::Value::Null;
        Input::from(Signal::ToolReturned { call: call.into(), is_error: false, content })
    };
    let given =
        given([started(1)]).after(called("a", "Task")).after(called("b", "bash")).after(called("c", "task"));
    assert_eq!(given.session.open_spawns, ["a", "c"]);
    // As Gemini CLI tells it.
    let gemini = given.clone().after(called("invoke_agent__call_1", "Delegating to agent 'generalist'"));
    assert_eq!(gemini.session.open_spawns, ["a", "c", "invoke_agent__call_1"]);
    let given = given.after(returned("a")).after(returned("b"));
    assert_eq!(given.session.open_spawns, ["c"]);
    let given = given.after(Input::from(Signal::TurnFinished {
        turn: None,
        outcome: crate::session::TurnOutcome::Completed,
        reason: None,
    }));
    assert!(given.session.open_spawns.is_empty());
}
