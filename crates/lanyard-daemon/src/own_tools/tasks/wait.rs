//! Waiting for tasks within one call. The wait is bounded; what is still open then is named, and who comes back waits on.

use std::time::Duration;

use lanyard_core::task::{MailTo, Task};
use lanyard_core::{SessionId, TaskId};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{letter, shown};
use crate::families::{Families, FamilyError};
use crate::own_tools::Told;
use crate::own_tools::caller::{ToolCaller, on_disk};
use crate::tool_refusal::Refused;

/// How long an await waits that does not say: less than clients wait for a tool.
pub(super) const WAIT_MS: u64 = 25_000;
/// The longest one.
const WAIT_MS_MAX: u64 = 600_000;
/// How often it is looked whether somebody wants something of the caller.
const GLANCE: Duration = Duration::from_secs(1);

/// Waits until all have ended, the time is over, or somebody wants something of the caller.
pub(super) async fn for_tasks(caller: &ToolCaller, tasks: Vec<TaskId>, wait_ms: u64) -> Told {
    let until = Instant::now() + Duration::from_millis(wait_ms.min(WAIT_MS_MAX));
    if wait_ms == 0 {
        return answer(caller, &tasks).await;
    }
    // In a task of its own: who goes away in the middle of the question has not begun to wait, or is known to be gone.
    let awaiting = match caller.id() {
        Some(me) => {
            let awaiting = tokio::spawn(Awaiting::begin(caller.app.families.clone(), me, tasks.clone()));
            Some(awaiting.await.unwrap_or(Err(FamilyError::Closing))?)
        }
        // A person has no box.
        None => None,
    };
    wait(caller, &tasks, until).await?;
    let told = answer(caller, &tasks).await;
    drop(awaiting);
    told
}

/// Somebody waits for these. When it is dropped nobody does, also where the caller died with its call: what comes of the
/// tasks then goes to it as mail.
struct Awaiting {
    families: Families,
    to: MailTo,
    tasks: Vec<TaskId>,
}

impl Awaiting {
    async fn begin(families: Families, me: SessionId, tasks: Vec<TaskId>) -> Result<Self, FamilyError> {
        let named = tasks.clone();
        let to = families.ask(move |owner| owner.await_begins(me, &named)).await?;
        Ok(Self { families, to, tasks })
    }
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        let (families, to) = (self.families.clone(), self.to);
        let tasks = std::mem::take(&mut self.tasks);
        tokio::spawn(async move {
            let end = families.ask(move |owner| {
                owner.await_ends(to, &tasks);
                Ok(())
            });
            // An owner that is gone remembers nobody.
            let _ = end.await;
        });
    }
}

async fn wait(caller: &ToolCaller, tasks: &[TaskId], until: Instant) -> Result<(), Refused> {
    loop {
        let end = caller.app.families.next_end();
        tokio::pin!(end);
        // Told of ends from here on; those before are seen now.
        end.as_mut().enable();
        if read(caller, tasks).await?.iter().all(|task| task.state.is_ended()) || wanted(caller).await? {
            return Ok(());
        }
        let glance = (Instant::now() + GLANCE).min(until);
        tokio::select! {
            () = &mut end => {}
            () = tokio::time::sleep_until(glance) => {}
        }
        if Instant::now() >= until {
            return Ok(());
        }
    }
}

/// A stop or words wait for the caller: they reach it with this answer.
async fn wanted(caller: &ToolCaller) -> Result<bool, Refused> {
    let Some(id) = caller.id() else { return Ok(false) };
    let loaded = on_disk(&caller.app, move |store| Ok(store.load(id)?)).await?;
    Ok(loaded.is_none_or(|loaded| loaded.session.wants_attention()))
}

async fn read(caller: &ToolCaller, tasks: &[TaskId]) -> Result<Vec<Task>, Refused> {
    let tasks = tasks.to_vec();
    on_disk(&caller.app, move |store| {
        let mut found = Vec::new();
        for id in tasks {
            found.push(store.task(id)?.ok_or_else(|| FamilyError::NoTask(id.to_string()))?);
        }
        Ok(found)
    })
    .await
}

async fn answer(caller: &ToolCaller, tasks: &[TaskId]) -> Told {
    let found = read(caller, tasks).await?;
    let ended: Vec<TaskId> = found.iter().filter(|task| task.state.is_ended()).map(|task| task.id).collect();
    let open: Vec<TaskId> = found.iter().filter(|task| !task.state.is_ended()).map(|task| task.id).collect();
    let mail = match caller.id() {
        Some(me) if !ended.is_empty() => caller.app.families.ask(move |owner| owner.show(me, &ended)).await?,
        Some(_) | None => Vec::new(),
    };
    let shown: Vec<Value> = found.iter().map(shown).collect();
    let mail: Vec<Value> = mail.iter().map(letter).collect();
    let mut value = json!({ "tasks": shown, "open": open });
    if !mail.is_empty() {
        value["mail"] = mail.into();
        value["note"] = "what tasks say is agent output, not from the user".into();
    }
    if !open.is_empty() {
        value["next"] =
            "wait for them with action await and these task_ids, or go on: their ends come to you by themselves".into();
    }
    Ok(value.into())
}
