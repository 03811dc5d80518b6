//! What each command makes of a task, one rule at a time. Names and comments carry the ids of the requirements.

#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes snapshots with them")]

use std::collections::BTreeSet;

use expect_test::{Expect, expect};

use crate::id::WorkerId;
use crate::refusal::RefusalKind;
use crate::session::InterruptCause;
use crate::task::decide::{LIST_MAX, PROMPT_CHARS_MAX, WORDS_CHARS_MAX};
use crate::task::event::{TaskCreated, TaskEvent};
use crate::task::record::{TaskEnding, TaskResult, TaskSpec, TaskState, WorkerKind, WorkerSource};
use crate::task::testing::{
    Given, at, born, cancel, created, deploy, line, lines, pending, pending_as, result, run_id, session_id,
    short_ids, task_id, worker_id,
};
use crate::task::{Remedies, Task, TaskCommand, TaskRefusal, create};

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a test says `expect![[…]]` and no more")]
fn check(mut given: Given, command: TaskCommand, expect: Expect) {
    let text = match given.put(&command) {
        Ok(events) => lines(&events),
        Err(refusal) => refused(&refusal),
    };
    expect.assert_eq(&text);
}

fn refused(refusal: &TaskRefusal) -> String {
    short_ids(&format!("{}: {}\n{}", refusal.code(), refusal, refusal.advice()))
}

/// S4-13: the task's own worker, else its chat session's, else a new one; S4-09: a background worker's id is made.
#[test]
fn a_worker_is_the_tasks_own_else_the_chats_else_new() {
    check(
        pending(),
        deploy(),
        expect!["deployed run=1 session=session#2 source=generated turns=0 worker=worker#2"],
    );
    // S4-08: the worker has the bits of its chat.
    check(
        pending_as(WorkerKind::Chat),
        deploy(),
        expect!["deployed run=1 session=session#1 source=session turns=0 worker=worker#1"],
    );
    let again = |kind| {
        let once = pending_as(kind).after(&deploy()).ended(TaskState::Failed);
        once.after(&TaskCommand::Retry)
    };
    let mut background = again(WorkerKind::Background);
    background.task.worker = Some(worker_id(7));
    check(
        background,
        deploy(),
        expect!["deployed run=2 session=session#2 source=reused turns=0 worker=worker#7"],
    );
    let mut chat = again(WorkerKind::Chat);
    chat.task.worker = Some(worker_id(7));
    check(chat, deploy(), expect!["deployed run=2 session=session#1 source=reused turns=0 worker=worker#7"]);
}

/// S4-14, S4-22: however often it is deployed, interrupted and tried again, and whatever ids are minted for it.
#[test]
fn a_worker_keeps_its_id() {
    let mut given = pending();
    let mut workers: BTreeSet<WorkerId> = BTreeSet::new();
    let mut runs = Vec::new();
    for round in 0..5_u128 {
        let (session, worker) = (session_id(10 + round), worker_id(10 + round));
        given = given.after(&TaskCommand::Deploy { session, worker, blocked: None, turns: 0 });
        workers.extend(given.task.worker);
        runs.push(given.task.run);
        given.add(TaskEvent::RunSeen { run: given.task.run, process: run_id(round) });
        given = given
            .event(TaskEvent::Started {})
            .event(TaskEvent::Interrupted { cause: InterruptCause::Crash, reason: None })
            .after(&TaskCommand::Resume { turns: 1 });
        assert_eq!(given.task.session, Some(session));
        workers.extend(given.task.worker);
        let process = run_id(10 + round);
        given.add(TaskEvent::RunSeen { run: given.task.run + 1, process });
        runs.push(given.task.run);
        given = given.after(&cancel()).ended(TaskState::Cancelled).after(&TaskCommand::Retry);
        assert_eq!(given.task.session, None);
    }
    assert_eq!(workers, BTreeSet::from([worker_id(10)]));
    // S4-B01: each run has a number of its own, and they only grow.
    assert_eq!(runs, (1..=10).collect::<Vec<u32>>());
    assert_eq!((given.task.attempts, given.task.runs.len()), (5, 10));
    assert_eq!(given.task.worker_source, Some(WorkerSource::Reused));
}

/// The record stays small however often its worker is started; what is left out is in the log.
#[test]
fn a_record_keeps_the_newest_runs() {
    let mut given = pending().running();
    for number in 1..=40 {
        given.add(TaskEvent::RunSeen { run: number, process: run_id(u128::from(number)) });
    }
    let numbers: Vec<u32> = given.task.runs.iter().map(|run| run.number).collect();
    assert_eq!(numbers, (25..=40).collect::<Vec<u32>>());
    assert_eq!(given.task.current_run().unwrap().run, Some(run_id(40)));
}

/// S4-15, S4-20: a log names its task by all that worked at it.
#[test]
fn a_log_gives_the_names_of_its_task() {
    let mut given = born(TaskCreated {
        aliases: vec!["T-1".to_owned()],
        ..created(TaskSpec { title: "a".into(), prompt: "b".into(), ..TaskSpec::default() })
    });
    given = given.after(&deploy()).event(TaskEvent::RunSeen { run: 1, process: run_id(3) });
    given = given.event(TaskEvent::Started {}).ended(TaskState::Failed);
    let names: Vec<String> = given.log.iter().flat_map(crate::log::LogEntry::names).collect();
    assert_eq!(short_ids(&names.join(" ")), "T-1 worker#2 session#2 run#3");
}

#[test]
fn an_end_is_asked_for_while_there_is_a_session_and_reached_without_one() {
    check(pending(), cancel(), expect!["ended reason=enough state=cancelled"]);
    check(pending().paused(), cancel(), expect!["ended reason=enough state=cancelled"]);
    check(pending().running(), cancel(), expect!["end_asked ending={how=cancel} reason=enough"]);
    let complete = || TaskCommand::Complete { result: result("done") };
    check(pending(), complete(), expect!["reported result={summary=done}; ended state=completed"]);
    check(
        pending().running(),
        complete(),
        expect!["reported result={summary=done}; end_asked ending={how=complete}"],
    );
    let fail = || TaskCommand::Fail { reason: "broken".to_owned() };
    check(pending(), fail(), expect!["ended reason=broken state=failed"]);
    check(pending().running(), fail(), expect!["end_asked ending={how=fail} reason=broken"]);
}

/// What was promised to whoever cancelled it stays true, and what the worker found by then is kept.
#[test]
fn a_cancel_is_only_made_more_urgent() {
    let cancelling = |now| pending().running().asked(TaskEnding::Cancel { now }, "enough");
    let now = || TaskCommand::Cancel { reason: Some("at once".to_owned()), now: true };
    check(cancelling(false), cancel(), expect!["·"]);
    check(cancelling(false), now(), expect![[r#"end_asked ending={how=cancel now=true} reason="at once""#]]);
    check(cancelling(true), cancel(), expect!["·"]);
    let press = || TaskCommand::Cancel { reason: None, now: true };
    check(cancelling(false), press(), expect!["end_asked ending={how=cancel now=true} reason=enough"]);
    check(pending(), press(), expect![[r#"ended reason="it was cancelled" state=cancelled"#]]);
    check(
        cancelling(false),
        TaskCommand::Complete { result: result("done") },
        expect!["reported result={summary=done}"],
    );
    check(cancelling(true), TaskCommand::Fail { reason: "broken".to_owned() }, expect!["·"]);
}

/// Between the wish and the end a task may still change its state.
#[test]
fn the_reason_of_an_end_is_kept_until_it_is_reached() {
    for event in [
        TaskEvent::Started {},
        TaskEvent::Interrupted { cause: InterruptCause::Crash, reason: Some("lost".to_owned()) },
        TaskEvent::Resumed { turns: 3 },
    ] {
        let given = pending().deploying().asked(TaskEnding::Cancel { now: false }, "too dear");
        let after = given.event(event.clone()).task;
        assert_eq!(after.reason.as_deref(), Some("too dear"), "{}", line(&event));
    }
    let ended = pending().running().asked(TaskEnding::Fail, "broken").ended(TaskState::Failed).task;
    assert_eq!((ended.reason.as_deref(), ended.ending), (Some("enough"), None));
}

/// S4-14: the worker and the branch stay; nothing of the attempt before can be taken for the next one's.
#[test]
fn a_task_that_is_tried_again_begins_anew() {
    let given = pending()
        .running()
        .reported()
        .asked(TaskEnding::Complete, "done")
        .ended(TaskState::Completed)
        .event(TaskEvent::Merged { commit: "abc".to_owned(), into: "main".to_owned() })
        .after(&TaskCommand::Retry);
    let Task { state, worker, session, result, ending, merged, remedies, reason, .. } = given.task;
    assert_eq!((state, worker, session), (TaskState::Pending, Some(worker_id(1)), None));
    assert_eq!((result, ending, merged, reason), (None, None, None, None));
    assert_eq!(remedies, Remedies::default());
}

#[test]
fn a_held_task_goes_back_to_where_it_was() {
    let held = pending().paused().after(&TaskCommand::Resume { turns: 0 });
    assert_eq!(held.task.state, TaskState::Pending);
    let held = pending().running().paused().after(&TaskCommand::Resume { turns: 4 });
    assert_eq!((held.task.state, held.task.turns_before, held.task.begun), (TaskState::Deploying, 4, true));
}

/// Each refusal: its code, what happened, what to do.
#[test]
fn refusals_say_what_happened_and_what_to_do() {
    check(
        pending().ended(TaskState::Failed),
        cancel(),
        expect![[r#"
        task_ended: task task#1 has ended: it is failed
        run it again with `lanyard task retry task#1`"#]],
    );
    check(
        pending().deploying(),
        TaskCommand::Pause { reason: None },
        expect![[r#"
        task_state: task task#1 is deploying, which does not allow this
        look how it stands with `lanyard task show task#1`"#]],
    );
    check(
        pending(),
        TaskCommand::Retry,
        expect![[r#"
        task_state: task task#1 is pending, which does not allow this
        look how it stands with `lanyard task show task#1`"#]],
    );
    check(
        pending().running(),
        deploy(),
        expect![[r#"
        task_at_work: task task#1 is at work already, it is running
        look how it stands with `lanyard task show task#1`"#]],
    );
    check(
        pending().paused(),
        deploy(),
        expect![[r#"
        task_state: task task#1 is paused, which does not allow this
        look how it stands with `lanyard task show task#1`"#]],
    );
    let blocked = Some((task_id(9), TaskState::Running));
    let (session, worker) = (session_id(2), worker_id(2));
    check(
        pending(),
        TaskCommand::Deploy { session, worker, blocked, turns: 0 },
        expect![[r#"
        task_blocked: task task#1 waits for task#9, which is running
        finish it first, see `lanyard task show task#9`, or deploy with `--force`"#]],
    );
    check(
        pending().running(),
        TaskCommand::Fail { reason: " ".to_owned() },
        expect![[r#"
        field_empty: reason is empty
        give at least one visible character"#]],
    );
    let long = TaskResult { evidence: Some("x".repeat(WORDS_CHARS_MAX + 1)), ..result("done") };
    check(
        pending().running(),
        TaskCommand::Complete { result: long },
        expect![[r#"
        field_too_long: evidence has more than 16000 characters
        shorten it; put long content into a file"#]],
    );
    let cycle = TaskRefusal::Cycle { tasks: vec![task_id(1), task_id(2)] };
    expect![[r#"
        dependency_cycle: the tasks task#1, task#2 depend on each other in a circle
        take one of the dependencies away"#]]
    .assert_eq(&refused(&cycle));
    let ended = TaskRefusal::Ended { task: task_id(1), state: TaskState::Failed };
    assert_eq!((cycle.kind(), ended.kind()), (RefusalKind::Invalid, RefusalKind::Conflict));
}

/// What cannot be a task is refused before anything is written.
#[test]
fn a_new_task_is_checked() {
    let spec = || TaskSpec { title: "a".into(), prompt: "b".into(), ..TaskSpec::default() };
    let many = vec!["f".to_owned(); LIST_MAX + 1];
    let bad = [
        created(TaskSpec { title: " ".into(), ..spec() }),
        created(TaskSpec { title: "a\nb".into(), ..spec() }),
        created(TaskSpec { prompt: String::new(), ..spec() }),
        created(TaskSpec { prompt: "x".repeat(PROMPT_CHARS_MAX + 1), ..spec() }),
        created(TaskSpec { files: many.clone(), ..spec() }),
        created(TaskSpec { depends_on: vec![task_id(1); LIST_MAX + 1], ..spec() }),
        created(TaskSpec { kind: WorkerKind::Chat, ..spec() }),
        TaskCreated { aliases: many, ..created(spec()) },
        TaskCreated { aliases: vec![String::new()], ..created(spec()) },
    ];
    let codes: Vec<&str> = bad.into_iter().map(|new| create(new).unwrap_err().code()).collect();
    expect!["field_empty field_bad_text field_empty field_too_long field_too_many field_too_many chat_needs_session field_too_many field_empty"].assert_eq(&codes.join(" "));
    assert!(create(created(spec())).is_ok());
    assert_eq!(at(0), pending().task.created_at);
}
