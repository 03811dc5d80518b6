//! Flows over HTTP.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{
    FlowAnswer, FlowEventPage, FlowGateEntry, FlowList, FlowReason, FlowReport, FlowView, MergeTask,
    MergedFlow, NewFlowBody,
};
use lanyard_core::flow::report::{markdown, report};
use lanyard_core::flow::{Flow, FlowCommand, FlowEnvelope, FlowRefusal};
use lanyard_core::{FlowId, GateId};
use lanyard_git::worktree;
use lanyard_store::FlowFilter;
use serde::Deserialize;

use crate::api::App;
use crate::api::context::{Change, on_disk, query};
use crate::api::tasks::with_git;
use crate::approvals;
use crate::flow::{Beginning, FlowError};
use crate::problem::Problem;

type Shared = State<Arc<App>>;

/// Flows and events of one page.
const PAGE_DEFAULT: usize = 50;
pub(super) const PAGE_MAX: usize = 500;
/// Milliseconds an answer waits for something new.
pub(super) const WAIT_MAX: u64 = 30_000;
/// Events of one flow that a report is made of.
const REPORT_EVENTS_MAX: usize = 20_000;

pub(super) async fn begin(State(app): Shared, change: Change<NewFlowBody>) -> Result<Response, Problem> {
    let request = change.keys.first().map(|key| {
        let hex = |bytes: [u8; 16]| format!("{:032x}", u128::from_be_bytes(bytes));
        (hex(key.key), hex(key.request))
    });
    let body = change.body;
    let asked = Beginning {
        kind: body.kind,
        plan: body.plan,
        workspace: body.workspace,
        author: body.author,
        reviewer: body.reviewer,
        from: body.from,
        phase_gate: body.phase_gate,
        review_gate: body.review_gate,
        worktree: body.worktree,
        quality: body.quality,
        request,
    };
    let flow = app.flows.begin(asked, change.actor).await?;
    Ok((StatusCode::CREATED, Json(view(&app, flow).await?)).into_response())
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Listed {
    open: Option<bool>,
    workspace: Option<String>,
    plan: Option<String>,
    before: Option<FlowId>,
    limit: Option<usize>,
}

pub(super) async fn list(State(app): Shared, uri: Uri) -> Result<Json<FlowList>, Problem> {
    let asked: Listed = query(&uri)?;
    let limit = asked.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let filter = FlowFilter {
        plan: asked.plan,
        workspace: asked.workspace,
        ended: asked.open.map(|open| !open),
        settled: None,
    };
    let mut flows = on_disk(&app, move |store| store.flows(&filter, asked.before, limit + 1)).await?;
    let more = flows.len() > limit;
    flows.truncate(limit);
    let mut shown = Vec::new();
    for flow in flows {
        shown.push(view(&app, flow).await?);
    }
    Ok(Json(FlowList { flows: shown, more }))
}

pub(super) async fn get(State(app): Shared, Path(name): Path<String>) -> Result<Json<FlowView>, Problem> {
    let flow = app.flows.get(id(&name)?).await?;
    Ok(Json(view(&app, flow).await?))
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Following {
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
    #[serde(default)]
    wait_ms: u64,
    /// The gates of `approvals` the client knows of, between commas: with `wait_ms`, others are news.
    approvals: Option<String>,
}

pub(super) async fn events(
    State(app): Shared,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Json<FlowEventPage>, Problem> {
    let asked: Following = query(&uri)?;
    let limit = asked.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let patience = Duration::from_millis(asked.wait_ms.min(WAIT_MAX));
    let known = asked.approvals.as_deref().map(known_gates).transpose()?;
    let (flow, events) = app.flows.events(id(&name)?, asked.after, limit, patience, known).await?;
    Ok(Json(FlowEventPage { events, head: flow.seq, flow: view(&app, flow).await? }))
}

pub(super) async fn cancel(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<FlowReason>,
) -> Result<Json<FlowView>, Problem> {
    let command = FlowCommand::Cancel { reason: change.body.reason };
    let flow = app.flows.ask(id(&name)?, command, change.actor).await?;
    Ok(Json(view(&app, flow).await?))
}

pub(super) async fn resume(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<FlowReason>,
) -> Result<Json<FlowView>, Problem> {
    let flow = app.flows.ask(id(&name)?, FlowCommand::Resume, change.actor).await?;
    Ok(Json(view(&app, flow).await?))
}

pub(super) async fn answer(
    State(app): Shared,
    Path((name, gate)): Path<(String, String)>,
    change: Change<FlowAnswer>,
) -> Result<Json<FlowView>, Problem> {
    let gate: GateId = gate.parse().map_err(|error| bad_gate(&gate, &error))?;
    let FlowAnswer { choice, guidance } = change.body;
    let command = FlowCommand::Answer { gate, choice, guidance, probe: None };
    let flow = app.flows.ask(id(&name)?, command, change.actor).await?;
    Ok(Json(view(&app, flow).await?))
}

pub(super) async fn merge(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<MergeTask>,
) -> Result<Json<MergedFlow>, Problem> {
    let flow = app.flows.get(id(&name)?).await?;
    if !flow.state.is_ended() {
        return Err(FlowError::from(FlowRefusal::AtWork { flow: flow.id, state: flow.state }).into());
    }
    let no_branch = || FlowError::from(FlowRefusal::NoBranch { folder: flow.workspace.clone() });
    let tree = flow.tree.clone().ok_or_else(no_branch)?;
    let into = PathBuf::from(change.body.into.unwrap_or_else(|| flow.workspace.clone()));
    let message = format!("Merge {}: {}", tree.branch, flow.title);
    let merged = with_git(move || worktree::merge(&tree, &into, &message)).await?;
    Ok(Json(MergedFlow { flow: flow.id, commit: merged.commit, into: merged.into, nothing: merged.nothing }))
}

pub(super) async fn tell(State(app): Shared, Path(name): Path<String>) -> Result<Json<FlowReport>, Problem> {
    let id = id(&name)?;
    let flow = app.flows.get(id).await?;
    let log: Vec<FlowEnvelope> =
        on_disk(&app, move |store| store.flow_events(id, 0, REPORT_EVENTS_MAX)).await?;
    let report = report(&flow, &log);
    let markdown = markdown(&report);
    Ok(Json(FlowReport { report, markdown }))
}

/// What flows ask, oldest first.
pub(super) async fn asking(app: &App) -> Result<Vec<FlowGateEntry>, Problem> {
    let flows = app.flows.asking().await?;
    let entry = |flow: Flow| {
        let phase = flow.active().map(|phase| phase.title.clone());
        let gate = flow.gate?;
        Some(FlowGateEntry { flow: flow.id, title: flow.title, phase, state: flow.state, gate })
    };
    let mut gates: Vec<FlowGateEntry> = flows.into_iter().filter_map(entry).collect();
    gates.sort_by_key(|entry| entry.gate.opened_at);
    Ok(gates)
}

fn id(name: &str) -> Result<FlowId, Problem> {
    name.parse().map_err(|error| {
        let title = format!("`{name}` is not a flow's id: {error}");
        Problem::bad_request("flow_id_bad", title, "list the flows with `lanyard flow ls --all`")
    })
}

fn known_gates(text: &str) -> Result<BTreeSet<GateId>, Problem> {
    let ids = text.split(',').map(str::trim).filter(|id| !id.is_empty());
    ids.map(|id| id.parse::<GateId>().map_err(|error| bad_gate(id, &error))).collect()
}

fn bad_gate(gate: &str, error: &impl std::fmt::Display) -> Problem {
    let title = format!("`{gate}` is not an approval's id: {error}");
    Problem::bad_request("gate_id_bad", title, "list open approvals with `lanyard approvals`")
}

async fn view(app: &Arc<App>, flow: Flow) -> Result<FlowView, Problem> {
    let until = if flow.state.is_ended() { flow.since } else { app.clock.now() };
    let sessions = flow.sessions_at_work();
    let approvals = on_disk(app, move |store| approvals::open(store, sessions)).await?;
    Ok(FlowView { elapsed_ms: until.millis_since(flow.created_at), flow, approvals })
}
