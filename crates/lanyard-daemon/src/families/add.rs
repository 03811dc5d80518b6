//! Making tasks: what was asked for, checked against the agents, plans and tasks there are.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use lanyard_core::task::{
    Isolation, MailTo, NewTask, TaskCreated, TaskRefusal, TaskSpec, WorkerKind, create, schedule,
};
use lanyard_core::{PlanId, SessionId, TaskId};

use crate::families::owner::Owner;
use crate::families::{By, FamilyError, find, plans, refused, wrong};

/// Tasks that may be made at once.
pub(crate) const ADD_MAX: usize = 500;

/// Tasks to be made together: they may name each other by their key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Adding {
    pub(crate) tasks: Vec<NewTask>,
    /// The plan all of them belong to.
    pub(crate) plan: Option<(PlanId, String)>,
}

impl Owner {
    /// All of them or none.
    pub(crate) fn add(&mut self, adding: Adding, by: &By) -> Result<Vec<TaskId>, FamilyError> {
        if adding.tasks.len() > ADD_MAX {
            let what = format!("{} tasks are more than can be made at once", adding.tasks.len());
            return Err(wrong("tasks_too_many", what, format!("make at most {ADD_MAX} at a time")));
        }
        let (now, clock) = (self.now(), self.tools.clock.clone());
        // Minted in order, so that the order they were named in is the order of their ids.
        let base = TaskId::mint(now, clock.random()).as_u128();
        let ids: Vec<TaskId> =
            (0..adding.tasks.len()).map(|at| TaskId::from_u128(base.wrapping_add(at as u128))).collect();
        let mut keys: HashMap<String, TaskId> = HashMap::new();
        for (new, id) in adding.tasks.iter().zip(&ids) {
            if let Some(key) = &new.key
                && keys.insert(key.clone(), *id).is_some()
            {
                let what = format!("two tasks have the key `{key}`");
                return Err(wrong("task_key_taken", what, "give each its own key"));
            }
        }
        let mut made = Vec::new();
        for (new, id) in adding.tasks.iter().zip(&ids) {
            made.push((*id, self.made(new, adding.plan.as_ref(), &keys, by)?));
        }
        self.no_cycle(made.iter().map(|(id, created)| (*id, &created.spec)))?;
        // All is checked before anything is written.
        let mut events = Vec::new();
        for (at, (id, created)) in made.into_iter().enumerate() {
            if let Some(session) = by.session {
                self.may_spawn(session, &created, at)?;
            }
            events.push((id, create(created)?));
        }
        if let Some(session) = by.session {
            self.count_spawns(session, events.len());
        }
        for (id, event) in events {
            self.write(id, event, &by.actor);
        }
        self.plans.extend(adding.plan.map(|(plan, _)| plan));
        Ok(ids)
    }

    fn made(
        &mut self,
        new: &NewTask,
        plan: Option<&(PlanId, String)>,
        keys: &HashMap<String, TaskId>,
        by: &By,
    ) -> Result<TaskCreated, FamilyError> {
        let plan = match (plan, &new.plan) {
            (Some(plan), _) => Some(plan.clone()),
            (None, Some(name)) => {
                let (place, plan) = plans::find(&*self.tools.store, name, new.workspace.as_deref())?;
                if plan.archived {
                    return Err(lanyard_core::paper::PaperRefusal::Archived.into());
                }
                Some((plan.id, place))
            }
            (None, None) => None,
        };
        if let (Some((plan, _)), Some(key)) = (&plan, &new.key)
            && self.in_plan(*plan, key)?.is_some()
        {
            let what = format!("another task of the plan has the key `{key}`");
            return Err(wrong("task_key_taken", what, "choose another key, or go on with that task"));
        }
        let parent = new.parent.as_deref().map(|name| self.by_key(name, plan.as_ref(), keys)).transpose()?;
        let chat = new.session.as_deref().map(|name| self.chat(name)).transpose()?;
        let reports_to = match (parent, by.session) {
            (Some(parent), _) => Some(MailTo::Task(parent)),
            (None, Some(session)) => Some(find::box_of(&*self.tools.store, session)?),
            (None, None) => None,
        };
        let depends_on = new
            .depends_on
            .iter()
            .map(|name| self.by_key(name, plan.as_ref(), keys))
            .collect::<Result<Vec<_>, _>>()?;
        self.known_agent(new)?;
        let workspace = self.workspace(new, plan.as_ref(), by)?;
        if let Some(folder) = &workspace
            && new.kind == WorkerKind::Background
            && new.isolation != Isolation::Shared
            && !Path::new(folder).is_dir()
        {
            let what = format!("there is no folder `{folder}`");
            return Err(wrong("workspace_missing", what, "name one that is there with `workspace`"));
        }
        let spec = TaskSpec {
            key: new.key.clone(),
            title: new.title.clone(),
            prompt: new.prompt.clone().unwrap_or_else(|| new.title.clone()),
            agent: new.agent.clone(),
            depends_on,
            priority: new.priority,
            group: new.group.clone(),
            files: new.files.clone(),
            base: new.base.clone(),
            kind: if chat.is_some() { WorkerKind::Chat } else { new.kind },
            isolation: new.isolation,
            when_parent_ends: new.when_parent_ends,
            chat,
            auto: new.deploy,
            may_spawn: new.may_spawn.unwrap_or(by.session.is_none()),
            subagents: new.subagents,
            bounds: new.bounds.clone(),
        };
        Ok(TaskCreated {
            plan: plan.map(|(plan, _)| plan),
            parent,
            reports_to,
            workspace,
            created_in: by.session,
            aliases: new.aliases.clone(),
            spec,
        })
    }

    fn known_agent(&self, new: &NewTask) -> Result<(), FamilyError> {
        if new.kind != WorkerKind::Background || new.session.is_some() {
            return Ok(());
        }
        let agents = &self.tools.agents;
        let found = match new.agent.as_deref() {
            Some(agent) => agents.named(agent),
            None => agents.default_name().and_then(|agent| agents.named(&agent)),
        };
        found.map(drop).map_err(|refusal| wrong(refusal.code, refusal.title, refusal.advice))
    }

    fn workspace(
        &mut self,
        new: &NewTask,
        plan: Option<&(PlanId, String)>,
        by: &By,
    ) -> Result<Option<String>, FamilyError> {
        if let Some((_, place)) = plan {
            return Ok(Some(place.clone()).filter(|place| !place.is_empty()));
        }
        if new.workspace.is_some() || by.session.is_none() {
            return Ok(new.workspace.clone());
        }
        let Some(session) = by.session else { return Ok(None) };
        Ok(self.tools.store.load(session)?.and_then(|loaded| loaded.session.workspace))
    }

    /// A task by its key among those made with it or in its plan, else by any name.
    fn by_key(
        &mut self,
        name: &str,
        plan: Option<&(PlanId, String)>,
        keys: &HashMap<String, TaskId>,
    ) -> Result<TaskId, FamilyError> {
        if let Some(id) = keys.get(name) {
            return Ok(*id);
        }
        if let Some((plan, _)) = plan
            && let Some(id) = self.in_plan(*plan, name)?
        {
            return Ok(id);
        }
        self.named(name)
    }

    /// The task a plan calls by this key.
    fn in_plan(&mut self, plan: PlanId, key: &str) -> Result<Option<TaskId>, FamilyError> {
        self.load_plan(plan)?;
        let mut mine = self.tasks.values().filter(|task| task.plan == Some(plan));
        Ok(mine.find(|task| task.spec.key.as_deref() == Some(key)).map(|task| task.id))
    }

    fn chat(&self, name: &str) -> Result<SessionId, FamilyError> {
        let mut found = find::sessions_named(&*self.tools.store, name)?;
        let known = found.pop().filter(|_| found.is_empty());
        match known {
            Some(id) if self.tools.store.load(id)?.is_some_and(|loaded| !loaded.session.deleted) => Ok(id),
            Some(_) | None => Err(refused(
                "session_not_found",
                format!("there is no session `{name}`"),
                "list the sessions with `lanyard ls --all`",
            )),
        }
    }

    /// Refuses dependencies that would wait for each other.
    fn no_cycle<'a>(&self, specs: impl Iterator<Item = (TaskId, &'a TaskSpec)>) -> Result<(), FamilyError> {
        let held = self.tasks.values().map(|task| (task.id, task.spec.depends_on.clone()));
        let mut depends: BTreeMap<TaskId, Vec<TaskId>> = held.collect();
        depends.extend(specs.map(|(id, spec)| (id, spec.depends_on.clone())));
        match schedule::cycle(&depends) {
            Some(tasks) => Err(TaskRefusal::Cycle { tasks }.into()),
            None => Ok(()),
        }
    }

    /// What is to be different of a task nobody works at yet.
    pub(crate) fn edit(
        &mut self,
        id: TaskId,
        change: impl FnOnce(&mut TaskSpec),
        depends_on: Option<Vec<String>>,
        by: &By,
    ) -> Result<(), FamilyError> {
        let task = self.task(id)?.clone();
        let mut spec = task.spec.clone();
        change(&mut spec);
        if let Some(agent) = spec.agent.clone() {
            self.known_agent(&NewTask { agent: Some(agent), kind: spec.kind, ..NewTask::default() })?;
        }
        let plan = task.plan.map(|plan| (plan, task.workspace.clone().unwrap_or_default()));
        if let Some(names) = depends_on {
            let keys = HashMap::new();
            spec.depends_on =
                names.iter().map(|name| self.by_key(name, plan.as_ref(), &keys)).collect::<Result<_, _>>()?;
            self.no_cycle(std::iter::once((id, &spec)))?;
        }
        let command = lanyard_core::task::TaskCommand::Edit { spec: Box::new(spec) };
        self.order(id, &command, by)
    }
}
