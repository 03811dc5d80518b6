//! The transition table of tasks: every state against every command, printed into `transitions.txt`. A change of behaviour
//! is a diff of that file.

use std::collections::BTreeSet;

use expect_test::expect_file;

use crate::session::InterruptCause;
use crate::task::event::TaskEvent;
use crate::task::record::{TaskEnding, TaskSpec, TaskState, WorkerKind};
use crate::task::testing::{Given, aligned, deploy, pending, pending_as, result, task_id};
use crate::task::{TaskCommand, want};

const LEGEND: &str = "\
What each command does to a task in each state. A change of behaviour is a change of this file; `UPDATE_EXPECT=1`
writes it anew.

  running          the task enters this state
  +cancel          an end is asked for, which its session has to reach first
  =                something is recorded and nothing else changes
  !code            refused with this code
  ·                nothing happens

A task is of kind background unless it says otherwise. Those with a session have session 1.
";

#[test]
fn every_state_answers_every_command() {
    let commands = commands();
    let mut rows = vec![vec!["TASK".to_owned()]];
    rows[0].extend(commands.iter().map(|(name, _)| (*name).to_owned()));
    for (name, given) in situations() {
        let mut row = vec![name.to_owned()];
        row.extend(commands.iter().map(|(_, command)| cell(&given, command)));
        rows.push(row);
    }
    expect_file!["transitions.txt"].assert_eq(&format!("{LEGEND}\n{}", aligned(&rows)));
}

fn cell(given: &Given, command: &TaskCommand) -> String {
    let (mut after, before) = (given.clone(), &given.task);
    let events = match after.put(command) {
        Err(refusal) => return format!("!{}", refusal.code()),
        Ok(events) => events,
    };
    if after.task.state != before.state {
        return after.task.state.to_string();
    }
    match &after.task.ending {
        _ if events.is_empty() => "·".to_owned(),
        Some(_) if after.task.ending == before.ending => "=".to_owned(),
        Some(TaskEnding::Complete) => "+complete".to_owned(),
        Some(TaskEnding::Fail) => "+fail".to_owned(),
        Some(TaskEnding::Cancel { now: false }) => "+cancel".to_owned(),
        Some(TaskEnding::Cancel { now: true }) => "+cancel now".to_owned(),
        None => "=".to_owned(),
    }
}

fn situations() -> Vec<(&'static str, Given)> {
    let cancelling = |now| pending().running().asked(TaskEnding::Cancel { now }, "enough");
    vec![
        ("pending", pending()),
        ("pending, chat", pending_as(WorkerKind::Chat)),
        ("pending, again", pending().running().ended(TaskState::Failed).event(TaskEvent::Retried {})),
        ("paused, nobody worked at it", pending().paused()),
        ("deploying", pending().deploying()),
        ("deploying, cancelling", pending().deploying().asked(TaskEnding::Cancel { now: false }, "enough")),
        ("running", pending().running()),
        ("running, chat", pending_as(WorkerKind::Chat).running()),
        ("running, reported", pending().running().reported()),
        ("running, completing", pending().running().reported().asked(TaskEnding::Complete, "done")),
        ("running, failing", pending().running().asked(TaskEnding::Fail, "broken")),
        ("running, cancelling", cancelling(false)),
        ("running, cancelling now", cancelling(true)),
        ("paused", pending().running().paused()),
        (
            "paused, cancelling",
            pending().running().paused().asked(TaskEnding::Cancel { now: false }, "enough"),
        ),
        ("interrupted", pending().interrupted(InterruptCause::Crash)),
        ("completed", pending().running().ended(TaskState::Completed)),
        ("failed", pending().running().ended(TaskState::Failed)),
        ("cancelled", pending().running().ended(TaskState::Cancelled)),
        ("cancelled, nobody worked at it", pending().ended(TaskState::Cancelled)),
    ]
}

fn commands() -> Vec<(&'static str, TaskCommand)> {
    let reason = || Some("enough".to_owned());
    let spec = TaskSpec { title: "another".into(), prompt: "do that".into(), ..TaskSpec::default() };
    let TaskCommand::Deploy { session, worker, turns, .. } = deploy() else { unreachable!() };
    let blocked = Some((task_id(9), TaskState::Running));
    vec![
        ("deploy", deploy()),
        ("deploy, blocked", TaskCommand::Deploy { session, worker, blocked, turns }),
        ("pause", TaskCommand::Pause { reason: reason() }),
        ("resume", TaskCommand::Resume { turns: 1 }),
        ("cancel", TaskCommand::Cancel { reason: reason(), now: false }),
        ("cancel now", TaskCommand::Cancel { reason: reason(), now: true }),
        ("complete", TaskCommand::Complete { result: result("done") }),
        ("fail", TaskCommand::Fail { reason: "broken".to_owned() }),
        ("retry", TaskCommand::Retry),
        ("edit", TaskCommand::Edit { spec: Box::new(spec) }),
    ]
}

#[test]
fn the_table_leaves_no_command_and_no_state_out() {
    let states: BTreeSet<TaskState> = situations().iter().map(|(_, given)| given.task.state).collect();
    assert_eq!(states, TaskState::ALL.into());
    let commands: BTreeSet<&str> = commands().iter().map(|(_, command)| command.name()).collect();
    assert_eq!(commands.len(), 8);
}

/// Whatever is asked of a task that has ended, nothing is done for it before it is tried again.
#[test]
fn an_end_is_an_end() {
    for (name, given) in situations().into_iter().filter(|(_, given)| given.task.state.is_ended()) {
        assert_eq!(want(&given.task, None), None, "{name}");
        for (command_name, command) in commands() {
            let mut after = given.clone();
            let _ = after.put(&command);
            let expected = if command == TaskCommand::Retry { TaskState::Pending } else { given.task.state };
            assert_eq!(after.task.state, expected, "{command_name} of {name}");
        }
    }
}
