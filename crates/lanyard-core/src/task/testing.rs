//! The harness of the tests of tasks: a task with a past, one command or one look, and what came of it as short text.
//!
//! Ids and times are fixed: the task is `task_id(1)`, its first worker `worker_id(1)`, its session `session_id(1)`, its
//! first process `run_id(1)`. Its events follow one second apart.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::actor::Actor;
use crate::id::{RunId, SessionId, TaskId, WorkerId};
use crate::log::Record as _;
use crate::session::{InterruptCause, State, TurnStatus};
use crate::task::event::{TaskCreated, TaskEnvelope, TaskEvent};
use crate::task::observe::{SeenRun, SeenSession};
use crate::task::record::{Task, TaskEnding, TaskResult, TaskSpec, TaskState, WorkerKind, WorkerSource};
use crate::task::{TaskCommand, TaskRefusal, decide};
use crate::time::Timestamp;

/// 2026-11-15T08:00:00Z.
pub(super) const START_MS: i64 = 1_794_729_600_000;

pub(super) fn task_id(number: u128) -> TaskId {
    TaskId::from_u128(number)
}

pub(super) fn session_id(number: u128) -> SessionId {
    SessionId::from_u128(number)
}

pub(super) fn worker_id(number: u128) -> WorkerId {
    WorkerId::from_u128(number)
}

pub(super) fn run_id(number: u128) -> RunId {
    RunId::from_u128(number)
}

pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(START_MS + seconds * 1_000)
}

/// A task with all that happened to it.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) task: Task,
    pub(super) log: Vec<TaskEnvelope>,
}

/// A background task that nobody works at yet.
pub(super) fn pending() -> Given {
    pending_as(WorkerKind::Background)
}

/// The chat of a chat task is session 1.
pub(super) fn pending_as(kind: WorkerKind) -> Given {
    let chat = (kind == WorkerKind::Chat).then(|| session_id(1));
    let (title, prompt) = ("a task".to_owned(), "do it".to_owned());
    born(created(TaskSpec { title, prompt, kind, chat, ..TaskSpec::default() }))
}

pub(super) fn created(spec: TaskSpec) -> TaskCreated {
    TaskCreated {
        plan: None,
        parent: None,
        reports_to: None,
        workspace: None,
        created_in: None,
        aliases: Vec::new(),
        spec,
    }
}

pub(super) fn born(created: TaskCreated) -> Given {
    let event = TaskEvent::Created(Box::new(created));
    let first = TaskEnvelope { task: task_id(1), seq: 1, at: at(0), actor: Actor::operator("ann"), event };
    Given { task: Task::born(&first).unwrap(), log: vec![first] }
}

impl Given {
    /// What happened next. An event that cannot have happened is a failed test.
    pub(super) fn event(mut self, event: TaskEvent) -> Self {
        self.add(event);
        self
    }

    pub(super) fn add(&mut self, event: TaskEvent) {
        let seq = self.task.seq + 1;
        let at = at(i64::try_from(seq).unwrap());
        let envelope = TaskEnvelope { task: self.task.id, seq, at, actor: Actor::operator("ann"), event };
        self.task.apply(&envelope).unwrap();
        self.log.push(envelope);
    }

    /// Does as it is asked, with all that follows from it.
    pub(super) fn put(&mut self, command: &TaskCommand) -> Result<Vec<TaskEvent>, TaskRefusal> {
        let events = decide(&self.task, command)?;
        for event in &events {
            self.add(event.clone());
        }
        Ok(events)
    }

    pub(super) fn after(mut self, command: &TaskCommand) -> Self {
        self.put(command).unwrap();
        self
    }

    /// Its session is 1, which has had no turn.
    pub(super) fn deploying(self) -> Self {
        let (worker, session, run) = (worker_id(1), session_id(1), self.task.run + 1);
        self.event(TaskEvent::Deployed { worker, source: WorkerSource::Generated, session, run, turns: 0 })
    }

    pub(super) fn running(self) -> Self {
        self.deploying().event(TaskEvent::Started {})
    }

    pub(super) fn paused(self) -> Self {
        self.event(TaskEvent::Paused { reason: None })
    }

    pub(super) fn interrupted(self, cause: InterruptCause) -> Self {
        self.running().event(TaskEvent::Interrupted { cause, reason: None })
    }

    pub(super) fn asked(self, ending: TaskEnding, reason: &str) -> Self {
        self.event(TaskEvent::EndAsked { ending, reason: Some(reason.to_owned()) })
    }

    pub(super) fn reported(self) -> Self {
        self.event(TaskEvent::Reported { result: result("done") })
    }

    pub(super) fn ended(self, state: TaskState) -> Self {
        self.event(TaskEvent::Ended { state, reason: Some("enough".to_owned()) })
    }
}

pub(super) fn result(summary: &str) -> TaskResult {
    TaskResult { summary: summary.to_owned(), evidence: None, by_turn_end: false }
}

/// Would use session 2 and worker 2 if it had to make them.
pub(super) fn deploy() -> TaskCommand {
    TaskCommand::Deploy { session: session_id(2), worker: worker_id(2), blocked: None, turns: 0 }
}

pub(super) fn cancel() -> TaskCommand {
    TaskCommand::Cancel { reason: Some("enough".to_owned()), now: false }
}

/// A session between turns that has had one turn, which completed.
pub(super) fn seen() -> SeenSession {
    SeenSession {
        state: State::BetweenTurn,
        deleted: false,
        stop_level: None,
        cancelling: false,
        turns: 1,
        turn: Some((TurnStatus::Completed, None)),
        run: None,
        waiting: 0,
        said: Some("it works".to_owned()),
        end_reason: None,
    }
}

/// One that has had no turn yet.
pub(super) fn seen_new() -> SeenSession {
    SeenSession { state: State::Beginning, turns: 0, turn: None, said: None, ..seen() }
}

pub(super) fn seen_at_work() -> SeenSession {
    let run = Some(SeenRun { id: run_id(1), live: true });
    SeenSession { state: State::Executing, turn: Some((TurnStatus::Running, None)), run, ..seen() }
}

pub(super) fn seen_interrupted(cause: InterruptCause) -> SeenSession {
    let status = if cause == InterruptCause::User { TurnStatus::Cancelled } else { TurnStatus::Interrupted };
    SeenSession { state: State::Interrupted { cause }, turn: Some((status, None)), ..seen() }
}

pub(super) fn seen_in(state: State) -> SeenSession {
    SeenSession { state, ..seen() }
}

/// An event as one line: its type, then what it says.
pub(super) fn line(event: &TaskEvent) -> String {
    let value = serde_json::to_value(event).unwrap();
    let name = value["type"].as_str().unwrap().trim_start_matches("task.").to_owned();
    let data = value.get("data").and_then(Value::as_object).map(in_order).unwrap_or_default().into_iter();
    let told =
        data.filter(|(_, value)| !value.is_null()).map(|(key, value)| format!(" {key}={}", text(value)));
    short_ids(&(name + &told.collect::<String>()))
}

/// By name: whether a map keeps the order it was made in depends on what else is built with this.
fn in_order(fields: &serde_json::Map<String, Value>) -> BTreeMap<&String, &Value> {
    fields.iter().collect()
}

pub(super) fn lines(events: &[TaskEvent]) -> String {
    if events.is_empty() { "·".to_owned() } else { events.iter().map(line).collect::<Vec<_>>().join("; ") }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains(' ') => format!("{text:?}"),
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let fields: Vec<String> =
                in_order(fields).into_iter().map(|(key, value)| format!("{key}={}", text(value))).collect();
            format!("{{{}}}", fields.join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => value.to_string(),
    }
}

/// `worker#1` for the id made of the number 1.
pub(super) fn short_ids(text: &str) -> String {
    let mut short = text.to_owned();
    for number in 0..20 {
        for (id, name) in [
            (task_id(number).to_string(), "task"),
            (session_id(number).to_string(), "session"),
            (worker_id(number).to_string(), "worker"),
            (run_id(number).to_string(), "run"),
        ] {
            short = short.replace(&id, &format!("{name}#{number}"));
        }
    }
    short
}

/// Columns under each other.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (field, width) in row.iter().zip(&widths) {
            write!(line, "{field:width$}  ").unwrap();
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
