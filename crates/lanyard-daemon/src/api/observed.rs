//! What became of a request, seen from outside of its handler: attaches and resumes that failed are counted, and
//! each request is a span for those who collect traces.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use lanyard_core::continuity::Counter;

use crate::api::App;
use crate::auth::bearer;
use crate::problem::Refused;
use crate::telemetry::RequestSpan;

/// What a route's requests are watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) name: &'static str,
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Attach,
    Resume,
    Other,
}

impl Of {
    pub(super) fn route(name: &str) -> Self {
        match name {
            "attach" => Self::Attach,
            "resume_session" | "resume_any" => Self::Resume,
            _ => Self::Other,
        }
    }
}

/// What a failure says about continuity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Lanyard did not keep its promise.
    Failed,
    /// There is no such session (any more): no failure of continuity, but the client may now make a new one.
    Missing,
    /// The request itself was at fault, or came at the wrong moment.
    Refused,
}

fn verdict(of: Of, status: StatusCode, code: Option<&str>) -> Verdict {
    match (of, code) {
        // The log is shorter than it was: what the client has seen is gone.
        (Of::Attach, Some("seq_in_future")) => Verdict::Failed,
        // It was Lanyard's agent once.
        (Of::Resume, Some("agent_not_configured")) => Verdict::Failed,
        _ if status.is_server_error() => Verdict::Failed,
        _ if status == StatusCode::NOT_FOUND || status == StatusCode::GONE => Verdict::Missing,
        _ => Verdict::Refused,
    }
}

pub(super) async fn observe(
    State((app, observed)): State<(Arc<App>, Observed)>,
    request: Request,
    next: Next,
) -> Response {
    let span = app.telemetry.as_ref().map(|telemetry| {
        RequestSpan::begin(telemetry.clone(), observed.method, observed.path, request.headers())
    });
    let who = match observed.of {
        Of::Attach | Of::Resume => {
            app.tokens.caller(bearer(request.headers(), app.address.port()).as_deref()).ok()
        }
        Of::Other => None,
    };
    let response = next.run(request).await;
    let (status, code) = (response.status(), response.extensions().get::<Refused>().map(|refused| refused.0));
    if let Some(span) = span {
        span.end(status, code);
    }
    let now = app.clock.now();
    let went_well = !status.is_client_error() && !status.is_server_error();
    match (observed.of, went_well) {
        (Of::Attach, true) => app.continuity.count(Counter::AttachSucceeded, now),
        // The log tells how it went.
        (Of::Resume, true) | (Of::Other, _) => {}
        (of @ (Of::Attach | Of::Resume), false) => {
            let verdict = verdict(of, status, code);
            let counter = if of == Of::Attach { Counter::AttachFailed } else { Counter::ResumeFailed };
            if verdict == Verdict::Failed {
                app.continuity.count(counter, now);
            }
            if let (Verdict::Failed | Verdict::Missing, Some(who)) = (verdict, &who) {
                app.continuity.lost_the_way(&who.actor, now);
            }
            let (code, actor) =
                (code.unwrap_or("-"), who.as_ref().map_or("-", |who| who.actor.name.as_str()));
            let is_failure = verdict == Verdict::Failed;
            tracing::info!(
                decision = "refused",
                of = observed.name,
                code,
                counted = is_failure,
                actor,
                "continuity"
            );
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3-B11.
    #[test]
    fn not_found_is_no_failure_of_continuity() {
        let of = |status, code| verdict(Of::Attach, StatusCode::from_u16(status).unwrap(), Some(code));
        assert_eq!(of(404, "session_not_found"), Verdict::Missing);
        assert_eq!(of(410, "session_deleted"), Verdict::Missing);
        assert_eq!(of(409, "seq_in_future"), Verdict::Failed);
        assert_eq!(of(409, "connection_taken"), Verdict::Refused);
        assert_eq!(of(401, "token_missing"), Verdict::Refused);
        assert_eq!(of(400, "query_invalid"), Verdict::Refused);
        assert_eq!(of(503, "storage_unavailable"), Verdict::Failed);
        assert_eq!(verdict(Of::Resume, StatusCode::CONFLICT, Some("agent_not_configured")), Verdict::Failed);
    }
}
