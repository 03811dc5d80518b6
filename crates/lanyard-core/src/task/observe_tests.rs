//! What follows from looking at a task's session, row by row: what is new, and what is to be done.

#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes snapshots with them")]

use expect_test::{Expect, expect};

use crate::session::{InterruptCause, State, TurnStatus};
use crate::task::event::TaskEvent;
use crate::task::health::Remedy;
use crate::task::record::{TaskEnding, TaskState, WorkerKind};
use crate::task::testing::{
    Given, aligned, lines, pending, pending_as, run_id, seen, seen_at_work, seen_in, seen_interrupted,
    seen_new, short_ids,
};
use crate::task::{Kin, SeenRun, SeenSession, TaskWant, observe, want};

type Row = (&'static str, Given, Option<SeenSession>);

/// One look at each: what is new, and what is wanted once that is written down.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a test says `expect![[…]]` and no more")]
fn check(rows: Vec<Row>, expect: Expect) {
    let look = |(name, given, seen): Row| {
        let (events, wanted) = look(&given, seen.as_ref(), Kin::default());
        vec![name.to_owned(), lines(&events), wanted]
    };
    expect.assert_eq(&aligned(&rows.into_iter().map(look).collect::<Vec<_>>()));
}

fn look(given: &Given, seen: Option<&SeenSession>, kin: Kin) -> (Vec<TaskEvent>, String) {
    let events = observe(&given.task, seen, kin);
    let after = events.iter().cloned().fold(given.clone(), Given::event);
    let wanted = want(&after.task, seen).map_or("·".to_owned(), |want| word(&want));
    (events, wanted)
}

fn word(want: &TaskWant) -> String {
    short_ids(&format!("{want:?}").replace("Some(", "(").replace('"', "'"))
}

fn run(number: u128, live: bool) -> SeenRun {
    SeenRun { id: run_id(number), live }
}

#[test]
fn a_worker_is_brought_to_work() {
    let deploying = || pending().deploying();
    check(
        vec![
            ("pending", pending(), None),
            ("deploying, no session", deploying(), None),
            ("deploying, a new session", deploying(), Some(seen_new())),
            ("deploying, told", deploying(), Some(seen_at_work())),
            ("deploying, told and done already", deploying(), Some(seen())),
            (
                "deploying, stopped before it was told",
                deploying(),
                Some(SeenSession { stop_level: Some(1), ..seen_in(State::Stopped) }),
            ),
            ("running, executing", pending().running(), Some(seen_at_work())),
            (
                "resumed",
                pending().running().paused().event(TaskEvent::Resumed { turns: 1 }),
                Some(seen_interrupted(InterruptCause::User)),
            ),
            (
                "resumed, told",
                pending().running().paused().event(TaskEvent::Resumed { turns: 0 }),
                Some(seen_at_work()),
            ),
            ("restarted", restarted(), Some(seen_interrupted(InterruptCause::Crash))),
            ("running, its session vanished", pending().running(), None),
            ("running and reported, its session vanished", pending().running().reported(), None),
        ],
        expect![[r#"
            pending                                     ·                                      ·
            deploying, no session                       ·                                      Create
            deploying, a new session                    ·                                      Prompt { first: true }
            deploying, told                             run_seen process=run#1 run=1; started  ·
            deploying, told and done already            started                                ·
            deploying, stopped before it was told       ·                                      Settle { state: Cancelled, reason: ('stopped') }
            running, executing                          run_seen process=run#1 run=1           ·
            resumed                                     ·                                      Prompt { first: false }
            resumed, told                               run_seen process=run#1 run=1; started  ·
            restarted                                   ·                                      Prompt { first: false }
            running, its session vanished               ·                                      Settle { state: Failed, reason: ('its session is gone') }
            running and reported, its session vanished  ·                                      Settle { state: Completed, reason: None }
        "#]],
    );
}

fn restarted() -> Given {
    let remedied =
        TaskEvent::Remedied { remedy: Remedy::Restart, why: "its agent was lost".to_owned(), turns: 1 };
    pending().interrupted(InterruptCause::Crash).event(remedied)
}

/// S4-B01: each process is a run with a number.
#[test]
fn a_new_process_is_a_new_run() {
    let seen_run = |number, live| Some(SeenSession { run: Some(run(number, live)), ..seen_at_work() });
    let known = || pending().running().event(TaskEvent::RunSeen { run: 1, process: run_id(1) });
    check(
        vec![
            ("the first process", pending().running(), seen_run(1, true)),
            ("the same", known(), seen_run(1, true)),
            ("another", known(), seen_run(2, true)),
            ("another that is gone", known(), seen_run(2, false)),
        ],
        expect![[r#"
            the first process     run_seen process=run#1 run=1  ·
            the same              ·                             ·
            another               run_seen process=run#2 run=2  ·
            another that is gone  ·                             ·
        "#]],
    );
}

/// A background worker is done when its turn is, unless something still waits for it.
#[test]
fn a_turn_that_ends_ends_a_background_task() {
    let running = || pending().running();
    let with = |status, reason: Option<&str>| {
        Some(SeenSession { turn: Some((status, reason.map(str::to_owned))), ..seen() })
    };
    check(
        vec![
            ("completed", running(), Some(seen())),
            ("completed, said nothing", running(), Some(SeenSession { said: None, ..seen() })),
            ("failed", running(), with(TurnStatus::Failed, Some("no credit"))),
            ("failed, no reason", running(), with(TurnStatus::Failed, None)),
            ("refused", running(), with(TurnStatus::Refused, None)),
            ("completed, now idle", running(), Some(seen_in(State::Idle))),
            ("a message waits", running(), Some(SeenSession { waiting: 1, ..seen() })),
            ("chat", pending_as(WorkerKind::Chat).running(), Some(seen())),
            ("chat, failed", pending_as(WorkerKind::Chat).running(), with(TurnStatus::Failed, None)),
            ("external", pending_as(WorkerKind::External).running(), Some(seen())),
            ("external, deploying", pending_as(WorkerKind::External).deploying(), Some(seen_new())),
        ],
        expect![[r#"
            completed                reported result={by_turn_end=true summary="it works"}                                   EndSession { completed: true }
            completed, said nothing  reported result={by_turn_end=true summary="its agent ended its turn and said nothing"}  EndSession { completed: true }
            failed                   end_asked ending={how=fail} reason="no credit"                                          EndSession { completed: false }
            failed, no reason        end_asked ending={how=fail} reason="its agent's turn failed"                            EndSession { completed: false }
            refused                  end_asked ending={how=fail} reason="its agent's turn failed"                            EndSession { completed: false }
            completed, now idle      reported result={by_turn_end=true summary="it works"}                                   EndSession { completed: true }
            a message waits          ·                                                                                       ·
            chat                     ·                                                                                       ·
            chat, failed             ·                                                                                       ·
            external                 ·                                                                                       ·
            external, deploying      started                                                                                 ·
        "#]],
    );
    for kin in [Kin { open_children: 1, mail: 0 }, Kin { open_children: 0, mail: 1 }] {
        assert_eq!(observe(&running().task, Some(&seen()), kin), [], "{kin:?}");
    }
}

#[test]
fn what_is_cut_short_is_interrupted_and_what_was_lost_is_brought_back() {
    let running = || pending().running();
    let crashed = || pending().interrupted(InterruptCause::Crash);
    let mut rows: Vec<Row> = Vec::new();
    for cause in InterruptCause::ALL {
        rows.push((cause.as_str(), running(), Some(seen_interrupted(cause))));
    }
    let idle = |status| Some(SeenSession { turn: Some((status, None)), ..seen_in(State::Idle) });
    let chat = || pending_as(WorkerKind::Chat).running();
    let resumed = |kind| pending_as(kind).running().paused().event(TaskEvent::Resumed { turns: 1 });
    rows.extend(vec![
        ("chat, crash", chat(), Some(seen_interrupted(InterruptCause::Crash))),
        ("cancelled, then idle before anybody looked", running(), idle(TurnStatus::Cancelled)),
        ("lost, then idle before anybody looked", running(), idle(TurnStatus::Uncertain)),
        ("cut, then idle before anybody looked", running(), idle(TurnStatus::Interrupted)),
        ("lost, idle since", crashed(), idle(TurnStatus::Uncertain)),
        ("lost, and somebody talks to it", crashed(), Some(seen_at_work())),
        ("lost, and went on while nobody looked", crashed(), Some(seen())),
        ("external, resumed", resumed(WorkerKind::External), Some(seen_interrupted(InterruptCause::User))),
        (
            "external, resumed and at work",
            resumed(WorkerKind::External).event(TaskEvent::Started {}),
            Some(seen_interrupted(InterruptCause::User)),
        ),
        ("reported, then lost", running().reported(), Some(seen_interrupted(InterruptCause::Crash))),
    ]);
    check(
        rows,
        expect![[r#"
            user                                        interrupted cause=user                 ·
            crash                                       interrupted cause=crash                Restart
            timeout                                     interrupted cause=timeout              Restart
            host_lost                                   interrupted cause=host_lost            Restart
            limit                                       interrupted cause=limit                ·
            chat, crash                                 interrupted cause=crash                ·
            cancelled, then idle before anybody looked  interrupted cause=user                 ·
            lost, then idle before anybody looked       interrupted cause=crash                Restart
            cut, then idle before anybody looked        interrupted cause=limit                ·
            lost, idle since                            ·                                      Restart
            lost, and somebody talks to it              run_seen process=run#1 run=1; started  ·
            lost, and went on while nobody looked       started                                ·
            external, resumed                           started                                ·
            external, resumed and at work               ·                                      ·
            reported, then lost                         ·                                      EndSession { completed: true }
        "#]],
    );
}

#[test]
fn an_end_that_was_asked_for_is_brought_about() {
    let ending = |ending| pending().running().asked(ending, "enough");
    let cancel = |now| ending(TaskEnding::Cancel { now });
    let at_level = |level| Some(SeenSession { stop_level: Some(level), ..seen_at_work() });
    check(
        vec![
            ("cancel", cancel(false), Some(seen_at_work())),
            ("cancel, pressed", cancel(false), at_level(1)),
            ("cancel now", cancel(true), Some(seen_at_work())),
            ("cancel now, pressed gently", cancel(true), at_level(1)),
            ("cancel now, pressed", cancel(true), at_level(2)),
            (
                "cancel, no session was made yet",
                pending().deploying().asked(TaskEnding::Cancel { now: false }, "enough"),
                None,
            ),
            ("complete, in a turn", ending(TaskEnding::Complete), Some(seen_at_work())),
            ("complete, between turns", ending(TaskEnding::Complete), Some(seen())),
            ("fail, in a turn", ending(TaskEnding::Fail), Some(seen_at_work())),
            ("reported", pending().running().reported(), Some(seen())),
            ("paused, in a turn", pending().running().paused(), Some(seen_at_work())),
            (
                "paused, its turn is ending",
                pending().running().paused(),
                Some(SeenSession { cancelling: true, ..seen_at_work() }),
            ),
            ("paused", pending().running().paused(), Some(seen_interrupted(InterruptCause::User))),
        ],
        expect![[r#"
            cancel                           run_seen process=run#1 run=1  Stop { now: false }
            cancel, pressed                  run_seen process=run#1 run=1  ·
            cancel now                       run_seen process=run#1 run=1  Stop { now: true }
            cancel now, pressed gently       run_seen process=run#1 run=1  Stop { now: true }
            cancel now, pressed              run_seen process=run#1 run=1  ·
            cancel, no session was made yet  ·                             Settle { state: Cancelled, reason: ('enough') }
            complete, in a turn              run_seen process=run#1 run=1  ·
            complete, between turns          ·                             EndSession { completed: true }
            fail, in a turn                  run_seen process=run#1 run=1  EndSession { completed: false }
            reported                         ·                             EndSession { completed: true }
            paused, in a turn                run_seen process=run#1 run=1  CancelTurn
            paused, its turn is ending       run_seen process=run#1 run=1  ·
            paused                           ·                             ·
        "#]],
    );
}

/// A chat goes on after the task that was worked at in it.
#[test]
fn a_chat_is_never_ended_for_its_task() {
    let ending = |ending| pending_as(WorkerKind::Chat).running().reported().asked(ending, "enough");
    let stopping = SeenSession { stop_level: Some(1), ..seen_at_work() };
    check(
        vec![
            ("cancel", ending(TaskEnding::Cancel { now: true }), Some(seen_at_work())),
            ("complete", ending(TaskEnding::Complete), Some(seen_at_work())),
            ("complete, the chat is being stopped", ending(TaskEnding::Complete), Some(stopping)),
            ("fail", ending(TaskEnding::Fail), Some(seen_at_work())),
            (
                "the chat was stopped",
                pending_as(WorkerKind::Chat).running(),
                Some(SeenSession { stop_level: Some(1), ..seen_in(State::Stopped) }),
            ),
        ],
        expect![[r#"
            cancel                               run_seen process=run#1 run=1  Settle { state: Cancelled, reason: ('enough') }
            complete                             run_seen process=run#1 run=1  Settle { state: Completed, reason: ('enough') }
            complete, the chat is being stopped  run_seen process=run#1 run=1  Settle { state: Completed, reason: ('enough') }
            fail                                 run_seen process=run#1 run=1  Settle { state: Failed, reason: ('enough') }
            the chat was stopped                 ·                             Settle { state: Cancelled, reason: ('stopped') }
        "#]],
    );
}

/// Each end but a result's has a reason.
#[test]
fn a_task_ends_as_somebody_asked_else_as_its_session_did() {
    let running = || pending().running();
    let asked = |ending| running().asked(ending, "enough");
    let over = |state, reason: Option<&str>| {
        Some(SeenSession { end_reason: reason.map(str::to_owned), ..seen_in(state) })
    };
    let stopped = || {
        Some(SeenSession {
            stop_level: Some(2),
            end_reason: Some("ann: enough".to_owned()),
            ..seen_in(State::Stopped)
        })
    };
    let deleted = |state| Some(SeenSession { deleted: true, ..seen_in(state) });
    let unsaid = pending()
        .running()
        .event(TaskEvent::EndAsked { ending: TaskEnding::Cancel { now: false }, reason: None });
    check(
        vec![
            (
                "its process still runs",
                running(),
                Some(SeenSession { run: Some(run(1, true)), ..seen_in(State::Completed) }),
            ),
            ("completed", running(), over(State::Completed, None)),
            ("completed, with a result", running().reported(), over(State::Completed, None)),
            (
                "completed, as asked",
                running().reported().asked(TaskEnding::Complete, "done"),
                over(State::Completed, None),
            ),
            ("failed", running(), over(State::Failed, Some("out of luck"))),
            ("failed, no reason", running(), over(State::Failed, None)),
            ("stopped", running(), stopped()),
            (
                "stopped, no reason",
                running(),
                Some(SeenSession { stop_level: Some(1), ..seen_in(State::Stopped) }),
            ),
            ("stopped while it was completing", asked(TaskEnding::Complete), stopped()),
            ("stopped, as asked", asked(TaskEnding::Cancel { now: false }), stopped()),
            ("stopped, as asked without a reason", unsaid, stopped()),
            ("failed, as asked", asked(TaskEnding::Fail), over(State::Failed, None)),
            ("deleted", running(), deleted(State::BetweenTurn)),
            ("deleted after it had a result", running().reported(), deleted(State::BetweenTurn)),
            ("deleted after it was completed", running(), deleted(State::Completed)),
            ("ended already", running().ended(TaskState::Failed), over(State::Completed, None)),
        ],
        expect![[r#"
            its process still runs              run_seen process=run#1 run=1  ·
            completed                           ·                             Settle { state: Completed, reason: ('its session was completed') }
            completed, with a result            ·                             Settle { state: Completed, reason: None }
            completed, as asked                 ·                             Settle { state: Completed, reason: ('done') }
            failed                              ·                             Settle { state: Failed, reason: ('out of luck') }
            failed, no reason                   ·                             Settle { state: Failed, reason: ('its session failed') }
            stopped                             ·                             Settle { state: Cancelled, reason: ('ann: enough') }
            stopped, no reason                  ·                             Settle { state: Cancelled, reason: ('stopped') }
            stopped while it was completing     ·                             Settle { state: Cancelled, reason: ('ann: enough') }
            stopped, as asked                   ·                             Settle { state: Cancelled, reason: ('enough') }
            stopped, as asked without a reason  ·                             Settle { state: Cancelled, reason: ('it was cancelled') }
            failed, as asked                    ·                             Settle { state: Failed, reason: ('enough') }
            deleted                             ·                             Settle { state: Cancelled, reason: ('its session was deleted') }
            deleted after it had a result       ·                             Settle { state: Completed, reason: None }
            deleted after it was completed      ·                             Settle { state: Completed, reason: ('its session was completed') }
            ended already                       ·                             ·
        "#]],
    );
}
