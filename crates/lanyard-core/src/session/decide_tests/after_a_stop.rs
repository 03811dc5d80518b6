//! FND-N5: a stop ends the run, not the conversation. An operator resumes, and the run that was stopped stays refused.

use super::*;
use crate::session::testing::{begins, call, complies};
use crate::session::{Call, Compliance, NoteStatus};

/// Stopped by a person while its run was at rest, with its run's end seen.
fn stopped() -> Given {
    in_state(StateName::BetweenTurn).with_run().after_each([stop(), run_ended(1, None)])
}

/// Stopped, resumed, and working with its second run.
fn resumed() -> Given {
    stopped().after_each([resume(), run_started(2), run_ready(2)])
}

/// A call that came with the token of this run.
fn call_of(run: u128, n: u32) -> Input {
    Input::Begins(Call { run: Some(run_id(run)), ..call(n) })
}

#[test]
fn fnd_n5_a_stopped_session_is_resumed_with_a_new_run() {
    story(
        in_state(StateName::BetweenTurn).with_run(),
        [stop(), run_ended(1, None), resume(), run_started(2), run_ready(2), start_turn(2)],
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: false, answered: false }
            between_turn, stop 1, run 1 ready
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            session.ended how=stopped
            between_turn -> stopped, stop 1
            > resume
            session.resumed
            run.wanted
            do Revive { ways: [] }
            stopped -> interrupted
            > run_started
            run.started agent=executor driver=acp number=2 run=run#2
            interrupted, run 2 starting
            > run_ready
            run.ready capabilities=[cancel, load, permissions] info={name=scripted protocol="acp 1" version=1.2.3} native=thread-7 run=run#2
            interrupted, run 2 ready
            > start_turn
            turn.started memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            interrupted -> executing, run 2 ready
        "#]],
    );
}

#[test]
fn fnd_n5_a_stopped_session_takes_no_prompt_and_says_how_to_go_on() {
    check(
        stopped(),
        start_turn(2),
        expect![[r#"
        refused session_ended: the session was stopped; resume it with `lanyard resume sess#1`, or fork it with `lanyard fork`
        command.refused code=session_ended command=start_turn state=stopped
        stopped, stop 1
    "#]],
    );
}

#[test]
fn fnd_n5_a_session_that_never_had_a_turn_begins() {
    let given = given([]).after_each([stop(), work_ended()]);
    check(
        given,
        resume(),
        expect![[r#"
        session.resumed
        stopped -> beginning
    "#]],
    );
}

/// An agent that is started for each turn has no process to bring back; the session is live again all the same.
#[test]
fn fnd_n5_an_agent_that_is_started_for_each_turn_waits_for_its_prompt() {
    check(
        stopped(),
        Command::Resume { ways: Vec::new(), per_turn: true },
        expect![[r#"
        session.resumed
        stopped -> interrupted
    "#]],
    );
}

/// Lanyard can take over a conversation whose id it knows, and no other.
#[test]
fn fnd_n5_a_conversation_of_another_host_is_resumed_by_its_id_only() {
    let external = NewSession {
        source: Some("external".into()),
        agent: Some("executor".into()),
        ..NewSession::default()
    };
    let ends = |given: Given| given.event(stop_at(StopLevel::Terminated)).after(work_ended());
    let unknown = ends(born(&external));
    assert!(!unknown.session.is_resumable());
    check(
        unknown,
        resume(),
        expect![[r#"
        refused session_host_run: the session's agent runs under its own host; Lanyard runs none of its turns; send words to the running agent with `lanyard guide`; the agent's own id of the conversation is not known, so Lanyard cannot resume it
        command.refused code=session_host_run command=resume state=stopped
        stopped, stop 3
    "#]],
    );
    let known = ends(born(&NewSession { native: Some("thread-7".into()), ..external }));
    assert!(known.session.is_resumable());
    check(
        known.clone(),
        resume(),
        expect![[r#"
        session.resumed
        session.driven by=lanyard
        run.wanted
        do Revive { ways: [] }
        stopped -> beginning
    "#]],
    );
    // Its old host has no run that could be told from others: all calls without one are refused.
    let mut taken = known.after_each([resume(), run_started(1)]);
    assert!(taken.told(&begins(1)).contains("level 3"), "{}", taken.told(&begins(2)));
    assert!(!taken.told(&call_of(1, 3)).contains("level 3"));
    // Nor does it come back over the connection of a run that is not the session's own.
    assert!(taken.told(&call_of(7, 4)).contains("level 3"));
}

/// What a daemon that was killed leaves of a resume: the run is wanted until it is ready, or its end is told.
#[test]
fn fnd_n5_a_run_is_wanted_until_it_has_an_outcome() {
    let back = stopped().after(resume());
    assert_eq!(back.session.run_wanted, Some(Vec::new()));
    let begun = back.clone().after(run_started(2));
    assert!(begun.session.run_wanted.is_some(), "it may still be lost with the daemon");
    for outcome in [run_ready(2), run_ended(2, None)] {
        assert_eq!(begun.clone().after(outcome).session.run_wanted, None);
    }
    assert_eq!(back.clone().after(complete()).session.run_wanted, None);
    assert_eq!(back.event(archived()).session.run_wanted, None);
}

/// S0-B06: level 3 is for ever, for the run it ended. Not even complying is done for the session any more.
#[test]
fn fnd_n5_the_run_that_was_stopped_stays_refused_and_the_next_is_not() {
    story(
        resumed().after(start_turn(2)),
        [
            call_of(1, 1),
            Input::Begins(Call { run: Some(run_id(1)), ..complies(Compliance::Complete) }),
            call_of(2, 2),
        ],
        expect![[r#"
            > call
            command.refused code=run_stopped command=tool_call state=executing
            not carried out: level 3 of the session
            executing, run 2 ready
            > call
            command.refused code=run_stopped command=tool_call state=executing
            not carried out: level 3 of the session
            executing, run 2 ready
            > call
            goes
            executing, run 2 ready
        "#]],
    );
}

#[test]
fn fnd_n5_every_run_that_was_stopped_stays_refused() {
    let mut given =
        resumed().after_each([stop(), run_ended(2, None), resume(), run_started(3), run_ready(3)]);
    for run in [1, 2] {
        assert!(given.told(&call_of(run, 9)).contains("level 3"), "run {run}");
    }
    assert!(!given.told(&call_of(3, 9)).contains("level 3"));
    assert_eq!(given.session.state.name(), StateName::Interrupted);
    assert!(given.session.stop.is_none());
}

/// However often a session is stopped and resumed, no run that was stopped acts for it, and the last one does.
#[test]
fn fnd_n5_twenty_stopped_runs_stay_refused() {
    const ROUNDS: u128 = 20;
    let mut given = in_state(StateName::BetweenTurn).with_run();
    for run in 1..=ROUNDS {
        let next = run + 1;
        given =
            given.after_each([stop(), run_ended(run, None), resume(), run_started(next), run_ready(next)]);
    }
    for run in 1..=ROUNDS {
        assert!(given.session.fence(Some(run_id(run))).is_some(), "run {run}");
        assert!(given.told(&call_of(run, 9)).contains("level 3"), "run {run}");
    }
    assert!(given.session.fence(Some(run_id(ROUNDS + 1))).is_none());
    assert!(!given.told(&call_of(ROUNDS + 1, 9)).contains("level 3"));
}

/// The parent heard of the stop, and hears of the resume: once, also when the notice of the stop is still on its way.
#[test]
fn fnd_n5_the_parent_of_a_resumed_child_is_to_be_told() {
    let parent = given([started(1)]).session;
    let child =
        given_created(created_under(&parent, &NewSession::default())).after_each([stop(), work_ended()]);
    let sent =
        |since| Input::from(Signal::NoticeSent { to: Some(session_id(1)), note: Some(note_id(3)), since });
    let of_the_stop = sent(Some(child.session.since));
    let mut late = child.clone().after(resume());
    assert!(late.session.notice_due);
    late = late.after(of_the_stop);
    assert!(late.session.notice_due, "what was told was the stop");
    assert!(!late.clone().after(sent(Some(late.session.since))).session.notice_due);
    story(
        child.after(sent(None)),
        [resume(), sent(None), sent(None)],
        expect![[r#"
            > resume
            session.resumed notify=true
            do TellParent
            stopped -> custom
            > notice_sent
            notice.sent note=note#3 to=sess#1
            custom
            > notice_sent
            custom
        "#]],
    );
    assert!(!stopped().after(resume()).session.notice_due, "nobody is above it");
}

/// A run that ended by itself was not stopped.
#[test]
fn fnd_n5_a_run_that_crashed_later_is_not_fenced() {
    let given = resumed().after_each([run_ended(2, InterruptCause::Crash), run_started(3)]);
    assert!(given.session.fence(Some(run_id(2))).is_none());
    assert!(given.session.fence(Some(run_id(1))).is_some());
}

/// S0-B17: the second stop is a stop like the first.
#[test]
fn fnd_n5_a_resumed_session_is_stopped_again() {
    story(
        resumed(),
        [stop(), stop(), run_ended(2, None), resume()],
        expect![[r#"
        > stop
        stop.requested level=1
        do StopWork { level: Graceful, scope: Session, executing: false, answered: false }
        interrupted, stop 1, run 2 ready
        > stop
        stop.raised from=1 to=2
        do StopWork { level: Immediate, scope: Session, executing: false, answered: false }
        interrupted, stop 2, run 2 ready
        > run_ended
        run.ended how={code=0 kind=exited} receipt={} run=run#2
        session.ended how=stopped
        interrupted -> stopped, stop 2
        > resume
        session.resumed
        run.wanted
        do Revive { ways: [] }
        stopped -> interrupted
    "#]],
    );
}

/// A subagent's process was its parent's: its session goes on with a run of its own.
#[test]
fn fnd_n5_a_subagent_is_resumed_in_a_run_of_its_own() {
    story(
        in_state(StateName::Executing).with_mirrored_run(),
        [stop(), work_ended(), resume(), run_started(2)],
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: true, answered: false }
            executing, stop 1, mirrored run 1 starting
            > work_ended
            turn.interrupted cause=user reason=sigterm turn=turn#1
            context.checkpoint position=4 reason=interruption
            session.ended how=stopped
            executing -> interrupted -> stopped, stop 1, mirrored run 1 starting
            > resume
            session.resumed
            session.driven by=lanyard
            run.wanted
            do Revive { ways: [] }
            stopped -> interrupted
            > run_started
            run.started agent=executor driver=acp number=2 run=run#2
            interrupted, run 2 starting
        "#]],
    );
}

#[test]
fn fnd_n5_an_archived_session_is_not_resumed_after_a_stop() {
    check(
        stopped().event(archived()),
        resume(),
        expect![[r#"
        refused session_archived: the session is archived; bring it back with `lanyard archive --undo`
        command.refused code=session_archived command=resume state=stopped
        stopped, stop 1, archived
    "#]],
    );
}

/// FND-M12, S0-B10: words that wait when a session ends are settled, whoever ends it.
#[test]
fn fnd_m12_guidance_that_waits_at_an_end_is_settled() {
    for end in [vec![stop(), run_ended(1, None)], vec![complete()], vec![fail()]] {
        let given = in_state(StateName::BetweenTurn).with_run().event(noted(1)).after_each(end);
        assert!(given.session.guidance.is_empty());
        let settled: Vec<NoteStatus> =
            given.session.guidance_settled.iter().map(|note| note.status).collect();
        assert_eq!(settled, [NoteStatus::Undelivered]);
    }
    check(
        in_state(StateName::BetweenTurn).with_run().event(noted(1)).after(stop()),
        run_ended(1, None),
        expect![[r#"
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            guidance.settled how=undelivered notes=[note#1]
            session.ended how=stopped
            between_turn -> stopped, stop 1
        "#]],
    );
}

/// FND-M12: a resume delivers none of them again; what went out to the old run is acknowledged by no call of the new one.
#[test]
fn fnd_m12_words_for_the_old_run_do_not_reach_the_new_one() {
    let mut given = in_state(StateName::Executing).with_run().event(noted(1)).event(noted(2));
    given = given.after(guidance_delivered(&[2])).after_each([stop(), run_ended(1, None), resume()]);
    given = given.after_each([run_started(2), run_ready(2), start_turn(2)]);
    let told = given.told(&call_of(2, 1));
    assert!(!told.contains("guidance"), "{told}");
    let settled: Vec<NoteStatus> = given.session.guidance_settled.iter().map(|note| note.status).collect();
    assert_eq!(settled, [NoteStatus::Undelivered, NoteStatus::Delivered]);
}
