//! The consequences of a task's session for the task. This module remembers nothing: the daemon looks, records what is
//! new and does what is wanted; after a crash it looks again and wants the same.

use crate::id::RunId;
use crate::session::{InterruptCause, State, TurnStatus};
use crate::task::decide::CANCELLED;
use crate::task::event::TaskEvent;
use crate::task::record::{Task, TaskEnding, TaskResult, TaskState, WorkerKind};

/// A session as far as its task cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenSession {
    pub state: State,
    pub deleted: bool,
    /// The level of a stop that is pending, or that ended it.
    pub stop_level: Option<u8>,
    /// A cancel of the turn is pending.
    pub cancelling: bool,
    pub turns: u64,
    /// The status of the newest turn, with the reason.
    pub turn: Option<(TurnStatus, Option<String>)>,
    pub run: Option<SeenRun>,
    /// Messages and words that still wait for its agent.
    pub waiting: usize,
    /// The agent's last message.
    pub said: Option<String>,
    pub end_reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenRun {
    pub id: RunId,
    pub live: bool,
}

/// Open children and unsettled mail of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kin {
    /// Tasks that report to this one and have not ended.
    pub open_children: usize,
    /// Mail in its box that is not settled.
    pub mail: usize,
}

impl SeenSession {
    fn is_over(&self) -> bool {
        self.deleted || self.state.is_ended()
    }

    fn is_executing(&self) -> bool {
        self.state == State::Executing
    }

    /// Whether the newest turn ended normally, so that it is not the interrupted one.
    fn went_on(&self) -> bool {
        matches!(self.turn, Some((TurnStatus::Completed | TurnStatus::Failed | TurnStatus::Refused, _)))
    }

    /// The cause that interrupted the newest turn, if there is one. The state holds it until the session goes idle;
    /// after that only the turn is left, which does not tell a limit from a loss. A limit must not be retried.
    fn cut_short(&self) -> Option<InterruptCause> {
        if let State::Interrupted { cause } = self.state {
            return Some(cause);
        }
        match self.turn {
            _ if self.is_executing() => None,
            Some((TurnStatus::Cancelled, _)) => Some(InterruptCause::User),
            Some((TurnStatus::Uncertain, _)) => Some(InterruptCause::Crash),
            Some((TurnStatus::Interrupted, _)) => Some(InterruptCause::Limit),
            Some((
                TurnStatus::Queued
                | TurnStatus::Running
                | TurnStatus::Completed
                | TurnStatus::Failed
                | TurnStatus::Refused
                | TurnStatus::Withdrawn
                | TurnStatus::Steered,
                _,
            ))
            | None => None,
        }
    }
}

/// The new events.
#[must_use]
pub fn observe(task: &Task, seen: Option<&SeenSession>, kin: Kin) -> Vec<TaskEvent> {
    let Some(seen) = seen else { return Vec::new() };
    if task.state.is_ended() || task.session.is_none() {
        return Vec::new();
    }
    let mut events = Vec::new();
    if let Some(run) = seen.run
        && run.live
    {
        events.extend(new_run(task, run.id));
    }
    if seen.is_over() {
        return events;
    }
    match task.state {
        TaskState::Deploying if has_begun(task, seen) => events.push(TaskEvent::Started {}),
        TaskState::Interrupted if seen.is_executing() || seen.went_on() => {
            events.push(TaskEvent::Started {});
        }
        TaskState::Running => events.extend(at_work(task, seen, kin)),
        TaskState::Deploying
        | TaskState::Interrupted
        | TaskState::Pending
        | TaskState::Paused
        | TaskState::Completed
        | TaskState::Failed
        | TaskState::Cancelled => {}
    }
    events
}

/// Whether the agent has received the task. In a chat there are other turns too, so there the sender records it.
fn has_begun(task: &Task, seen: &SeenSession) -> bool {
    match task.spec.kind {
        WorkerKind::External => true,
        WorkerKind::Chat => false,
        WorkerKind::Background => seen.turns > task.turns_before,
    }
}

fn new_run(task: &Task, process: RunId) -> Option<TaskEvent> {
    let last = task.current_run()?;
    match last.run {
        Some(known) if known == process => None,
        Some(_) => Some(TaskEvent::RunSeen { run: task.run + 1, process }),
        None => Some(TaskEvent::RunSeen { run: last.number, process }),
    }
}

fn at_work(task: &Task, seen: &SeenSession, kin: Kin) -> Option<TaskEvent> {
    if task.ending.is_some() || task.result.is_some() {
        return None;
    }
    // What was cut short before it was last asked to work does not count.
    if let Some(cause) = seen.cut_short()
        && seen.turns > task.turns_before
    {
        let reason = seen.turn.as_ref().and_then(|(_, reason)| reason.clone());
        return Some(TaskEvent::Interrupted { cause, reason });
    }
    // People talk in a chat session, and a program outside says when it is done.
    let by_itself = task.spec.kind == WorkerKind::Background && !seen.is_executing();
    if !by_itself || seen.waiting > 0 || kin.open_children > 0 || kin.mail > 0 {
        return None;
    }
    match &seen.turn {
        Some((TurnStatus::Completed, _)) => {
            let summary =
                seen.said.clone().unwrap_or_else(|| "its agent ended its turn and said nothing".to_owned());
            let result = TaskResult { summary, evidence: None, by_turn_end: true };
            Some(TaskEvent::Reported { result })
        }
        Some((TurnStatus::Failed | TurnStatus::Refused, reason)) => {
            let reason = reason.clone().unwrap_or_else(|| "its agent's turn failed".to_owned());
            Some(TaskEvent::EndAsked { ending: TaskEnding::Fail, reason: Some(reason) })
        }
        Some((_, _)) | None => None,
    }
}

/// The daemon's next action for the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskWant {
    /// Make its worktree and its session.
    Create,
    /// Tell its agent what to do: for the first time, or to go on.
    Prompt {
        first: bool,
    },
    /// End what its agent does, and leave the session.
    CancelTurn,
    Stop {
        now: bool,
    },
    /// End its session in order, as completed or as failed.
    EndSession {
        completed: bool,
    },
    /// The session is over: keep its work, and record how the task ended.
    Settle {
        state: TaskState,
        reason: Option<String>,
    },
    /// The agent was lost: bring it back, unless it was lost too often.
    Restart,
}

/// `seen` is nothing when there is no such session.
#[must_use]
pub fn want(task: &Task, seen: Option<&SeenSession>) -> Option<TaskWant> {
    if task.state.is_ended() || task.session.is_none() {
        return None;
    }
    let Some(seen) = seen else {
        return match (&task.ending, task.state) {
            (Some(_), _) => Some(settled(task, None)),
            (None, TaskState::Deploying) => Some(TaskWant::Create),
            // It was there, and is not: nothing can be taken up.
            (None, _) => Some(settled(task, None)),
        };
    };
    // A chat session goes on after the task that was worked at in it.
    let chat = task.spec.kind == WorkerKind::Chat;
    if seen.is_over() {
        // What it left is looked at once nobody can change it any more.
        let working = seen.run.is_some_and(|run| run.live);
        return (!working).then(|| settled(task, Some(seen)));
    }
    match (&task.ending, &task.result) {
        (Some(TaskEnding::Cancel { .. }), _) if chat => Some(settled(task, Some(seen))),
        (Some(TaskEnding::Cancel { now }), _) => {
            // Pressed once; a further press would raise it.
            let pressed = seen.stop_level.is_some_and(|level| level > u8::from(*now));
            (!pressed).then_some(TaskWant::Stop { now: *now })
        }
        (Some(TaskEnding::Complete), _) | (None, Some(_)) if chat => Some(settled(task, Some(seen))),
        // Who reports in the middle of a turn may finish it.
        (Some(TaskEnding::Complete), _) | (None, Some(_)) => {
            (!seen.is_executing()).then_some(TaskWant::EndSession { completed: true })
        }
        (Some(TaskEnding::Fail), _) if chat => Some(settled(task, Some(seen))),
        (Some(TaskEnding::Fail), _) => Some(TaskWant::EndSession { completed: false }),
        (None, None) => of_state(task, seen),
    }
}

fn of_state(task: &Task, seen: &SeenSession) -> Option<TaskWant> {
    match task.state {
        TaskState::Deploying if task.spec.kind == WorkerKind::External => None,
        // In a chat the words wait for their turn.
        TaskState::Deploying if task.spec.kind == WorkerKind::Chat => {
            seen.stop_level.is_none().then_some(TaskWant::Prompt { first: !task.begun })
        }
        // To be begun again, the turn that goes on must end first.
        TaskState::Deploying if seen.is_executing() && task.begun => {
            (!seen.cancelling).then_some(TaskWant::CancelTurn)
        }
        // Who is being stopped takes no words.
        TaskState::Deploying if !seen.is_executing() && seen.stop_level.is_none() => {
            Some(TaskWant::Prompt { first: !task.begun })
        }
        TaskState::Paused if seen.is_executing() && !seen.cancelling => Some(TaskWant::CancelTurn),
        TaskState::Interrupted if is_lost(task) && task.spec.kind == WorkerKind::Background => {
            Some(TaskWant::Restart)
        }
        TaskState::Deploying
        | TaskState::Paused
        | TaskState::Interrupted
        | TaskState::Pending
        | TaskState::Running
        | TaskState::Completed
        | TaskState::Failed
        | TaskState::Cancelled => None,
    }
}

/// Whether the run was lost rather than ended on request, so that a retry is worthwhile.
fn is_lost(task: &Task) -> bool {
    matches!(
        task.interrupted_by,
        Some(InterruptCause::Crash | InterruptCause::HostLost | InterruptCause::Timeout)
    )
}

/// The end of a task: as requested, else as its session ended. Each end without a result has a reason.
fn settled(task: &Task, seen: Option<&SeenSession>) -> TaskWant {
    let over = seen.filter(|seen| seen.is_over());
    let (state, reason) = match (&task.ending, over) {
        (Some(TaskEnding::Cancel { .. }), _) => (TaskState::Cancelled, task.reason.clone()),
        (Some(TaskEnding::Fail), _) => (TaskState::Failed, task.reason.clone()),
        (_, Some(seen)) if seen.stop_level.is_some() => (TaskState::Cancelled, Some(stop_reason(seen))),
        (Some(TaskEnding::Complete), _) => (TaskState::Completed, task.reason.clone()),
        (None, Some(seen)) if !seen.state.is_ended() && task.result.is_none() => {
            (TaskState::Cancelled, Some("its session was deleted".to_owned()))
        }
        (None, Some(seen)) => {
            let state = from_session(task, seen.state);
            // A result says more than a reason made of it.
            let said = state == TaskState::Completed && task.result.is_some();
            (state, seen.end_reason.clone().filter(|_| !said))
        }
        (None, None) if task.result.is_some() => (TaskState::Completed, None),
        (None, None) => (TaskState::Failed, Some("its session is gone".to_owned())),
    };
    let reason = reason.or_else(|| unsaid(task, state).map(str::to_owned));
    TaskWant::Settle { state, reason }
}

/// The reason where nobody gave one.
fn unsaid(task: &Task, state: TaskState) -> Option<&'static str> {
    match state {
        TaskState::Completed if task.result.is_some() => None,
        TaskState::Completed => Some("its session was completed"),
        TaskState::Failed => Some("its session failed"),
        TaskState::Cancelled => Some(CANCELLED),
        TaskState::Pending
        | TaskState::Deploying
        | TaskState::Running
        | TaskState::Paused
        | TaskState::Interrupted => None,
    }
}

fn stop_reason(seen: &SeenSession) -> String {
    seen.end_reason.clone().unwrap_or_else(|| "stopped".to_owned())
}

fn from_session(task: &Task, state: State) -> TaskState {
    match state {
        State::Stopped => TaskState::Cancelled,
        State::Failed => TaskState::Failed,
        State::Completed => TaskState::Completed,
        // It was deleted before it ended.
        State::Beginning
        | State::Custom
        | State::Executing
        | State::BetweenTurn
        | State::Compacted
        | State::Interrupted { .. }
        | State::Idle
        | State::Stale => {
            if task.result.is_some() {
                TaskState::Completed
            } else {
                TaskState::Failed
            }
        }
    }
}
