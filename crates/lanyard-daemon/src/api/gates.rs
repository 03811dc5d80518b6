//! Gates: what waits for an answer, and answering it.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use lanyard_api::types::{GateAnswer, GateList};
use lanyard_core::session::{Command, GateStatus, StateName};
use lanyard_core::{GateId, SessionId};
use lanyard_store::Filter;

use crate::api::App;
use crate::api::context::{Change, Target, load, on_disk};
use crate::api::sessions::command_on;
use crate::approvals::entries;
use crate::families::read::asked_about;
use crate::problem::Problem;

type Shared = State<Arc<App>>;

/// Sessions at work that one answer looks at.
const SESSIONS_MAX: usize = 1_000;

/// An agent's gate is open only while its turn runs, so those who are at work have them all; and Lanyard itself asks about
/// those who work at tasks.
pub(super) async fn list(State(app): Shared) -> Result<Json<GateList>, Problem> {
    let list = on_disk(&app, move |store| {
        let asked_about = asked_about(store)?;
        let filter = Filter { state: Some(StateName::Executing), ..Filter::default() };
        let listing = store.list(&filter, None, SESSIONS_MAX)?;
        let mut gates = Vec::new();
        let at_work: BTreeSet<SessionId> = listing.rows.iter().map(|row| row.id).chain(asked_about).collect();
        for id in at_work {
            if let Some(loaded) = store.load(id)? {
                gates.extend(entries(&loaded.session, |gate| gate.status == GateStatus::Open));
            }
        }
        Ok(GateList { gates, flows: Vec::new(), truncated: listing.next.is_some() })
    });
    let mut list = list.await?;
    list.flows = super::flows::asking(&app).await?;
    list.gates.sort_by_key(|entry| entry.gate.opened_at);
    Ok(Json(list))
}

/// Those that wait, and the newest that are settled.
pub(super) async fn of_session(State(app): Shared, target: Target) -> Result<Json<GateList>, Problem> {
    let session = load(&app, target.0).await?.session;
    Ok(Json(GateList { gates: entries(&session, |_| true), flows: Vec::new(), truncated: false }))
}

pub(super) async fn answer(
    State(app): Shared,
    target: Target,
    Path((_, gate)): Path<(String, String)>,
    change: Change<GateAnswer>,
) -> Result<Response, Problem> {
    let gate: GateId = gate.parse().map_err(|error| {
        Problem::bad_request(
            "gate_id_bad",
            format!("`{gate}` is not an approval's id: {error}"),
            "list open approvals with `lanyard approvals`",
        )
    })?;
    let GateAnswer { option, message } = change.body.clone();
    let command = Command::AnswerGate { gate, option, message };
    command_on(&app, target, change, command, StatusCode::OK).await
}
