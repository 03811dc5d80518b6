//! Plans: the same papers agents keep (`memory_plan`), with tasks behind them. A plan that is active is gone on with by
//! itself, as far as dependencies, places and files allow.

use lanyard_core::paper::{NewPlan, Plan, PlanChange, PlanStatus};
use lanyard_core::task::{Task, TaskCommand, TaskResult, TaskState, schedule};
use lanyard_core::{PlanId, TaskId};
use lanyard_store::{Store, TaskFilter};

use crate::families::owner::Owner;
use crate::families::work::as_reason;
use crate::families::{Adding, By, FamilyError, refused, wrong};
use crate::shelf;
use crate::tool_refusal::Refused;
use lanyard_base::failpoint;
use lanyard_engine::engine::{AskError, Key};

/// Tasks that could not be begun, and why.
type Held = Vec<(TaskId, String)>;

/// Papers that say which plan was made under which key.
const REQUESTS: &str = "plan_request";
/// Plans of all workspaces that are looked through.
pub(crate) const PLANS_MAX: usize = 10_000;

impl From<Refused> for FamilyError {
    fn from(refused: Refused) -> Self {
        let (code, what, advice) = refused.parts();
        if code == "paper_busy" { super::refused(code, what, advice) } else { wrong(code, what, advice) }
    }
}

impl From<lanyard_core::paper::PaperRefusal> for FamilyError {
    fn from(refusal: lanyard_core::paper::PaperRefusal) -> Self {
        Refused::from(refusal).into()
    }
}

/// Every plan there is, with its workspace.
pub(crate) fn all(store: &dyn Store) -> Result<Vec<(String, Plan)>, FamilyError> {
    let papers = store.papers_named(shelf::PLAN, None, PLANS_MAX)?;
    let mut plans = Vec::new();
    for paper in papers {
        match shelf::decode::<Plan>(&paper) {
            Ok(plan) => plans.push((paper.place.workspace, plan)),
            Err(refused) => tracing::error!(?refused, "a plan was left out"),
        }
    }
    Ok(plans)
}

/// The plan of that id or name, with its workspace.
pub(crate) fn find(
    store: &dyn Store,
    name: &str,
    workspace: Option<&str>,
) -> Result<(String, Plan), FamilyError> {
    if let Ok(id) = name.parse::<PlanId>() {
        let papers = store.papers_named(shelf::PLAN, Some(&id.to_string()), 1)?;
        if let Some(paper) = papers.into_iter().next() {
            let plan = shelf::decode(&paper)?;
            return Ok((paper.place.workspace, plan));
        }
    }
    let called = |(place, plan): &(String, Plan)| {
        plan.is_called(name) && workspace.is_none_or(|workspace| workspace == place.as_str())
    };
    let mut found: Vec<(String, Plan)> = all(store)?.into_iter().filter(called).collect();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(_), false) => Err(refused(
            "plan_ambiguous",
            format!("more than one plan is called `{name}`"),
            "use its `plan_…` id, or name its workspace",
        )),
        (None, _) => Err(FamilyError::NoPlan(name.to_owned())),
    }
}

/// How the plan of a task stands; nothing for a task without one.
pub(super) fn status(store: &dyn Store, task: &Task) -> Result<Option<PlanStatus>, FamilyError> {
    let Some(id) = task.plan else { return Ok(None) };
    let place = shelf::place(shelf::PLAN, task.workspace.as_deref().unwrap_or_default(), id.to_string());
    match store.paper(&place)? {
        Some(paper) => Ok(Some(shelf::decode::<Plan>(&paper)?.status)),
        // A plan that is gone holds nothing back and starts nothing.
        None => Ok(Some(PlanStatus::Draft)),
    }
}

/// Plans with their tasks' states.
pub(crate) fn tasks_of(store: &dyn Store, plan: PlanId) -> Result<Vec<Task>, FamilyError> {
    let filter = TaskFilter { plan: Some(plan), ..TaskFilter::default() };
    Ok(store.tasks(&filter, None, PLANS_MAX)?)
}

impl Owner {
    /// The plan that was asked for under this key, or the id it is to have. Another request under it is refused.
    pub(crate) fn plan_for(&self, key: Option<&Key>) -> Result<(PlanId, bool), FamilyError> {
        let fresh = PlanId::mint(self.now(), self.tools.clock.random());
        let Some(key) = key else { return Ok((fresh, false)) };
        let store = &*self.tools.store;
        let place = shelf::place(REQUESTS, "", format!("{:032x}", u128::from_be_bytes(key.key)));
        let asked = format!("{:032x}", u128::from_be_bytes(key.request));
        let (_, kept) = shelf::amend(
            store,
            &place,
            self.now(),
            || Ok((fresh, asked.clone())),
            |kept: &mut (PlanId, String)| Ok(kept.clone()),
        )?;
        if kept.1 != asked {
            return Err(AskError::KeyConflict.into());
        }
        let written = !store.papers_named(shelf::PLAN, Some(&kept.0.to_string()), 1)?.is_empty();
        Ok((kept.0, written))
    }

    /// Makes a plan with its tasks: all of it, or none.
    pub(crate) fn new_plan(
        &mut self,
        id: PlanId,
        new: NewPlan,
        workspace: &str,
        mut adding: Adding,
        start: bool,
        by: &By,
    ) -> Result<PlanId, FamilyError> {
        let now = self.now();
        let store = self.tools.store.clone();
        let known = shelf::plans(&*store, workspace)?;
        if known.len() >= shelf::PLANS_MAX {
            let what = format!("this workspace has {} plans already", known.len());
            return Err(refused("plans_full", what, "go on with one of them"));
        }
        if let Some(name) =
            new.name.as_deref().filter(|name| known.iter().any(|plan| plan.id != id && plan.is_called(name)))
        {
            let what = format!("another plan here is called `{name}`");
            return Err(wrong("plan_name_taken", what, "choose another name, or go on with that plan"));
        }
        let mut plan = Plan::new(id, new, &by.actor.name, now)?;
        if start {
            plan.update(PlanChange { status: Some(PlanStatus::Active), ..PlanChange::default() })?;
        }
        adding.plan = Some((id, workspace.to_owned()));
        // On disk before its tasks are, so that none of them is without a plan.
        let place = shelf::place(shelf::PLAN, workspace, id.to_string());
        // One that is there without its tasks was asked for before, by a request that broke off.
        if store.paper(&place)?.is_none() {
            shelf::create(&*store, &place, now, &plan)?;
        }
        if let Err(error) = self.add(adding, by) {
            store.remove_paper(&place)?;
            return Err(error);
        }
        self.plans.insert(id);
        Ok(id)
    }

    pub(crate) fn set_plan(
        &mut self,
        name: &str,
        workspace: Option<&str>,
        status: PlanStatus,
    ) -> Result<PlanId, FamilyError> {
        let store = self.tools.store.clone();
        let (place, plan) = find(&*store, name, workspace)?;
        let change = PlanChange { status: Some(status), ..PlanChange::default() };
        shelf::amend_plan(&*store, &place, &plan.id.to_string(), self.now(), |plan| {
            Ok(plan.update(change.clone())?)
        })?;
        self.load_plan(plan.id)?;
        self.plans.insert(plan.id);
        Ok(plan.id)
    }

    /// A plan that has come to its end goes on when one of its tasks is to be worked at again.
    pub(super) fn reopen(&mut self, plan: PlanId) -> Result<(), FamilyError> {
        let found = match find(&*self.tools.store, &plan.to_string(), None) {
            Ok((_, found)) => found,
            Err(FamilyError::NoPlan(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        match found.status {
            PlanStatus::Completed | PlanStatus::Failed if !found.archived => {
                self.set_plan(&plan.to_string(), None, PlanStatus::Active)?;
            }
            PlanStatus::Completed
            | PlanStatus::Failed
            | PlanStatus::Draft
            | PlanStatus::Active
            | PlanStatus::Paused
            // An operator ended it, and an operator starts it again.
            | PlanStatus::Cancelled => {}
        }
        Ok(())
    }

    /// Cancels a plan: first its open tasks with all below them, on disk, then the plan's mark. Nothing of the plan can
    /// begin in between, since this thread begins all tasks. A daemon that dies in between leaves a plan without open
    /// tasks. A repeat cancels what is open and otherwise changes nothing.
    pub(crate) fn cancel_plan(
        &mut self,
        name: &str,
        workspace: Option<&str>,
        reason: Option<&str>,
        now: bool,
        by: &By,
    ) -> Result<PlanId, FamilyError> {
        let (_, mut plan) = find(&*self.tools.store, name, workspace)?;
        // Refused before any task is cancelled.
        plan.update(PlanChange { status: Some(PlanStatus::Cancelled), ..PlanChange::default() })?;
        self.load_plan(plan.id)?;
        let tasks = self.held_of(plan.id).map(|task| task.id).collect();
        let reason = reason.filter(|reason| !reason.trim().is_empty()).map(as_reason);
        let reason = reason.unwrap_or_else(|| "its plan was cancelled".to_owned());
        self.cancel_all(tasks, Some(&reason), now, by)?;
        self.commit_early()?;
        failpoint::hit(failpoint::IN_PLAN_CANCEL);
        self.set_plan(name, workspace, PlanStatus::Cancelled)
    }

    pub(super) fn load_plan(&mut self, plan: PlanId) -> Result<(), FamilyError> {
        Ok(self.load_tasks(&TaskFilter { plan: Some(plan), ..TaskFilter::default() })?)
    }

    /// Begins what can be begun, and says when the plan has come to its end.
    pub(super) fn go_on_with(&mut self, plan: PlanId) -> Result<(), FamilyError> {
        self.load_plan(plan)?;
        let mine = |task: &&Task| task.plan == Some(plan);
        let order: Vec<TaskId> =
            schedule::order(self.tasks.values().filter(mine)).iter().map(|task| task.id).collect();
        let Some(first) = order.first().and_then(|id| self.tasks.get(id)).cloned() else { return Ok(()) };
        if status(&*self.tools.store, &first)? != Some(PlanStatus::Active) {
            return Ok(());
        }
        for id in order {
            let pending = self.tasks.get(&id).is_some_and(|task| task.state == TaskState::Pending);
            if pending && self.hold_of(id)?.is_none() {
                self.begin(id, None, &By::lanyard())?;
            }
        }
        self.close_plan(plan, first.workspace.as_deref().unwrap_or_default());
        Ok(())
    }

    /// A plan whose tasks are all completed is completed; one that can only wait for what failed has failed.
    fn close_plan(&mut self, plan: PlanId, workspace: &str) {
        let mine: Vec<&Task> = self.tasks.values().filter(|task| task.plan == Some(plan)).collect();
        let all = |test: fn(TaskState) -> bool| mine.iter().all(|task| test(task.state));
        let to = if all(|state| state == TaskState::Completed) {
            PlanStatus::Completed
        } else if schedule::is_stuck(&mine, &self.tasks) {
            PlanStatus::Failed
        } else {
            return;
        };
        let change = PlanChange { status: Some(to), ..PlanChange::default() };
        let store = self.tools.store.clone();
        let changed = shelf::amend_plan(&*store, workspace, &plan.to_string(), self.now(), |paper| {
            Ok(paper.update(change.clone())?)
        });
        match changed {
            Ok(_) => tracing::info!(%plan, status = to.as_str(), "a plan came to its end"),
            // Steps that agents keep in it may still be open; it is theirs to say when it is done then.
            Err(refused) => tracing::info!(%plan, ?refused, "a plan whose tasks have ended stays open"),
        }
    }

    /// Begins all of a plan that nothing but its status holds.
    pub(crate) fn deploy_plan(
        &mut self,
        plan: PlanId,
        force: bool,
        by: &By,
    ) -> Result<(Vec<TaskId>, Held), FamilyError> {
        self.load_plan(plan)?;
        let mine = |task: &&Task| task.plan == Some(plan) && task.state == TaskState::Pending;
        let order: Vec<TaskId> =
            schedule::order(self.tasks.values().filter(mine)).iter().map(|task| task.id).collect();
        let (mut begun, mut held) = (Vec::new(), Vec::new());
        for id in order {
            let task = self.task(id)?.clone();
            // What comes later in the plan comes later, however urgent it is.
            if let Some(hold) = schedule::blocked(&task, &self.tasks) {
                held.push((id, hold.to_string()));
                continue;
            }
            match self.deploy(id, force, by) {
                Ok(()) => begun.push(id),
                Err(error @ (FamilyError::Closing | FamilyError::Unavailable(_))) => return Err(error),
                Err(error) => held.push((id, error.to_string())),
            }
        }
        Ok((begun, held))
    }

    /// Those in memory.
    pub(crate) fn held_of(&self, plan: PlanId) -> impl Iterator<Item = &Task> {
        self.tasks.values().filter(move |task| task.plan == Some(plan))
    }

    /// What was done before the plan came here.
    pub(crate) fn tick_off(&mut self, plan: PlanId, done: &[String], by: &By) -> Result<(), FamilyError> {
        let is_done = |task: &&Task| task.spec.key.as_ref().is_some_and(|key| done.contains(key));
        let ids: Vec<TaskId> = self.held_of(plan).filter(is_done).map(|task| task.id).collect();
        for id in ids {
            let summary = "it was done before the plan was imported".to_owned();
            let result = TaskResult { summary, evidence: None, by_turn_end: false };
            self.order(id, &TaskCommand::Complete { result }, by)?;
        }
        Ok(())
    }

    /// Puts a plan away. Its tasks must have ended.
    pub(crate) fn archive_plan(
        &mut self,
        name: &str,
        workspace: Option<&str>,
    ) -> Result<PlanId, FamilyError> {
        let store = self.tools.store.clone();
        let (place, plan) = find(&*store, name, workspace)?;
        let open = tasks_of(&*store, plan.id)?.into_iter().filter(|task| !task.state.is_ended()).count();
        if open > 0 {
            let what = format!("{open} tasks of plan {} have not ended", plan.id);
            return Err(refused("plan_at_work", what, "complete or cancel them first"));
        }
        shelf::amend_plan(&*store, &place, &plan.id.to_string(), self.now(), |plan| {
            plan.archive();
            Ok(())
        })?;
        Ok(plan.id)
    }
}
