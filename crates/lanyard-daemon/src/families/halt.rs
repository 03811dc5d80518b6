//! The emergency stop: a task, a worker, a plan, or everything. While everything is halted no session, turn, run, task or
//! step of a flow begins, also after a restart, until an operator lifts the halt.

use lanyard_api::types::HaltLifted;
use lanyard_core::paper::PlanStatus;
use lanyard_core::session::{Command, InboxChange, PauseReason, StateName, StopScope};
use lanyard_core::task::{MailTo, TaskCommand};
use lanyard_core::{SessionId, TaskId};
use lanyard_store::{Filter, PaperKey, Store, StoreError};

use crate::families::find::Named;
use crate::families::owner::Owner;
use crate::families::{By, FamilyError, Tools, find, plans, work};
use crate::shelf;
use lanyard_engine::engine::{Ask, Halted};

/// Sessions stopped at a time.
const PAGE: usize = 500;

/// What was stopped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stopped {
    pub(crate) tasks: Vec<TaskId>,
    pub(crate) sessions: Vec<SessionId>,
}

fn place() -> PaperKey {
    shelf::place("families", "", "halt")
}

pub(crate) fn how(store: &dyn Store) -> Result<Halted, StoreError> {
    let paper = store.paper(&place())?;
    // One that cannot be read holds everything: what was halted stays so.
    let unreadable =
        || Halted { is: true, reason: Some("the halt cannot be read".to_owned()), ..Halted::default() };
    Ok(paper.map_or_else(Halted::default, |paper| {
        serde_json::from_str(&paper.body).unwrap_or_else(|_| unreadable())
    }))
}

/// No words, however long or empty, keep an emergency stop from working.
fn heard(reason: Option<&str>) -> Option<String> {
    reason.filter(|reason| !reason.trim().is_empty()).map(work::as_reason)
}

impl Owner {
    /// Cancels what is named: a task, a worker's task, all of a plan.
    pub(crate) fn halt(
        &mut self,
        what: &str,
        reason: Option<&str>,
        now: bool,
        by: &By,
    ) -> Result<Stopped, FamilyError> {
        let reason = heard(reason);
        let tasks: Vec<TaskId> = match Named::parse(what) {
            Named::Plan(_) => self.halt_plan(what)?,
            Named::Session(_) | Named::Task(_) | Named::Worker(_) | Named::Run(_) | Named::Mail(_) => {
                vec![self.named(what)?]
            }
            Named::Alias => match self.named(what) {
                Ok(task) => vec![task],
                Err(FamilyError::NoTask(_)) => self.halt_plan(what)?,
                Err(error) => return Err(error),
            },
        };
        Ok(Stopped { tasks: self.cancel_all(tasks, reason.as_deref(), now, by)?, sessions: Vec::new() })
    }

    fn halt_plan(&mut self, name: &str) -> Result<Vec<TaskId>, FamilyError> {
        let (_, plan) = plans::find(&*self.tools.store, name, None)?;
        if plan.status == PlanStatus::Active {
            self.set_plan(&plan.id.to_string(), None, PlanStatus::Paused)?;
        }
        self.load_plan(plan.id)?;
        Ok(self.tasks.values().filter(|task| task.plan == Some(plan.id)).map(|task| task.id).collect())
    }

    /// Those that had not ended, with all below them.
    pub(super) fn cancel_all(
        &mut self,
        mut tasks: Vec<TaskId>,
        reason: Option<&str>,
        now: bool,
        by: &By,
    ) -> Result<Vec<TaskId>, FamilyError> {
        let mut at = 0;
        while let Some(id) = tasks.get(at).copied() {
            at += 1;
            let below = self.tasks.below(MailTo::Task(id)).map(|task| task.id);
            let below: Vec<TaskId> = below.filter(|id| !tasks.contains(id)).collect();
            tasks.extend(below);
        }
        let mut cancelled = Vec::new();
        for id in tasks {
            if self.task(id)?.state.is_ended() {
                continue;
            }
            self.order(id, &TaskCommand::Cancel { reason: reason.map(str::to_owned), now }, by)?;
            cancelled.push(id);
        }
        Ok(cancelled)
    }

    /// Stops everything, and begins nothing until it is lifted.
    pub(crate) fn halt_all(
        &mut self,
        reason: Option<&str>,
        now: bool,
        by: &By,
    ) -> Result<Stopped, FamilyError> {
        let (store, reason) = (self.tools.store.clone(), heard(reason));
        let halted = Halted {
            is: true,
            reason: reason.clone(),
            since: Some(self.now()),
            by: Some(by.actor.name.clone()),
            lifted: None,
        };
        self.keep_halt(&halted)?;
        let open: Vec<TaskId> =
            self.tasks.values().filter(|task| !task.state.is_ended()).map(|task| task.id).collect();
        let mut stopped =
            Stopped { tasks: self.cancel_all(open, reason.as_deref(), now, by)?, ..Stopped::default() };
        let words = reason.unwrap_or_else(|| "everything was halted".to_owned());
        for session in self.at_work()? {
            if find::open_task_of(&*store, session)?.is_some() {
                continue;
            }
            stopped.sessions.push(session);
            let tools = self.tools.clone();
            let reason = Some(work::as_reason(&words));
            self.tools.runtime.spawn(async move {
                let command = Command::Stop { reason, scope: StopScope::Subtree, now };
                if let Err(error) = work::ask_engine(&tools, Ask::Do { session, command }, None).await {
                    tracing::warn!(%session, %error, "a session could not be stopped with everything");
                }
            });
        }
        Ok(stopped)
    }

    /// Sessions in which a turn is running.
    fn at_work(&self) -> Result<Vec<SessionId>, FamilyError> {
        let filter = Filter { state: Some(StateName::Executing), ..Filter::default() };
        let (mut sessions, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.tools.store.list(&filter, cursor.as_ref(), PAGE)?;
            sessions.extend(page.rows.iter().map(|row| row.id));
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(sessions),
            }
        }
    }

    /// Lets work begin again. Turns that the halt held in an inbox start.
    pub(crate) fn lift(&mut self, reason: Option<&str>, by: &By) -> Result<Halted, FamilyError> {
        let held = how(&*self.tools.store)?;
        if !held.is {
            return Ok(held);
        }
        let (at, name) = (self.now(), by.actor.name.clone());
        tracing::info!(by = name, reason, "the halt is lifted");
        let lifted = HaltLifted { at, by: name, reason: heard(reason), halted_at: held.since };
        let lifted = Halted { lifted: Some(lifted), ..Halted::default() };
        self.keep_halt(&lifted)?;
        self.pokes.extend(self.tasks.keys().copied());
        let plans: Vec<_> = self.tasks.values().filter_map(|task| task.plan).collect();
        self.plans.extend(plans);
        self.release_inboxes();
        Ok(lifted)
    }

    /// Lets inboxes go on that only the halt paused, aside. At the start too: the last daemon may have died in between.
    pub(super) fn release_inboxes(&self) {
        let tools = self.tools.clone();
        self.tools.runtime.spawn(async move {
            if let Err(error) = release_inboxes(&tools).await {
                tracing::warn!(%error, "inboxes that the halt paused could not be released");
            }
        });
    }

    /// On disk first, then for everyone.
    fn keep_halt(&mut self, halted: &Halted) -> Result<(), FamilyError> {
        let store = self.tools.store.clone();
        let keep = |held: &mut Halted| {
            *held = halted.clone();
            Ok(())
        };
        shelf::amend(&*store, &place(), self.now(), || Ok(Halted::default()), keep)?;
        self.halted = halted.is;
        self.tools.engine.halting.set(halted.clone());
        Ok(())
    }
}

async fn release_inboxes(tools: &Tools) -> Result<(), FamilyError> {
    let store = tools.store.clone();
    let paused = work::blocking(move || paused_by(&*store, PauseReason::Halted)).await;
    for session in paused.ok_or(FamilyError::Closing)?? {
        let command = Command::Inbox(InboxChange::Go.into());
        if let Err(error) = work::ask_engine(tools, Ask::Do { session, command }, None).await {
            tracing::warn!(%session, %error, "an inbox that the halt paused could not be released");
        }
    }
    Ok(())
}

/// Sessions whose inbox is paused for this reason.
pub(crate) fn paused_by(store: &dyn Store, reason: PauseReason) -> Result<Vec<SessionId>, FamilyError> {
    let filter = Filter { attention: true, ..Filter::default() };
    let (mut sessions, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.list(&filter, cursor.as_ref(), PAGE)?;
        for row in page.rows.iter().filter(|row| row.pending.paused) {
            let held = store.load(row.id)?.map(|loaded| loaded.session);
            if held.is_some_and(|held| held.inbox_paused == Some(reason)) {
                sessions.push(row.id);
            }
        }
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(sessions),
        }
    }
}
