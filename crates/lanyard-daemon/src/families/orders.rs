//! What is asked of a task, and what becomes of what was done for it.

use std::sync::Arc;

use lanyard_core::task::health::Remedy;
use lanyard_core::task::schedule::{self, Field, Hold};
use lanyard_core::task::{
    BaseConflict, MailKind, MailTo, ParentEnd, Task, TaskCommand, TaskEnding, TaskEvent, TaskRefusal,
    TaskState, WorkerKind, decide,
};
use lanyard_core::{Actor, MailId, SessionId, TaskId, WorkerId};
use lanyard_store::Store;

use crate::families::owner::Owner;
use crate::families::post::Letter;
use crate::families::work::{Done, Settled};
use crate::families::{By, FamilyError, plans, refused, wrong};
use lanyard_engine::engine::AskError;

impl By {
    /// Lanyard itself.
    pub(super) fn lanyard() -> Self {
        Self { actor: Actor::system("families"), session: None }
    }
}

impl Owner {
    /// Decides and writes.
    pub(crate) fn order(&mut self, id: TaskId, command: &TaskCommand, by: &By) -> Result<(), FamilyError> {
        let task = self.task(id)?;
        let (events, was_open) = (decide(task, command)?, !task.state.is_ended());
        for event in events {
            self.write(id, event, &by.actor);
        }
        // One that ends without ever having been worked at has nothing to settle. Its end is told once, however often it
        // is asked for.
        let ended = self.tasks.get(&id).filter(|task| was_open && task.state.is_ended()).cloned();
        if let Some(task) = ended {
            self.has_ended(&task, "");
        }
        Ok(())
    }

    /// Writes what was done with a task's branch.
    pub(crate) fn note(&mut self, id: TaskId, event: TaskEvent, by: &By) -> Result<(), FamilyError> {
        self.task(id)?;
        let is_merged = matches!(event, TaskEvent::Merged { .. });
        self.write(id, event, &by.actor);
        if is_merged {
            self.retry_conflicted(id);
        }
        Ok(())
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.tools.store.clone()
    }

    /// Has it worked at now. `force` is for whoever knows better than the schedule.
    pub(crate) fn deploy(&mut self, id: TaskId, force: bool, by: &By) -> Result<(), FamilyError> {
        let task = self.task(id)?.clone();
        let blocked = self.blocked(&task, force)?;
        self.begin(id, blocked, by)
    }

    /// Has one that has ended worked at again now; what holds it is found before anything is written.
    pub(crate) fn redeploy(&mut self, id: TaskId, by: &By) -> Result<(), FamilyError> {
        let again = Task { state: TaskState::Pending, ..self.task(id)?.clone() };
        if let Some((on, state)) = self.blocked(&again, false)? {
            return Err(TaskRefusal::Blocked { task: id, on, state }.into());
        }
        self.retry(id, true, by)?;
        self.deploy(id, false, by)
    }

    /// A task it depends on that is not completed. What else holds it is refused.
    fn blocked(&mut self, task: &Task, force: bool) -> Result<Option<(TaskId, TaskState)>, FamilyError> {
        if self.halted {
            return Err(refused("halted", "everything was halted", "lift it with `lanyard halt --lift`"));
        }
        self.load_around(task.id)?;
        let blocked = match schedule::blocked(task, &self.tasks) {
            Some(Hold::Waits(on)) if !force => on.first().map(|on| (on.id, on.state)),
            Some(_) | None => None,
        };
        if task.state == TaskState::Pending && blocked.is_none() && !force {
            // That its plan is not active yet holds nobody who asks for it by name.
            let rules = self.tools.rules().families;
            let field = Field { tasks: &self.tasks, plan: None, halted: false, rules: &rules };
            // Whoever asks for it may have resolved a conflict.
            let task = &Task { conflict: None, ..task.clone() };
            if let Some(hold) = schedule::hold(task, &field) {
                let what = format!("task {} cannot start now: {hold}", task.id);
                return Err(refused("task_held", what, "wait, or deploy it with `--force`"));
            }
        }
        Ok(blocked)
    }

    pub(super) fn begin(
        &mut self,
        id: TaskId,
        blocked: Option<(TaskId, TaskState)>,
        by: &By,
    ) -> Result<(), FamilyError> {
        let chat = self.task(id)?.spec.chat;
        let turns = match chat {
            Some(chat) => self.turns_of(chat)?,
            None => 0,
        };
        let (now, clock) = (self.now(), self.tools.clock.clone());
        let session = SessionId::mint(now, clock.random());
        let worker = WorkerId::mint(now, clock.random());
        self.order(id, &TaskCommand::Deploy { session, worker, blocked, turns }, by)
    }

    fn turns_of(&self, session: SessionId) -> Result<u64, FamilyError> {
        Ok(self.tools.store.load(session)?.map_or(0, |loaded| loaded.session.turns))
    }

    /// What it depends on, and its plan, in memory.
    fn load_around(&mut self, id: TaskId) -> Result<(), FamilyError> {
        let task = self.task(id)?.clone();
        for on in &task.spec.depends_on {
            match self.task(*on) {
                Ok(_) | Err(FamilyError::NoTask(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Begins a task that is to be begun as soon as nothing holds it.
    pub(super) fn begin_if_free(&mut self, id: TaskId) {
        let wanted =
            self.tasks.get(&id).is_some_and(|task| task.state == TaskState::Pending && task.spec.auto);
        if !wanted {
            return;
        }
        let begun = match self.hold_of(id) {
            Ok(None) => self.begin(id, None, &By::lanyard()),
            Ok(Some(_)) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = begun {
            tracing::warn!(task = %id, %error, "a task could not be begun");
        }
    }

    /// What holds a task, if anything does.
    pub(super) fn hold_of(&mut self, id: TaskId) -> Result<Option<Hold>, FamilyError> {
        self.load_around(id)?;
        let task = self.task(id)?.clone();
        let plan = plans::status(&*self.tools.store, &task)?;
        let rules = self.tools.rules().families;
        let field = Field { tasks: &self.tasks, plan, halted: self.halted, rules: &rules };
        Ok(schedule::hold(&task, &field))
    }

    pub(crate) fn resume(&mut self, id: TaskId, by: &By) -> Result<(), FamilyError> {
        let session = self.task(id)?.session;
        let turns = match session {
            Some(session) => self.turns_of(session)?,
            None => 0,
        };
        self.order(id, &TaskCommand::Resume { turns }, by)
    }

    /// Runs it again, by the same worker.
    pub(crate) fn retry(&mut self, id: TaskId, deploy: bool, by: &By) -> Result<(), FamilyError> {
        // One that could not begin was to begin.
        let deploy = deploy || self.task(id)?.conflict.is_some();
        self.order(id, &TaskCommand::Retry, by)?;
        self.revive(MailTo::Task(id))?;
        let mut spec = self.task(id)?.spec.clone();
        if deploy && !spec.auto {
            spec.auto = true;
            self.order(id, &TaskCommand::Edit { spec: Box::new(spec) }, by)?;
        }
        if let Some(plan) = self.task(id)?.plan {
            self.plans.insert(plan);
            if deploy {
                self.reopen(plan)?;
            }
        }
        Ok(())
    }

    /// What was done for a task.
    pub(super) fn done(&mut self, id: TaskId, done: Done) {
        if !self.tasks.contains_key(&id) {
            return;
        }
        let actor = Actor::system("families");
        match done {
            Done::Asked => self.worked(id),
            Done::Prompted => {
                self.worked(id);
                let waits =
                    |task: &Task| task.state == TaskState::Deploying && task.spec.kind == WorkerKind::Chat;
                if self.tasks.get(&id).is_some_and(waits) {
                    self.write(id, TaskEvent::Started {}, &actor);
                }
            }
            Done::TreeMade { tree } => {
                self.worked(id);
                if self.tasks.get(&id).is_some_and(|task| !task.state.is_ended()) {
                    self.write(id, TaskEvent::TreeMade { tree }, &actor);
                }
            }
            Done::Conflicted(conflict) => {
                self.worked(id);
                self.conflicted(id, conflict);
            }
            Done::Settled(settled) => {
                self.worked(id);
                self.settled(id, *settled);
            }
            Done::Failed { why, for_good } => self.failed(id, why, for_good),
        }
    }

    /// It cannot begin. Whoever it works for hears of it; a person sees what holds it.
    fn conflicted(&mut self, id: TaskId, conflict: BaseConflict) {
        let begins = |task: &Task| task.state == TaskState::Deploying && task.ending.is_none();
        if self.tasks.get(&id).is_none_or(|task| !begins(task)) {
            return;
        }
        let hold = Hold::Conflict { task: id, conflict: conflict.clone() };
        tracing::warn!(task = %id, %hold, "a task cannot begin");
        self.write(id, TaskEvent::BaseConflict { conflict }, &Actor::system("families"));
        let Some(task) = self.tasks.get(&id).cloned() else { return };
        if let Some(to) = task.reports_to.filter(|to| self.check_box(*to).is_ok()) {
            let words = format!("\"{}\" cannot begin: {hold}", task.spec.title);
            let letter = self.name_in(Letter::from_task(&task, to, MailKind::Error, &words));
            self.post(letter);
        }
    }

    /// What is merged may fit now: those that waited for it are tried again.
    fn retry_conflicted(&mut self, merged: TaskId) {
        let waits = |task: &&Task| task.conflict.is_some() && task.spec.depends_on.contains(&merged);
        let ids: Vec<TaskId> = self.tasks.values().filter(waits).map(|task| task.id).collect();
        for id in ids {
            if let Err(error) = self.retry(id, true, &By::lanyard()) {
                tracing::warn!(task = %id, %error, "a task that could not begin is not tried again");
            }
        }
    }

    fn settled(&mut self, id: TaskId, settled: Settled) {
        let actor = Actor::system("families");
        if self.tasks.get(&id).is_none_or(|task| task.state.is_ended()) {
            return;
        }
        let words = settled.left.words();
        if let Some(captured) = settled.captured {
            self.write(id, TaskEvent::Captured { captured }, &actor);
        }
        if let Some(why) = settled.capture_failed {
            self.write(id, TaskEvent::CaptureFailed { why }, &actor);
        }
        if let Some(commits) = settled.commits {
            self.write(id, TaskEvent::BranchCounted { commits }, &actor);
        }
        if settled.tree_removed {
            self.write(id, TaskEvent::TreeRemoved {}, &actor);
        }
        self.write(id, TaskEvent::Ended { state: settled.state, reason: settled.reason }, &actor);
        if let Some(task) = self.tasks.get(&id).cloned() {
            self.has_ended(&task, &words);
        }
    }

    /// Whoever it works for hears of it in the same write, and those who work for it get a new parent or an end.
    fn has_ended(&mut self, task: &Task, left: &str) {
        self.plans.extend(task.plan);
        if let Some(to) = task.reports_to {
            let letter = self.name_in(Letter::of_end(task, to, left));
            self.post(letter);
        }
        let children: Vec<Task> = self.tasks.open_below(MailTo::Task(task.id)).cloned().collect();
        for child in children {
            self.orphaned(&child, task.reports_to);
        }
    }

    /// Its parent has ended: what was declared happens.
    pub(super) fn orphaned(&mut self, child: &Task, next: Option<MailTo>) {
        match child.spec.when_parent_ends {
            ParentEnd::Wait => {}
            ParentEnd::Adopt => {
                self.write(child.id, TaskEvent::Adopted { reports_to: next }, &Actor::system("families"));
            }
            ParentEnd::Cancel => {
                let reason = Some("its parent has ended".to_owned());
                let cancel = TaskCommand::Cancel { reason, now: false };
                if let Err(error) = self.order(child.id, &cancel, &By::lanyard()) {
                    tracing::warn!(task = %child.id, %error, "a task could not be cancelled with its parent");
                }
            }
        }
    }

    /// Its agent was lost: it is brought back, but not for ever.
    pub(super) fn restart_or_fail(&mut self, id: TaskId, turns: u64) {
        let Some(task) = self.tasks.get(&id) else { return };
        let why = task.reason.clone().unwrap_or_else(|| "its agent was lost".to_owned());
        let actor = Actor::system("health");
        let event = if task.remedies.restarts < self.tools.rules().health.restarts {
            TaskEvent::Remedied { remedy: Remedy::Restart, why, turns }
        } else {
            let reason = Some(format!("its agent was lost {} times: {why}", task.remedies.restarts + 1));
            TaskEvent::EndAsked { ending: TaskEnding::Fail, reason }
        };
        self.write(id, event, &actor);
    }

    /// What it needs cannot be had.
    pub(super) fn give_up(&mut self, id: TaskId, why: String) {
        let Some(task) = self.tasks.get(&id).filter(|task| !task.state.is_ended()) else { return };
        tracing::error!(task = %id, why, "a task is given up");
        let actor = Actor::system("families");
        if task.ending.is_none() {
            let event = TaskEvent::EndAsked { ending: TaskEnding::Fail, reason: Some(why) };
            return self.write(id, event, &actor);
        }
        // Ending it failed too; record the end anyway.
        self.write(id, TaskEvent::Ended { state: TaskState::Failed, reason: Some(why) }, &actor);
        if let Some(task) = self.tasks.get(&id).cloned() {
            self.has_ended(&task, "");
        }
    }

    /// Gives a task to another who hears of it.
    pub(crate) fn adopt(&mut self, id: TaskId, parent: Option<MailTo>, by: &By) -> Result<(), FamilyError> {
        let mut next = parent;
        // Nobody may end up hearing of itself.
        while let Some(MailTo::Task(above)) = next {
            if above == id {
                let what = format!("task {id} would report to itself");
                return Err(refused("adopt_cycle", what, "name a task that is not below it"));
            }
            next = self.task(above)?.reports_to;
        }
        if self.task(id)?.reports_to != parent {
            self.write(id, TaskEvent::Adopted { reports_to: parent }, &by.actor);
        }
        Ok(())
    }

    /// A word from a task to whoever it works for, once for a key.
    pub(super) fn tell_parent(
        &mut self,
        id: TaskId,
        kind: MailKind,
        text: &str,
        key: Option<MailId>,
    ) -> Result<(), FamilyError> {
        let task = self.task(id)?.clone();
        if let Some(mail) = self.asked_before(key)? {
            let from = (mail.from.task, mail.from.run.unwrap_or_default());
            let text = self.mail_text(&mail.from, text);
            let same = from == (Some(id), task.run) && mail.kind == kind && mail.text == text;
            return if same { Ok(()) } else { Err(AskError::KeyConflict.into()) };
        }
        if text.trim().is_empty() {
            return Err(wrong("field_empty", "the report is empty", "write something"));
        }
        // Its end was the last word.
        if task.state.is_ended() {
            return Err(TaskRefusal::Ended { task: id, state: task.state }.into());
        }
        let Some(to) = task.reports_to else {
            return Err(refused(
                "no_parent",
                format!("task {id} reports to no task or session"),
                "end your turn with it instead",
            ));
        };
        self.check_box(to)?;
        let letter = self.name_in(Letter::from_task(&task, to, kind, text));
        self.post(Letter { id: key, ..letter });
        Ok(())
    }
}
