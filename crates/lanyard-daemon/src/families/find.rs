//! Finding a task by whatever somebody calls it, and telling what an id stands for.

use lanyard_core::task::{MailTo, Task};
use lanyard_core::{Address, MailId, PlanId, RunId, SessionId, TaskId, WorkerId};
use lanyard_store::{FIND_MAX, Store};

use crate::families::owner::Owner;
use crate::families::{FamilyError, refused};

/// What stands before a task's id where chat hosts address it.
const URI: &str = "orchestrator:/";
/// Links that are followed from one mailbox to the next.
const UP_MAX: usize = 64;

/// What a text turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Session(SessionId),
    Task(TaskId),
    Worker(WorkerId),
    Run(RunId),
    Plan(PlanId),
    Mail(MailId),
    /// None of these by its form: what it names is looked up.
    Alias,
}

impl Named {
    pub(crate) fn parse(text: &str) -> Self {
        let text = plain(text);
        let task = || text.parse().map(Self::Task);
        let worker = || text.parse().map(Self::Worker);
        let run = || text.parse().map(Self::Run);
        let plan = || text.parse().map(Self::Plan);
        let mail = || text.parse().map(Self::Mail);
        let session = text.parse().map(Self::Session);
        let known = session.or_else(|_| task()).or_else(|_| worker()).or_else(|_| run());
        known.or_else(|_| plan()).or_else(|_| mail()).unwrap_or(Self::Alias)
    }
}

fn plain(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix(URI).map_or(text, |rest| rest.trim_start_matches('/'))
}

/// The tasks a text names, the newest first. Sessions by their aliases too.
pub(crate) fn tasks_named(store: &dyn Store, text: &str) -> Result<Vec<TaskId>, FamilyError> {
    let text = plain(text);
    if let Ok(id) = text.parse::<TaskId>() {
        return Ok(store.task(id)?.into_iter().map(|task| task.id).collect());
    }
    let mut found = store.tasks_named(text)?;
    if found.is_empty() && Named::parse(text) == Named::Alias {
        for session in sessions_named(store, text)? {
            found.extend(store.tasks_named(&session.to_string())?);
        }
    }
    found.sort_unstable();
    found.dedup();
    found.reverse();
    Ok(found)
}

/// The one task that is meant. Of several with the same name the one that has not ended is, if it is the only one.
pub(crate) fn task_named(store: &dyn Store, text: &str) -> Result<TaskId, FamilyError> {
    let found = tasks_named(store, text)?;
    let mut open = Vec::new();
    for id in &found {
        if store.task(*id)?.is_some_and(|task| !task.state.is_ended()) {
            open.push(*id);
        }
    }
    match (open.as_slice(), found.as_slice()) {
        ([only], _) => Ok(*only),
        ([], [newest, ..]) => Ok(*newest),
        ([], []) => Err(FamilyError::NoTask(text.to_owned())),
        (_, _) => Err(refused(
            "task_ambiguous",
            format!("`{text}` stands for {} tasks that have not ended", open.len()),
            "use the `task_…` id",
        )),
    }
}

/// Whether a text is an id of work: a task, its address, a worker or a run.
pub(crate) fn names_work(text: &str) -> bool {
    match Named::parse(text) {
        Named::Task(_) | Named::Worker(_) | Named::Run(_) => true,
        Named::Session(_) | Named::Plan(_) | Named::Mail(_) | Named::Alias => text.trim().starts_with(URI),
    }
}

/// The session that works on a task now. An unknown task and a task without a worker are distinct errors.
pub(crate) fn session_at(store: &dyn Store, text: &str) -> Result<SessionId, FamilyError> {
    let id = task_named(store, text)?;
    let task = store.task(id)?.ok_or_else(|| FamilyError::NoTask(text.to_owned()))?;
    match task.session {
        Some(session) if !task.state.is_ended() && store.load(session)?.is_some() => Ok(session),
        Some(_) | None => Err(no_worker(&task)),
    }
}

/// The task is there, and nobody works at it.
pub(crate) fn no_worker(task: &Task) -> FamilyError {
    refused(
        "no_worker",
        format!("task {} has no worker: it is {}", task.id, task.state),
        format!("start it with `lanyard resume {}`", task.id),
    )
}

/// Sessions of that id or alias, deleted ones left out.
pub(crate) fn sessions_named(store: &dyn Store, text: &str) -> Result<Vec<SessionId>, FamilyError> {
    if let Ok(id) = text.parse() {
        return Ok(vec![id]);
    }
    let address = Address { session: text.to_owned(), workspace: None, plan: None };
    let found = store.find(&address)?;
    Ok(found.into_iter().filter(|found| !found.deleted).map(|found| found.session).take(FIND_MAX).collect())
}

/// The box that is meant: a task's, or that of a session nobody works at a task in.
pub(crate) fn box_named(store: &dyn Store, text: &str) -> Result<MailTo, FamilyError> {
    match task_named(store, text) {
        Ok(task) => return Ok(MailTo::Task(task)),
        Err(FamilyError::NoTask(_)) => {}
        Err(error) => return Err(error),
    }
    let mut sessions = sessions_named(store, plain(text))?;
    let known = sessions.pop().filter(|_| sessions.is_empty());
    match known {
        Some(session) if store.load(session)?.is_some() => Ok(MailTo::Session(session)),
        Some(_) | None => Err(refused(
            "box_unknown",
            format!("`{text}` is neither a task nor a session"),
            "look for it with `lanyard id`",
        )),
    }
}

/// Whose mailboxes are above a task, the nearest first.
pub(crate) fn above(store: &dyn Store, task: &Task) -> Result<Vec<MailTo>, FamilyError> {
    let mut above = Vec::new();
    let mut next = task.reports_to;
    while let Some(to) = next.take() {
        if above.len() >= UP_MAX || above.contains(&to) {
            break;
        }
        above.push(to);
        next = match to {
            MailTo::Task(id) => store.task(id)?.and_then(|task| task.reports_to),
            MailTo::Session(id) => {
                let parent = store.load(id)?.and_then(|loaded| loaded.session.parent);
                match parent {
                    Some(parent) => Some(box_of(store, parent)?),
                    None => None,
                }
            }
        };
    }
    Ok(above)
}

/// The box of whoever works in a session.
pub(crate) fn box_of(store: &dyn Store, session: SessionId) -> Result<MailTo, FamilyError> {
    let made_for = store.load(session)?.and_then(|loaded| loaded.session.task);
    let at_work = match made_for {
        Some(task) => Some(task),
        // A chat session is not made for its task.
        None => open_task_of(store, session)?,
    };
    Ok(at_work.map_or(MailTo::Session(session), MailTo::Task))
}

/// The task that has not ended and is worked at in this session now.
pub(crate) fn open_task_of(store: &dyn Store, session: SessionId) -> Result<Option<TaskId>, FamilyError> {
    for id in store.tasks_named(&session.to_string())? {
        let task = store.task(id)?;
        if task.is_some_and(|task| !task.state.is_ended() && task.session == Some(session)) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

impl Owner {
    pub(crate) fn named(&self, text: &str) -> Result<TaskId, FamilyError> {
        // What this round wrote is not on disk yet.
        match plain(text).parse::<TaskId>() {
            Ok(id) if self.tasks.contains_key(&id) => Ok(id),
            Ok(_) | Err(_) => task_named(&*self.tools.store, text),
        }
    }

    /// The task that was made under this name. Those of this round count: two who ask at once get the same.
    pub(crate) fn aliased(&self, alias: &str) -> Result<Option<TaskId>, FamilyError> {
        // Of what has ended the disk alone knows whether it is still found by its keys.
        let counts = |task: &&Task| !task.state.is_ended() || self.is_new(task.id);
        let mut held = self.tasks.values().filter(counts);
        match held.find(|task| task.aliases.iter().any(|name| name == alias)) {
            Some(task) => Ok(Some(task.id)),
            None => Ok(self.tools.store.tasks_named(alias)?.first().copied()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4-02, S4-04, S4-05, S4-17: by its prefix alone; the same bits are another thing with another one.
    #[test]
    fn the_prefix_of_an_id_says_what_it_names() {
        let (session, worker) = (SessionId::from_u128(9), WorkerId::from_u128(9));
        let bits = |id: &str| id.split_once('_').unwrap().1.to_owned();
        assert_eq!(bits(&session.to_string()), bits(&worker.to_string()), "a chat's worker");
        for (text, named) in [
            (session.to_string(), Named::Session(session)),
            (worker.to_string(), Named::Worker(worker)),
            (TaskId::from_u128(9).to_string(), Named::Task(TaskId::from_u128(9))),
            (RunId::from_u128(9).to_string(), Named::Run(RunId::from_u128(9))),
            (PlanId::from_u128(9).to_string(), Named::Plan(PlanId::from_u128(9))),
            (MailId::from_u128(9).to_string(), Named::Mail(MailId::from_u128(9))),
            (bits(&session.to_string()), Named::Alias),
        ] {
            assert_eq!(Named::parse(&text), named, "{text}");
        }
    }

    #[test]
    fn an_id_is_known_by_its_form_and_an_alias_by_none() {
        let task = TaskId::from_u128(7);
        assert_eq!(Named::parse(&task.to_string()), Named::Task(task));
        assert_eq!(Named::parse(&format!("orchestrator:/{task}")), Named::Task(task));
        assert_eq!(Named::parse(&format!(" orchestrator://{task} ")), Named::Task(task));
        let worker = WorkerId::from_u128(8);
        assert_eq!(Named::parse(&worker.to_string()), Named::Worker(worker));
        let session = SessionId::from_u128(9);
        assert_eq!(Named::parse(&session.to_string()), Named::Session(session));
        assert_eq!(Named::parse("task_short"), Named::Alias);
        assert_eq!(Named::parse(""), Named::Alias);
    }
}
