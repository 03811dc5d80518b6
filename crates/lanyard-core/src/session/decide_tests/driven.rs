//! Who runs a session's agent: a fact of the record, never guessed from an agent's name.

use super::*;
use crate::session::event::Created;
use crate::session::testing::{begins, ends};
use crate::session::{DrivenBy, Message};

/// A conversation of a terminal whose hook told of it, under an agent's name that the config may have too.
fn hooked() -> Given {
    let (agent, source) = (Some("claude".into()), Some("external".into()));
    born(&NewSession { agent, source, native: Some("native-1".into()), ..NewSession::default() })
}

fn gateway_only() -> Given {
    born(&NewSession { source: Some("external".into()), ..NewSession::default() })
}

fn taking_over(turn: u128) -> Input {
    let message = Message {
        turn: turn_id(turn),
        note: note_id(turn),
        client_turn_id: None,
        prompt: "go on".into(),
        parts: Vec::new(),
        delivery: Delivery::Reject,
        memory: None,
        choice: crate::session::AgentChoice::default(),
        forced: false,
        take_over: true,
        review: None,
    };
    to_inbox(InboxChange::Send(Box::new(message)))
}

/// FND-R1.
#[test]
fn fnd_r1_who_runs_a_session_is_set_at_its_birth_and_by_events() {
    let of = |new: &NewSession| born(new).session.driver();
    let named = |agent: &str| NewSession { agent: Some(agent.into()), ..NewSession::default() };
    assert_eq!(of(&named("claude")), DrivenBy::Lanyard);
    assert_eq!(of(&NewSession::default()), DrivenBy::Nobody);
    assert_eq!(of(&NewSession { observed: true, ..named("explore") }), DrivenBy::Parent);
    assert_eq!(of(&NewSession { driven_by: Some(DrivenBy::Host), ..named("claude") }), DrivenBy::Host);
    let given = hooked();
    assert_eq!((given.session.driver(), given.session.hears), (DrivenBy::Host, true));
    assert_eq!(given.after(run_started(1)).session.driver(), DrivenBy::Lanyard);
    assert_eq!(given_mirrored().session.driver(), DrivenBy::Parent);
}

fn given_mirrored() -> Given {
    given([]).after(mirrored_run_started(1))
}

/// FND-R1: logs and records from before the fact was written are read by what they hold.
#[test]
fn fnd_r1_older_records_are_read_by_what_they_hold() {
    let mut old = hooked().session;
    old.driven_by = None;
    assert_eq!(old.driver(), DrivenBy::Host);
    let mut old = hooked().after(run_started(1)).session;
    old.driven_by = None;
    assert_eq!(old.driver(), DrivenBy::Lanyard);
    let mut old = given_mirrored().session;
    old.driven_by = None;
    assert_eq!(old.driver(), DrivenBy::Parent);
    let first = &hooked().log[0];
    let mut written = serde_json::to_value(first).unwrap();
    let data = written["data"].as_object_mut().unwrap();
    data.remove("driven_by").unwrap();
    data.remove("native").unwrap();
    let read: crate::session::Envelope = serde_json::from_value(written).unwrap();
    let Event::Change(ChangeEvent::Created(created)) = &read.event else { panic!("{read:?}") };
    let Created { driven_by, native, .. } = &**created;
    assert_eq!((driven_by, native), (&None, &None));
    let session = Session::born(&read).unwrap();
    assert_eq!((session.driver(), session.hears), (DrivenBy::Host, true));
}

/// FND-R1, FND-R11: a turn for an agent that its own host runs is refused at once, and nothing waits.
#[test]
fn fnd_r11_a_turn_for_an_agent_of_another_host_is_refused() {
    for turn in [start_turn(1), send(1, Delivery::Queue), send(1, Delivery::Reject)] {
        let told = gateway_only().told(&turn);
        assert!(told.starts_with("refused session_host_run: "), "{told}");
        assert!(told.ends_with("command=start_turn state=beginning\nbeginning\n"), "{told}");
    }
    assert!(gateway_only().after(send(1, Delivery::Queue)).session.inbox.is_empty());
    check(
        gateway_only(),
        taking_over(1),
        expect![[r#"
        refused session_host_run: the session's agent runs under its own host; Lanyard runs none of its turns; send words to the running agent with `lanyard guide`; the agent's own id of the conversation is not known, so Lanyard cannot resume it
        command.refused code=session_host_run command=start_turn state=beginning
        beginning
    "#]],
    );
    check(
        gateway_only(),
        resume(),
        expect![[r#"
        refused session_host_run: the session's agent runs under its own host; Lanyard runs none of its turns; send words to the running agent with `lanyard guide`; the agent's own id of the conversation is not known, so Lanyard cannot resume it
        command.refused code=session_host_run command=resume state=beginning
        beginning
    "#]],
    );
}

/// FND-R1: asked for, Lanyard resumes the conversation by the agent's own id, and the log says so.
#[test]
fn fnd_r1_a_conversation_is_taken_over_only_when_that_is_asked_for() {
    check(
        hooked(),
        send(1, Delivery::Reject),
        expect![[r#"
        refused session_host_run: the session's agent runs under its own host; Lanyard runs none of its turns; send words to the running agent with `lanyard guide`; to have Lanyard resume the conversation in a run of its own, use `lanyard send --resume`
        command.refused code=session_host_run command=start_turn state=beginning
        beginning
    "#]],
    );
    check(
        hooked(),
        taking_over(1),
        expect![[r#"
        session.driven by=lanyard
        turn.started memory={mode=session_only} opening={kind=new} prompt="go on" turn=turn#1
        do RunTurn { turn: turn#1 }
        beginning -> executing
    "#]],
    );
    check(
        hooked(),
        resume(),
        expect![[r#"
        session.driven by=lanyard
        run.wanted
        do Revive { ways: [] }
        beginning
    "#]],
    );
    let taken = hooked().after(taking_over(1)).session;
    assert_eq!((taken.driver(), taken.native.as_deref()), (DrivenBy::Lanyard, Some("native-1")));
}

/// FND-R1: a restart of the daemon does not end what another host runs, stop pending or not.
#[test]
fn fnd_r1_a_restart_does_not_confirm_the_stop_of_an_agent_of_another_host() {
    let mut given = hooked().after(stop());
    given.session.hears = false;
    check(
        given,
        Signal::DaemonRestarted,
        expect![[r#"
            beginning, stop 1
        "#]],
    );
}

/// FND-R1: three calls that do not comply, whatever the config calls its agents.
#[test]
fn fnd_r1_a_hooked_agent_goes_through_the_whole_ladder() {
    let mut given = hooked().after(begins(0)).after(ends(0)).after(stop());
    let level = |given: &Given| given.session.stop.as_ref().map(|stop| u8::from(stop.level));
    for (n, expected) in [(1, 1), (2, 2), (3, 3)] {
        given = given.after(begins(n)).after(ends(n));
        assert_eq!(level(&given), Some(expected));
    }
}
