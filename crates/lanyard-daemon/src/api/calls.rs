//! Tool calls that others relay: a wrapped MCP server, an agent's hook. The gateway asks the same questions in here.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lanyard_api::types::{CallAnswer, CallEnded, CallLead, CallUnsent, NewCall};
use lanyard_core::session::{Call, Passage};

use crate::api::App;
use crate::api::context::{Change, Target};
use crate::auth::Denied;
use crate::problem::Problem;

type Shared = State<Arc<App>>;

pub(super) async fn begins(
    State(app): Shared,
    target: Target,
    change: Change<NewCall>,
) -> Result<Json<CallAnswer>, Problem> {
    let bound = app.mcp.interceptor.of(target.0);
    let mut call = Call { run: change.proof.run, ..change.body };
    let passage = bound.begins(&mut call).await?;
    let uncertain = call.is_uncertain();
    if passage == Passage::Go {
        bound.told_begins(&call);
    }
    Ok(Json(match passage {
        // Whatever the session does by now, this run does nothing for it.
        Passage::Go if change.proof.spent => return Err(Denied::RunEnded.into()),
        Passage::Go => CallAnswer { go: true, text: None, level: None, uncertain },
        Passage::Refused(stop) => {
            CallAnswer { go: false, text: Some(stop.text(target.0)), level: Some(stop.level), uncertain }
        }
    }))
}

pub(super) async fn ends(
    State(app): Shared,
    target: Target,
    change: Change<CallEnded>,
) -> Result<Json<CallLead>, Problem> {
    let bound = app.mcp.interceptor.of(target.0);
    let call = Call { run: change.proof.run, ..change.body.call };
    bound.told_ends(&call);
    let lead = bound.ends(call, change.body.returned, None).await?;
    Ok(Json(CallLead {
        blocks: lead.blocks(target.0, bound.nonce()),
        withhold: lead.withholds(),
        is_error: lead.is_error(),
        level: lead.stop.as_ref().map(|stop| stop.level),
        notes: lead.notes.iter().map(|told| told.note).collect(),
    }))
}

pub(super) async fn unsent(
    State(app): Shared,
    target: Target,
    change: Change<CallUnsent>,
) -> Result<StatusCode, Problem> {
    app.mcp.interceptor.of(target.0).unsent(&change.body.notes).await;
    Ok(StatusCode::NO_CONTENT)
}
