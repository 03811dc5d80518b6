//! Every refusal as `application/problem+json`: a stable code, what happened, what to do.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lanyard_api::agents::naming::AgentRefusal;
use lanyard_api::types;
use lanyard_core::refusal::RefusalKind;
use lanyard_core::search::SearchRefusal;
use lanyard_git::publish::PublishError;
use lanyard_git::snapshot::SnapshotError;
use lanyard_git::workspace_path::PathRefusal;
use lanyard_store::{CursorError, StoreError};

use lanyard_agents::history::HistoryError;

use crate::refusal::{Refuses, refuses};
use crate::server::patience;
use lanyard_base::error_chain;
use lanyard_engine::engine::AskError;

refuses!(AskError);
refuses!(CursorError);
refuses!(HistoryError);
refuses!(PathRefusal);
refuses!(SearchRefusal);
refuses!(SnapshotError, error_chain);
refuses!(PublishError, error_chain);

#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) title: String,
    advice: String,
}

/// The code of a refusal, for layers that see only the response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refused(pub(crate) &'static str);

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        title: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { status, code, title: title.into(), advice: advice.into() }
    }

    pub(crate) fn bad_request(
        code: &'static str,
        title: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, title, advice)
    }

    pub(crate) fn not_found(what: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "session_not_found",
            format!("there is no session {what}"),
            "list the sessions with `lanyard ls --all`",
        )
    }

    pub(crate) fn deleted(what: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::GONE,
            "session_deleted",
            format!("session {what} was deleted"),
            "create a new one with `lanyard new`",
        )
    }

    /// An agent cannot be used: 422 where the caller named it, 409 where the session has it already.
    pub(crate) fn of_agent(status: StatusCode, refusal: AgentRefusal) -> Self {
        Self::new(status, refusal.code, refusal.title, refusal.advice)
    }

    pub(crate) fn rolling_back() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "rollback_running",
            "the session's workspace is being changed: taken back to a checkpoint, merged or removed",
            "repeat it in a moment",
        )
    }
}

impl Problem {
    /// As clients read it.
    pub(crate) fn told(self) -> types::Problem {
        types::Problem {
            kind: "about:blank".to_owned(),
            status: self.status.as_u16(),
            code: self.code.to_owned(),
            title: self.title,
            advice: self.advice,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, code) = (self.status, self.code);
        let json = serde_json::to_vec(&self.told()).unwrap_or_default();
        let mut response = (status, json).into_response();
        response.extensions_mut().insert(Refused(code));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl<E: Refuses> From<E> for Problem {
    fn from(refusal: E) -> Self {
        Self::new(status(refusal.kind()), refusal.code(), refusal.sentence(), refusal.advice())
    }
}

const fn status(kind: RefusalKind) -> StatusCode {
    match kind {
        RefusalKind::Malformed => StatusCode::BAD_REQUEST,
        RefusalKind::Unauthorized => StatusCode::UNAUTHORIZED,
        RefusalKind::Forbidden => StatusCode::FORBIDDEN,
        RefusalKind::NotFound => StatusCode::NOT_FOUND,
        RefusalKind::Conflict => StatusCode::CONFLICT,
        RefusalKind::Gone => StatusCode::GONE,
        RefusalKind::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        RefusalKind::Defect => StatusCode::INTERNAL_SERVER_ERROR,
        RefusalKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "storage_unavailable",
            format!("the journal cannot be read: {}", error_chain(&error)),
            "check the disk with `lanyard doctor`",
        )
    }
}

/// A body that comes byte by byte holds a connection and its memory: it has the time a stalled socket has.
pub(crate) fn too_slow() -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "body_too_slow",
        format!("the body was not there within {} ms", patience().as_millis()),
        "send the body at once",
    )
}

/// A body must say that it is JSON: a page of another site cannot send that unasked.
pub(crate) fn marked_as_json(headers: &HeaderMap) -> Result<(), Problem> {
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    if !is_json {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content_type_not_json",
            "the body is not marked as JSON",
            "send `Content-Type: application/json`",
        ));
    }
    Ok(())
}

#[cfg(test)]
#[path = "problem_tests.rs"]
mod tests;
