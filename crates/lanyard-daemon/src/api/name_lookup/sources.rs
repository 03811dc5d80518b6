//! Where the things of each kind are found, and the words they are shown with.

use lanyard_api::types::{GateList, NamedItem};
use lanyard_core::flow::Flow;
use lanyard_core::journal::Row;
use lanyard_core::naming::{self, IdPart, MatchedBy, NameKind, in_plan, same_words};
use lanyard_core::notification::Notification;
use lanyard_core::paper::Plan;
use lanyard_core::session::DrivenBy;
use lanyard_core::task::{Mail, Task};
use lanyard_core::text::one_line;
use lanyard_core::{Address, FlowId, MailId, NotificationId, SessionId, TaskId, Timestamp};
use lanyard_store::{
    Filter, FlowFilter, NotificationFilter, NotificationOrder, RecordKind, Store, TaskFilter,
};

use crate::families::{FamilyError, find, plans};

/// Names that stand for the newest thing: of all, and of this folder.
const LAST: &str = "last";
const HERE: &str = ".";
/// Sessions with the words of a title that are compared with it.
const TITLED_MAX: usize = 1_000;
/// Tasks, flows, mail and notifications, the newest, whose keys and titles are compared. Tasks of a plan that is named
/// are all compared.
const RECORDS_MAX: usize = 1_000;
/// Things of one kind that a part of an id may match before it is simply ambiguous.
const PARTS_MAX: usize = 101;
/// Subagents within subagents that are followed up to the session they work in.
const SUBAGENT_LEVELS_MAX: usize = 16;
/// Characters of a message that stand for its title.
const TITLE_CHARS_MAX: usize = 80;

pub(super) struct Sources<'a> {
    pub(super) store: &'a dyn Store,
    /// Open gates, where they were asked for.
    pub(super) gates: Option<GateList>,
    pub(super) workspace: Option<String>,
    pub(super) plan: Option<String>,
    /// The folder that `.` means.
    pub(super) here: Option<String>,
}

/// A thing that a name may mean.
pub(super) struct NameHit {
    pub(super) by: MatchedBy,
    pub(super) ended: bool,
    pub(super) item: NamedItem,
    /// Ids of the same work.
    pub(super) same: Vec<String>,
}

type NameHits = Result<Vec<NameHit>, FamilyError>;

impl Sources<'_> {
    /// The things of a kind that have this name, matched in the best way that finds any.
    pub(super) fn named(&self, kind: NameKind, name: &str) -> NameHits {
        match kind {
            NameKind::Session => self.sessions(name),
            NameKind::Task => self.tasks(name),
            NameKind::Plan => self.plans(name),
            NameKind::Flow
            | NameKind::Worker
            | NameKind::Run
            | NameKind::Mail
            | NameKind::Notification
            | NameKind::Gate => self.others(kind, name),
        }
    }

    /// The newest things of a kind, newest first; archived ones are left out.
    pub(super) fn newest(&self, kind: NameKind, limit: usize) -> NameHits {
        let store = self.store;
        match kind {
            NameKind::Session => {
                let filter = Filter { archived: Some(false), ..self.filter() };
                let rows = store.list(&filter, None, limit)?.rows;
                rows.into_iter().map(|row| self.session(MatchedBy::Newest, row)).collect()
            }
            NameKind::Task => {
                let tasks = self.newest_tasks(limit)?;
                tasks.iter().map(|task| self.task(MatchedBy::Newest, task)).collect()
            }
            NameKind::Worker => Ok(self.newest_tasks(limit)?.iter().filter_map(worker).collect()),
            NameKind::Run => Ok(self.newest_tasks(limit)?.iter().flat_map(runs).collect()),
            NameKind::Plan => {
                let mut plans = self.all_plans()?;
                plans.retain(|(_, plan)| !plan.archived);
                plans.truncate(limit);
                Ok(plans.iter().map(|plan| shown_plan(MatchedBy::Newest, plan)).collect())
            }
            NameKind::Flow => {
                let filter = FlowFilter { workspace: self.workspace.clone(), ..FlowFilter::default() };
                Ok(store
                    .flows(&filter, None, limit)?
                    .iter()
                    .map(|flow| shown_flow(MatchedBy::Newest, flow))
                    .collect())
            }
            NameKind::Mail => {
                Ok(store.newest_mail(limit)?.iter().map(|mail| shown_mail(MatchedBy::Newest, mail)).collect())
            }
            NameKind::Notification => {
                let order = NotificationOrder::Newest { before: None };
                let held = store.notifications(&NotificationFilter::default(), order, limit)?;
                Ok(held.iter().map(|held| notification(MatchedBy::Newest, held)).collect())
            }
            NameKind::Gate => Ok(self.open_gates(limit)),
        }
    }

    /// The newest thing of a kind, where the name stands for that.
    fn latest(&self, kind: NameKind, name: &str) -> NameHits {
        let here = match (name, &self.here) {
            (LAST, _) => None,
            (HERE, Some(here)) => Some(here.as_str()),
            (_, _) => return Ok(Vec::new()),
        };
        let found = match (kind, here) {
            (NameKind::Session, Some(_)) => {
                let filter = Filter { archived: Some(false), workspace: self.here.clone(), ..self.filter() };
                self.newest_started(&filter)?
            }
            (NameKind::Session, None) => {
                self.newest_started(&Filter { archived: Some(false), ..self.filter() })?
            }
            (_, None) => self.newest(kind, 1)?,
            (_, Some(_)) => self.newest(kind, RECORDS_MAX)?,
        };
        Ok(found
            .into_iter()
            .filter(|hit| here.is_none() || hit.item.workspace.as_deref() == here)
            .take(1)
            .collect())
    }

    /// The newest session. An agent's own subagent stands for the session that it works in.
    fn newest_started(&self, filter: &Filter) -> NameHits {
        let Some(mut newest) = self.store.list(filter, None, 1)?.rows.pop() else { return Ok(Vec::new()) };
        for _ in 0..SUBAGENT_LEVELS_MAX {
            let Some(loaded) = self.store.load(newest.id)? else { break };
            let parent = loaded.session.parent.filter(|_| loaded.session.driver() == DrivenBy::Parent);
            let Some(parent) = parent else { break };
            let Some(row) = self.store.rows(&[parent], filter)?.pop() else { break };
            newest = row;
        }
        Ok(vec![self.session(MatchedBy::Newest, newest)?])
    }

    fn filter(&self) -> Filter {
        Filter { workspace: self.workspace.clone(), plan: self.plan.clone(), ..Filter::default() }
    }

    fn sessions(&self, name: &str) -> NameHits {
        let address =
            Address { session: name.to_owned(), workspace: self.workspace.clone(), plan: self.plan.clone() };
        let found = self.store.find(&address)?.into_iter().filter(|found| !found.deleted);
        let ids: Vec<SessionId> = found.map(|found| found.session).collect();
        let by = if naming::is_whole(name) { MatchedBy::Id } else { MatchedBy::Alias };
        let hits = self.rows(by, &ids)?;
        if !hits.is_empty() {
            return Ok(hits);
        }
        let latest = self.latest(NameKind::Session, name)?;
        if !latest.is_empty() {
            return Ok(latest);
        }
        let filter = Filter { text: Some(name.to_owned()), ..self.filter() };
        let rows = self.store.list(&filter, None, TITLED_MAX)?.rows.into_iter();
        let titled = rows.filter(|row| row.title.as_deref().is_some_and(|title| same_words(title, name)));
        let hits = titled.map(|row| self.session(MatchedBy::Title, row)).collect::<NameHits>()?;
        if !hits.is_empty() {
            return Ok(hits);
        }
        match IdPart::parse(name) {
            Some(part) => self.rows(MatchedBy::Part, &self.store.ids_like(&part, PARTS_MAX)?),
            None => Ok(Vec::new()),
        }
    }

    fn rows(&self, by: MatchedBy, ids: &[SessionId]) -> NameHits {
        let rows = self.store.rows(ids, &self.filter())?;
        rows.into_iter().map(|row| self.session(by, row)).collect()
    }

    fn session(&self, by: MatchedBy, row: Row) -> Result<NameHit, FamilyError> {
        let loaded = self.store.load(row.id)?.map(|loaded| loaded.session);
        let (alias, task) =
            loaded.map_or((None, None), |session| (session.aliases.first().cloned(), session.task));
        let item = NamedItem {
            kind: NameKind::Session,
            id: row.id.to_string(),
            name: alias,
            title: row.title,
            state: row.state.as_str().to_owned(),
            workspace: row.workspace,
            created_at: row.created_at,
        };
        Ok(NameHit { by, ended: false, item, same: task.iter().map(ToString::to_string).collect() })
    }

    fn tasks(&self, name: &str) -> NameHits {
        let ids = find::tasks_named(self.store, name)?;
        let by = if naming::is_whole(name) { MatchedBy::Id } else { MatchedBy::Alias };
        let hits = self.tasks_of(by, &ids)?;
        if !hits.is_empty() {
            return Ok(hits);
        }
        let latest = self.latest(NameKind::Task, name)?;
        if !latest.is_empty() {
            return Ok(latest);
        }
        for (plan, key) in in_plan(name) {
            let mut keyed = Vec::new();
            for hit in self.plans(plan)? {
                let Ok(plan) = hit.item.id.parse() else { continue };
                let tasks = plans::tasks_of(self.store, plan)?;
                keyed.extend(tasks.into_iter().filter(|task| task.spec.key.as_deref() == Some(key)));
            }
            if !keyed.is_empty() {
                return keyed.iter().map(|task| self.task(MatchedBy::Key, task)).collect();
            }
        }
        let newest = self.newest_tasks(RECORDS_MAX)?;
        let keyed = newest.iter().filter(|task| task.spec.key.as_deref() == Some(name));
        let hits = keyed.map(|task| self.task(MatchedBy::Key, task)).collect::<NameHits>()?;
        if !hits.is_empty() {
            return Ok(hits);
        }
        let titled = newest.iter().filter(|task| same_words(&task.spec.title, name));
        let hits = titled.map(|task| self.task(MatchedBy::Title, task)).collect::<NameHits>()?;
        if !hits.is_empty() {
            return Ok(hits);
        }
        let ids = self.parts(RecordKind::Task, NameKind::Task, name)?;
        self.tasks_of(MatchedBy::Part, &ids.into_iter().map(TaskId::from_u128).collect::<Vec<_>>())
    }

    fn tasks_of(&self, by: MatchedBy, ids: &[TaskId]) -> NameHits {
        let mut hits = Vec::new();
        for id in ids {
            if let Some(task) = self.store.task(*id)? {
                hits.push(self.task(by, &task)?);
            }
        }
        Ok(hits)
    }

    /// The newest tasks of the plan and the workspace that are asked for; none where no single plan is meant.
    fn newest_tasks(&self, limit: usize) -> Result<Vec<Task>, FamilyError> {
        let mut filter = TaskFilter { workspace: self.workspace.clone(), ..TaskFilter::default() };
        if let Some(plan) = &self.plan {
            let mut plans = self.all_plans()?;
            plans.retain(|(_, held)| held.is_called(plan));
            let [(_, only)] = plans.as_slice() else { return Ok(Vec::new()) };
            filter.plan = Some(only.id);
        }
        Ok(self.store.newest_tasks(&filter, limit)?)
    }

    fn task(&self, by: MatchedBy, task: &Task) -> Result<NameHit, FamilyError> {
        let plan = match task.plan {
            Some(plan) => match plans::find(self.store, &plan.to_string(), None) {
                Ok((_, plan)) => Some(plan),
                Err(FamilyError::NoPlan(_)) => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        let key =
            task.spec.key.as_deref().map(|key| match plan.as_ref().and_then(|plan| plan.name.as_deref()) {
                Some(plan) => format!("{plan}/{key}"),
                None => key.to_owned(),
            });
        let alias = || task.aliases.iter().find(|alias| !lanyard_core::task::is_key(alias)).cloned();
        let item = NamedItem {
            kind: NameKind::Task,
            id: task.id.to_string(),
            name: key.or_else(alias),
            title: Some(task.spec.title.clone()),
            state: task.state.as_str().to_owned(),
            workspace: task.workspace.clone(),
            created_at: task.created_at,
        };
        let session = task.session.iter().map(ToString::to_string);
        let same = session.chain(task.worker.iter().map(ToString::to_string)).collect();
        Ok(NameHit { by, ended: task.state.is_ended(), item, same })
    }

    /// All plans of the workspace that is asked for, newest first.
    fn all_plans(&self) -> Result<Vec<(String, Plan)>, FamilyError> {
        let mut plans = plans::all(self.store)?;
        plans.retain(|(place, _)| self.workspace.as_ref().is_none_or(|workspace| workspace == place));
        plans.sort_by_key(|(_, plan)| std::cmp::Reverse(plan.id));
        Ok(plans)
    }

    fn plans(&self, name: &str) -> NameHits {
        let plans = self.all_plans()?;
        let part = IdPart::parse(name).filter(|part| part.is_of(NameKind::Plan.prefix()));
        let called = |plan: &Plan| plan.is_called(name);
        let titled = |plan: &Plan| !plan.archived && same_words(&plan.title, name);
        let partly = |plan: &Plan| part.is_some_and(|part| part.matches(plan.id.as_u128()));
        let by = |by, is: &dyn Fn(&Plan) -> bool| -> Vec<NameHit> {
            plans.iter().filter(|(_, plan)| is(plan)).map(|plan| shown_plan(by, plan)).collect()
        };
        let named = by(MatchedBy::Alias, &called);
        if !named.is_empty() {
            return Ok(named);
        }
        let latest = self.latest(NameKind::Plan, name)?;
        if !latest.is_empty() {
            return Ok(latest);
        }
        let titled = by(MatchedBy::Title, &titled);
        Ok(if titled.is_empty() { by(MatchedBy::Part, &partly) } else { titled })
    }

    /// Kinds without aliases: by `last` and `.`, by title, by a part of the id.
    fn others(&self, kind: NameKind, name: &str) -> NameHits {
        let latest = self.latest(kind, name)?;
        if !latest.is_empty() {
            return Ok(latest);
        }
        let newest = self.newest(kind, RECORDS_MAX)?;
        let is_whole = |hit: &NameHit| hit.item.id == name;
        let is_titled =
            |hit: &NameHit| hit.item.title.as_deref().is_some_and(|title| same_words(title, name));
        let (whole, rest): (Vec<NameHit>, Vec<NameHit>) = newest.into_iter().partition(is_whole);
        if !whole.is_empty() {
            return Ok(whole.into_iter().map(|hit| NameHit { by: MatchedBy::Id, ..hit }).collect());
        }
        let has_titles = matches!(kind, NameKind::Flow | NameKind::Notification | NameKind::Gate);
        let (titled, rest): (Vec<NameHit>, Vec<NameHit>) =
            rest.into_iter().partition(|hit| has_titles && is_titled(hit));
        if !titled.is_empty() {
            return Ok(titled.into_iter().map(|hit| NameHit { by: MatchedBy::Title, ..hit }).collect());
        }
        let by = MatchedBy::Part;
        let mut hits = Vec::new();
        match kind {
            NameKind::Flow => {
                for id in self.parts(RecordKind::Flow, kind, name)? {
                    hits.extend(self.store.flow(FlowId::from_u128(id))?.map(|flow| shown_flow(by, &flow)));
                }
            }
            NameKind::Mail => {
                for id in self.parts(RecordKind::Mail, kind, name)? {
                    hits.extend(self.store.mail(MailId::from_u128(id))?.map(|mail| shown_mail(by, &mail)));
                }
            }
            NameKind::Notification => {
                for id in self.parts(RecordKind::Notification, kind, name)? {
                    let held = self.store.notification(NotificationId::from_u128(id))?;
                    hits.extend(held.map(|held| notification(by, &held)));
                }
            }
            NameKind::Worker
            | NameKind::Run
            | NameKind::Gate
            | NameKind::Session
            | NameKind::Task
            | NameKind::Plan => {
                let part = IdPart::parse(name).filter(|part| part.is_of(kind.prefix()));
                let ends = |id: &str| {
                    let bits = IdPart::parse(id).and_then(|whole| whole.range()).map(|(bits, _)| bits);
                    part.zip(bits).is_some_and(|(part, bits)| part.matches(bits))
                };
                hits.extend(
                    rest.into_iter().filter(|hit| ends(&hit.item.id)).map(|hit| NameHit { by, ..hit }),
                );
            }
        }
        Ok(hits)
    }

    fn parts(&self, records: RecordKind, kind: NameKind, name: &str) -> Result<Vec<u128>, FamilyError> {
        match IdPart::parse(name).filter(|part| part.is_of(kind.prefix())) {
            Some(part) => Ok(self.store.records_like(records, &part, PARTS_MAX)?),
            None => Ok(Vec::new()),
        }
    }

    /// Gates that wait for an answer, newest first.
    fn open_gates(&self, limit: usize) -> Vec<NameHit> {
        let Some(list) = &self.gates else { return Vec::new() };
        let item = |id: String, title: String, created_at: Timestamp| NamedItem {
            kind: NameKind::Gate,
            id,
            name: None,
            title: Some(title),
            state: "open".to_owned(),
            workspace: None,
            created_at,
        };
        let sessions = list.gates.iter().map(|entry| {
            let title = one_line(&entry.gate.question.title, TITLE_CHARS_MAX);
            item(entry.gate.id.to_string(), title, entry.gate.opened_at)
        });
        let flows = list.flows.iter().map(|entry| {
            let title = one_line(&entry.gate.reason, TITLE_CHARS_MAX);
            item(entry.gate.id.to_string(), title, entry.gate.opened_at)
        });
        let mut items: Vec<NamedItem> = sessions.chain(flows).collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.created_at));
        items.truncate(limit);
        let hit = |item| NameHit { by: MatchedBy::Newest, ended: false, item, same: Vec::new() };
        items.into_iter().map(hit).collect()
    }
}

fn worker(task: &Task) -> Option<NameHit> {
    let worker = task.worker?;
    Some(NameHit { same: vec![task.id.to_string()], ..of_task(NameKind::Worker, worker.to_string(), task) })
}

fn runs(task: &Task) -> Vec<NameHit> {
    let runs = task.runs.iter().rev().filter_map(|run| run.run);
    runs.map(|run| of_task(NameKind::Run, run.to_string(), task)).collect()
}

fn of_task(kind: NameKind, id: String, task: &Task) -> NameHit {
    let item = NamedItem {
        kind,
        id,
        name: None,
        title: Some(task.spec.title.clone()),
        state: task.state.as_str().to_owned(),
        workspace: task.workspace.clone(),
        created_at: task.created_at,
    };
    NameHit { by: MatchedBy::Newest, ended: false, item, same: Vec::new() }
}

fn shown_plan(by: MatchedBy, (workspace, plan): &(String, Plan)) -> NameHit {
    let item = NamedItem {
        kind: NameKind::Plan,
        id: plan.id.to_string(),
        name: plan.name.clone(),
        title: Some(plan.title.clone()),
        state: plan.status.as_str().to_owned(),
        workspace: Some(workspace.clone()),
        created_at: plan.created_at,
    };
    NameHit { by, ended: false, item, same: Vec::new() }
}

fn shown_flow(by: MatchedBy, flow: &Flow) -> NameHit {
    let item = NamedItem {
        kind: NameKind::Flow,
        id: flow.id.to_string(),
        name: None,
        title: Some(flow.title.clone()),
        state: flow.state.as_str().to_owned(),
        workspace: Some(flow.workspace.clone()),
        created_at: flow.created_at,
    };
    NameHit { by, ended: false, item, same: Vec::new() }
}

fn shown_mail(by: MatchedBy, mail: &Mail) -> NameHit {
    let item = NamedItem {
        kind: NameKind::Mail,
        id: mail.id.to_string(),
        name: None,
        title: Some(one_line(&mail.text, TITLE_CHARS_MAX)),
        state: mail.state.as_str().to_owned(),
        workspace: None,
        created_at: mail.at,
    };
    NameHit { by, ended: false, item, same: Vec::new() }
}

fn notification(by: MatchedBy, held: &Notification) -> NameHit {
    let item = NamedItem {
        kind: NameKind::Notification,
        id: held.id.to_string(),
        name: None,
        title: Some(held.title.clone()),
        state: held.status.as_str().to_owned(),
        workspace: None,
        created_at: held.raised_at,
    };
    NameHit { by, ended: false, item, same: Vec::new() }
}
