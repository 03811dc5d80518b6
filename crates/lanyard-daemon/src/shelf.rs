//! Papers on the shelf: plans and seats, read and written whole. A change is made from the version that
//! was read, and made again when somebody else's came first.

use lanyard_core::paper::{AgentSeat, Plan};
use lanyard_core::{PlanId, SessionId, Timestamp};
use lanyard_store::{Paper, PaperKey, Put, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::tool_refusal::Refused;

/// Plans one workspace may have, archived ones too.
pub(crate) const PLANS_MAX: usize = 200;
/// Bytes of one paper: a plan with all its steps, for one.
const PAPER_BYTES_MAX: usize = 1 << 20;
/// How often a change is tried against others'.
const TRIES_MAX: u32 = 16;

pub(crate) const PLAN: &str = "plan";
pub(crate) const SEAT: &str = "seat";

pub(crate) fn place(kind: &str, workspace: &str, key: impl Into<String>) -> PaperKey {
    PaperKey { kind: kind.to_owned(), workspace: workspace.to_owned(), key: key.into() }
}

pub(crate) fn decode<T: DeserializeOwned>(paper: &Paper) -> Result<T, Refused> {
    serde_json::from_str(&paper.body).map_err(|error| {
        let what = format!("the {} `{}` cannot be read: {error}", paper.place.kind, paper.place.key);
        Refused::new("paper_unreadable", what, "leave it; tell the user")
    })
}

fn encode<T: Serialize>(value: &T) -> Result<String, Refused> {
    let text = serde_json::to_string(value)
        .map_err(|error| Refused::new("defect", format!("it cannot be written: {error}"), "tell the user"))?;
    if text.len() > PAPER_BYTES_MAX {
        let what = format!("it would be larger than {PAPER_BYTES_MAX} bytes");
        return Err(Refused::new("paper_too_large", what, "shorten it; put long content into files"));
    }
    Ok(text)
}

/// Those that can be read; one that cannot is reported in the log and does not hide the others.
fn all<T: DeserializeOwned>(
    store: &dyn Store,
    kind: &str,
    workspace: &str,
    max: usize,
) -> Result<Vec<(u64, T)>, Refused> {
    let papers = store.papers(kind, workspace, None, max)?;
    let read = papers.iter().filter_map(|paper| match decode(paper) {
        Ok(value) => Some((paper.version, value)),
        Err(refused) => {
            tracing::error!(?refused, "a paper was left out");
            None
        }
    });
    Ok(read.collect())
}

pub(crate) fn plans(store: &dyn Store, workspace: &str) -> Result<Vec<Plan>, Refused> {
    let plans = all(store, PLAN, workspace, PLANS_MAX)?;
    Ok(plans.into_iter().map(|(_, plan)| plan).collect())
}

/// The plan of that id or name.
pub(crate) fn find_plan(store: &dyn Store, workspace: &str, name: &str) -> Result<Option<Plan>, Refused> {
    if let Ok(id) = name.parse::<PlanId>()
        && let Some(paper) = store.paper(&place(PLAN, workspace, id.to_string()))?
    {
        return Ok(Some(decode(&paper)?));
    }
    Ok(plans(store, workspace)?.into_iter().find(|plan| plan.is_called(name)))
}

pub(crate) fn plan(store: &dyn Store, workspace: &str, name: &str) -> Result<Plan, Refused> {
    find_plan(store, workspace, name)?.ok_or_else(|| {
        Refused::new(
            "plan_not_found",
            format!("this workspace has no plan `{name}`"),
            "list the plans with memory_plan, action list, or make one with action create",
        )
    })
}

pub(crate) fn seat(store: &dyn Store, workspace: &str, session: SessionId) -> Result<AgentSeat, Refused> {
    match store.paper(&place(SEAT, workspace, session.to_string()))? {
        Some(paper) => decode(&paper),
        None => Ok(AgentSeat::of(session)),
    }
}

/// Writes something new. Refused when there is one already.
pub(crate) fn create<T: Serialize>(
    store: &dyn Store,
    place: &PaperKey,
    now: Timestamp,
    value: &T,
) -> Result<u64, Refused> {
    match store.put_paper(place, 0, now, &encode(value)?)? {
        Put::Kept(version) => Ok(version),
        Put::Moved(_) => Err(Refused::new(
            "paper_exists",
            format!("there is a {} `{}` already", place.kind, place.key),
            "change that one",
        )),
    }
}

/// Reads, changes and writes; again from the start when somebody else wrote in between. Nothing is written when the
/// change is refused or leaves everything as it was.
pub(crate) fn amend<T, R>(
    store: &dyn Store,
    place: &PaperKey,
    now: Timestamp,
    fresh: impl Fn() -> Result<T, Refused>,
    mut change: impl FnMut(&mut T) -> Result<R, Refused>,
) -> Result<(u64, R), Refused>
where
    T: Serialize + DeserializeOwned + Clone + PartialEq,
{
    for _ in 0..TRIES_MAX {
        let paper = store.paper(place)?;
        let (version, before) = match &paper {
            Some(paper) => (paper.version, decode(paper)?),
            None => (0, fresh()?),
        };
        let mut value: T = before.clone();
        let result = change(&mut value)?;
        if version > 0 && value == before {
            return Ok((version, result));
        }
        match store.put_paper(place, version, now, &encode(&value)?)? {
            Put::Kept(version) => return Ok((version, result)),
            Put::Moved(_) => {}
        }
    }
    Err(Refused::new("paper_busy", "others keep changing it at the same time", "try again in a moment"))
}

/// Changes the plan of that id or name.
pub(crate) fn amend_plan<R>(
    store: &dyn Store,
    workspace: &str,
    name: &str,
    now: Timestamp,
    change: impl FnMut(&mut Plan) -> Result<R, Refused>,
) -> Result<(u64, R), Refused> {
    let id = plan(store, workspace, name)?.id;
    let gone = || Err(Refused::new("plan_not_found", format!("the plan `{name}` is gone"), "list the plans"));
    amend(store, &place(PLAN, workspace, id.to_string()), now, gone, change)
}

pub(crate) fn amend_seat<R>(
    store: &dyn Store,
    workspace: &str,
    session: SessionId,
    now: Timestamp,
    change: impl FnMut(&mut AgentSeat) -> Result<R, Refused>,
) -> Result<R, Refused> {
    let here = place(SEAT, workspace, session.to_string());
    Ok(amend(store, &here, now, || Ok(AgentSeat::of(session)), change)?.1)
}
