//! `memory_workspace`: where one is, and who else is here.

use lanyard_core::journal::Row;
use lanyard_core::session::StateName;
use lanyard_core::{SessionId, Timestamp};
use lanyard_store::{Filter, Store};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::own_tools::Told;
use crate::own_tools::caller::{ToolCaller, load, on_disk};
use crate::own_tools::schema::{About, tool as describe};
use crate::own_tools::traces::{self, within};
use crate::shelf;
use crate::tool_refusal::Refused;

pub(super) const NAME: &str = "memory_workspace";

/// Sessions that are looked at to find the workspaces there are, and those of one.
pub(super) const SESSIONS_MAX: usize = 1_000;
/// Peers whose logs are looked into.
const PEERS_MAX: usize = 25;
/// Files one may ask about.
const FILES_MAX: usize = 200;

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// Your workspace: its sessions by state, and its plans.
    Info,
    /// The workspaces Lanyard knows from its sessions. An agent sees its own.
    List,
    /// The other live sessions in your workspace, with the files they changed lately. Files you changed too, or name in
    /// `files`, are in `shared_files`: agree before you touch them.
    Peers,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to do.
    action: Action,
    /// Whose workspace; only for callers without a session.
    workspace: Option<String>,
    /// `peers`: files you are about to change.
    #[serde(default)]
    files: Vec<String>,
}

pub(super) fn tool() -> Value {
    describe::<Args>(&About {
        name: NAME,
        title: "Workspace",
        description: "Look at the workspace you work in: its sessions, its plans, and other agents at work in it. Ask \
                      `peers` before you change files that others may be changing. Changes nothing.",
        reads_only: true,
        destructive: false,
    })
}

pub(super) async fn call(caller: &ToolCaller, args: Args) -> Told {
    let workspace = caller.workspace(args.workspace.as_deref())?;
    match args.action {
        Action::Info => info(caller, workspace).await,
        Action::List => list(caller, workspace).await,
        Action::Peers => peers(caller, workspace, args.files).await,
    }
}

/// Whether sessions that have ended are meant too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    With,
    Without,
}

/// Sessions that keep their papers in a place, newest first: those of the workspace, and the family below `me`, wherever
/// that works.
pub(super) fn sessions(
    store: &dyn Store,
    place: &str,
    me: Option<SessionId>,
    ended: Ended,
) -> Result<Vec<Row>, Refused> {
    // None has ended that late.
    let live_since = (ended == Ended::Without).then_some(Timestamp::from_millis(i64::MAX));
    let here = Filter { workspace: Some(place.to_owned()), live_since, ..Filter::default() };
    let mut rows = store.list(&here, None, SESSIONS_MAX)?.rows;
    let mut above: Vec<SessionId> = me.into_iter().collect();
    let mut looked = 0;
    while let (Some(parent), true) = (above.pop(), looked < SESSIONS_MAX) {
        looked += 1;
        // Ended ones too, since those below them may live.
        let children = Filter { parent: Some(parent), ..Filter::default() };
        for row in store.list(&children, None, SESSIONS_MAX)?.rows {
            above.push(row.id);
            let wanted = ended == Ended::With || !row.state.is_ended();
            if wanted && row.workspace.as_deref() != Some(place) {
                rows.push(row);
            }
        }
    }
    rows.truncate(SESSIONS_MAX);
    Ok(rows)
}

async fn info(caller: &ToolCaller, workspace: String) -> Told {
    let me = caller.id();
    on_disk(&caller.app, move |store| {
        let rows = sessions(store, &workspace, me, Ended::With)?;
        let states: serde_json::Map<String, Value> = StateName::ALL
            .iter()
            .map(|state| (state, rows.iter().filter(|row| row.state == *state).count()))
            .filter(|(_, count)| *count > 0)
            .map(|(state, count)| (state.as_str().to_owned(), count.into()))
            .collect();
        let plans = shelf::plans(store, &workspace)?.into_iter().filter(|plan| !plan.archived);
        let plans: Vec<Value> = plans.map(|plan| super::plan::line(&plan)).collect();
        let counted_up_to = (rows.len() >= SESSIONS_MAX).then_some(SESSIONS_MAX);
        let mut value = json!({ "workspace": workspace, "sessions": states, "plans": plans });
        if let Some(max) = counted_up_to {
            value["counted_up_to"] = max.into();
        }
        Ok(value.into())
    })
    .await
}

async fn list(caller: &ToolCaller, workspace: String) -> Told {
    let is_agent = caller.me.is_some();
    on_disk(&caller.app, move |store| {
        let rows = store.list(&Filter::default(), None, SESSIONS_MAX)?.rows;
        let mut known = std::collections::BTreeMap::<String, (usize, usize)>::new();
        for row in rows {
            let name = row.workspace.unwrap_or_default();
            // An agent's rights end at its own workspace.
            if is_agent && name != workspace {
                continue;
            }
            let (all, live) = known.entry(name).or_default();
            *all += 1;
            *live += usize::from(!row.state.is_ended());
        }
        let known: Vec<Value> = known
            .into_iter()
            .map(|(name, (all, live))| json!({ "workspace": name, "sessions": all, "live": live }))
            .collect();
        Ok(json!({ "workspaces": known }).into())
    })
    .await
}

async fn peers(caller: &ToolCaller, workspace: String, files: Vec<String>) -> Told {
    if files.len() > FILES_MAX {
        return Err(lanyard_core::paper::PaperRefusal::TooMany { field: "files", max: FILES_MAX }.into());
    }
    let me = caller.id();
    let app = caller.app.clone();
    on_disk(&caller.app, move |store| {
        let mut mine: Vec<String> = files.iter().map(|file| within(file, &workspace).to_owned()).collect();
        if let Some(me) = me {
            mine.extend(traces::of(store, me, &workspace)?.files);
        }
        let mut peers = Vec::new();
        for row in sessions(store, &workspace, me, Ended::Without)? {
            // At work lately, or with a process that still is.
            let lately = app.clock.elapsed_ms(row.last_activity_at) < app.config.rules().staleness.idle_after_ms;
            if Some(row.id) == me || peers.len() >= PEERS_MAX {
                continue;
            }
            if !lately && load(store, row.id)?.session.live_run().is_none() {
                continue;
            }
            let files = traces::of(store, row.id, &workspace)?.files;
            let shared: Vec<&String> = files.iter().filter(|file| mine.contains(file)).collect();
            let mut peer = json!({
                "session": row.id, "agent": row.agent, "state": row.state, "plan": row.plan,
                "last_activity_at": row.last_activity_at, "files": files,
            });
            if !shared.is_empty() {
                peer["shared_files"] = json!(shared);
            }
            peers.push(peer);
        }
        let clashing = peers.iter().filter(|peer| peer.get("shared_files").is_some()).count();
        let mut value = json!({ "workspace": workspace, "peers": peers });
        if clashing > 0 {
            value["warning"] = format!(
                "{clashing} other session(s) changed files you work on: look before you write, and tell whoever \
                 coordinates you"
            )
            .into();
        }
        Ok(value.into())
    })
    .await
}
