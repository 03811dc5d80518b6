//! The one place where a task changes. The same when running and when replaying; a contradiction is an error, so a bad
//! event is never written.

use crate::actor::Actor;
use crate::id::TaskId;
use crate::log::Record;
use crate::task::event::{TaskCreated, TaskEnvelope, TaskEvent};
use crate::task::health::Remedy;
use crate::task::record::{RUNS_MAX, Remedies, Task, TaskRun, TaskState};
use crate::time::Timestamp;
use crate::tree::BaseConflict;

impl Record for Task {
    const KIND: &'static str = "task";

    type Entry = TaskEnvelope;

    fn id(&self) -> TaskId {
        self.id
    }

    fn seq(&self) -> u64 {
        self.seq
    }

    fn skip_to(&mut self, seq: u64) {
        self.seq = seq;
    }

    fn is_ended(&self) -> bool {
        self.state.is_ended()
    }

    fn first(envelope: &TaskEnvelope) -> Result<Self, &'static str> {
        let TaskEvent::Created(created) = &envelope.event else {
            return Err("a task begins with its creation");
        };
        Ok(Self::fresh(envelope.task, envelope.at, &envelope.actor, created))
    }

    fn change(&mut self, envelope: &TaskEnvelope) -> Result<(), &'static str> {
        let at = envelope.at;
        if self.state.is_ended() && !envelope.event.may_follow_the_end() {
            return Err("the task has ended");
        }
        match &envelope.event {
            TaskEvent::Created(_) => return Err("a task is created once"),
            TaskEvent::Edited { spec } => {
                self.spec = (**spec).clone();
                // Another base or other prerequisites may fit.
                self.conflict = None;
            }
            TaskEvent::Deployed { worker, source, session, run, turns } => {
                if *run <= self.run {
                    return Err("a run's number only grows");
                }
                self.worker = Some(*worker);
                self.worker_source = Some(*source);
                self.session = Some(*session);
                self.turns_before = *turns;
                self.begun = false;
                self.conflict = None;
                self.attempts += 1;
                self.add_run(TaskRun { number: *run, session: *session, run: None, at });
                self.enter(TaskState::Deploying, at, None);
            }
            TaskEvent::TreeMade { tree } => self.tree = Some(tree.clone()),
            TaskEvent::BaseConflict { conflict } => self.cannot_begin(conflict, at)?,
            TaskEvent::BranchCounted { commits } => self.commits = Some(*commits),
            TaskEvent::Started {} => {
                self.begun = true;
                self.enter(TaskState::Running, at, None);
            }
            TaskEvent::RunSeen { run, process } => self.see_run(*run, *process, at)?,
            TaskEvent::Interrupted { cause, reason } => {
                let reason = reason.clone().unwrap_or_else(|| cause.as_str().to_owned());
                self.enter(TaskState::Interrupted, at, Some(reason));
                self.interrupted_by = Some(*cause);
            }
            TaskEvent::Resumed { turns } => self.go_on(*turns, at),
            TaskEvent::Paused { reason } => self.enter(TaskState::Paused, at, reason.clone()),
            TaskEvent::EndAsked { ending, reason } => {
                self.ending = Some(ending.clone());
                self.reason.clone_from(reason);
            }
            TaskEvent::Reported { result } => self.result = Some(result.clone()),
            TaskEvent::Captured { captured } => {
                self.captured = Some(captured.clone());
                self.capture_failed = None;
            }
            TaskEvent::CaptureFailed { why } => self.capture_failed = Some(why.clone()),
            TaskEvent::Ended { state, reason } => {
                if !state.is_ended() {
                    return Err("it is not an end");
                }
                self.ending = None;
                self.enter(*state, at, reason.clone());
            }
            TaskEvent::Retried {} => self.begin_again(at),
            TaskEvent::Merged { commit, .. } => self.merged = Some(commit.clone()),
            TaskEvent::TreeRemoved {} => {
                if let Some(tree) = &mut self.tree {
                    tree.removed = true;
                }
            }
            TaskEvent::Discarded { .. } => self.tree = None,
            TaskEvent::Remedied { remedy, turns, .. } => self.remedied(*remedy, *turns, at),
            TaskEvent::Adopted { reports_to } => self.reports_to = *reports_to,
        }
        Ok(())
    }
}

impl Task {
    fn fresh(id: TaskId, at: Timestamp, by: &Actor, created: &TaskCreated) -> Self {
        Self {
            id,
            seq: 1,
            plan: created.plan,
            parent: created.parent,
            reports_to: created.reports_to,
            workspace: created.workspace.clone(),
            spec: created.spec.clone(),
            aliases: created.aliases.clone(),
            created_at: at,
            created_by: by.clone(),
            created_in: created.created_in,
            state: TaskState::Pending,
            since: at,
            reason: None,
            interrupted_by: None,
            ending: None,
            result: None,
            worker: None,
            worker_source: None,
            session: None,
            turns_before: 0,
            begun: false,
            run: 0,
            runs: Vec::new(),
            attempts: 0,
            tree: None,
            conflict: None,
            commits: None,
            captured: None,
            capture_failed: None,
            merged: None,
            remedies: Remedies::default(),
        }
    }

    fn enter(&mut self, state: TaskState, at: Timestamp, reason: Option<String>) {
        self.state = state;
        self.since = at;
        self.interrupted_by = None;
        // Why it is to end is kept until it has.
        if self.ending.is_none() {
            self.reason = reason;
        }
    }

    fn add_run(&mut self, run: TaskRun) {
        self.run = run.number;
        if self.runs.len() >= RUNS_MAX {
            self.runs.remove(0);
        }
        self.runs.push(run);
    }

    fn see_run(&mut self, number: u32, process: crate::id::RunId, at: Timestamp) -> Result<(), &'static str> {
        let session = self.session.ok_or("it has no session")?;
        match self.runs.last_mut() {
            Some(last) if last.number == number && last.run.is_none() => last.run = Some(process),
            Some(last) if last.number < number => {
                self.add_run(TaskRun { number, session, run: Some(process), at });
            }
            Some(_) | None => return Err("a run's number only grows"),
        }
        Ok(())
    }

    /// Resumes a task. A task that was held before its worker started waits again; any other continues.
    fn go_on(&mut self, turns: u64, at: Timestamp) {
        if self.session.is_none() {
            return self.enter(TaskState::Pending, at, None);
        }
        self.turns_before = turns;
        self.enter(TaskState::Deploying, at, None);
    }

    /// Records a conflict of prerequisites: nothing was started, and the task waits until the conflict is resolved.
    fn cannot_begin(&mut self, conflict: &BaseConflict, at: Timestamp) -> Result<(), &'static str> {
        if self.state != TaskState::Deploying {
            return Err("it is not about to begin");
        }
        self.session = None;
        self.conflict = Some(conflict.clone());
        self.enter(TaskState::Pending, at, None);
        Ok(())
    }

    /// Resets a task for another attempt. Worker, branch and history stay.
    fn begin_again(&mut self, at: Timestamp) {
        self.ending = None;
        self.result = None;
        self.session = None;
        self.conflict = None;
        self.commits = None;
        self.captured = None;
        self.capture_failed = None;
        // What the branch gets from now on is not merged by what was merged before.
        self.merged = None;
        self.remedies = Remedies::default();
        self.enter(TaskState::Pending, at, None);
    }

    fn remedied(&mut self, remedy: Remedy, turns: u64, at: Timestamp) {
        self.remedies.last_at = Some(at);
        match remedy {
            Remedy::Nudge => self.remedies.nudges += 1,
            Remedy::Escalate => self.remedies.escalations += 1,
            Remedy::Restart => {
                self.remedies.restarts += 1;
                // Begun again, it can give reason to ask again.
                self.remedies.escalations = 0;
                self.go_on(turns, at);
            }
        }
    }
}

impl TaskEvent {
    /// Whether the event may follow the end: events about the branch and the reports may.
    const fn may_follow_the_end(&self) -> bool {
        matches!(
            self,
            Self::Retried {}
                | Self::Merged { .. }
                | Self::TreeRemoved {}
                | Self::Discarded { .. }
                | Self::Captured { .. }
                | Self::CaptureFailed { .. }
                | Self::Adopted { .. }
        )
    }
}
