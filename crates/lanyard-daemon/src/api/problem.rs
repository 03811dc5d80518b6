//! Every refusal as `application/problem+json`: a stable code, what happened, what to do.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lanyard_core::session::Refusal;
use lanyard_git::snapshot::SnapshotError;
use lanyard_git::workspace_path::PathRefusal;
use lanyard_store::{CursorError, Loss, StoreError};

use crate::agents::naming::AgentRefusal;
use crate::api::types;
use crate::auth::Denied;
use crate::engine::AskError;
use crate::families::FamilyError;
use crate::memory::MemoryError;

/// The code and the advice when writing failed.
const UNAVAILABLE: (&str, &str) = (
    "storage_unavailable",
    "check the disk with `lanyard doctor`; repeat with the same Idempotency-Key when it is mended",
);
/// What to do when a file of the open journal is lost.
const LOST: &str = "put the file back, or save what the daemon still has with `lanyard backup FILE`, then `lanyard down` \
                    and `lanyard restore FILE`";

#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) title: String,
    advice: String,
}

/// The code of a refusal, for whoever sees only the response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused(pub(super) &'static str);

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        title: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { status, code, title: title.into(), advice: advice.into() }
    }

    pub(super) fn bad_request(
        code: &'static str,
        title: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, title, advice)
    }

    pub(super) fn not_found(what: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "session_not_found",
            format!("there is no session {what}"),
            "list the sessions with `lanyard ls --all`",
        )
    }

    pub(super) fn deleted(what: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::GONE,
            "session_deleted",
            format!("session {what} was deleted"),
            "create a new one with `lanyard new`",
        )
    }

    /// An agent cannot be used: 422 where the caller named it, 409 where the session has it already.
    pub(super) fn of_agent(status: StatusCode, refusal: AgentRefusal) -> Self {
        Self::new(status, refusal.code, refusal.title, refusal.advice)
    }

    pub(super) fn rolling_back() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "rollback_running",
            "the session's workspace is being taken back to a checkpoint",
            "repeat it in a moment",
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = types::Problem {
            kind: "about:blank".to_owned(),
            status: self.status.as_u16(),
            code: self.code.to_owned(),
            title: self.title,
            advice: self.advice,
        };
        let json = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (self.status, json).into_response();
        response.extensions_mut().insert(Refused(self.code));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        let title = error.to_string();
        let (status, code, advice) = match &error {
            AskError::Refused(refusal) => {
                let status = if matches!(refusal, Refusal::SignalForbidden { .. }) {
                    StatusCode::FORBIDDEN
                } else if refusal.is_bad_request() {
                    StatusCode::UNPROCESSABLE_ENTITY
                } else {
                    StatusCode::CONFLICT
                };
                (status, refusal.code(), refusal.advice())
            }
            AskError::Unknown(session) => return Self::not_found(session),
            AskError::Deleted(session) => return Self::deleted(session),
            AskError::Damaged { .. } => (
                StatusCode::CONFLICT,
                "session_damaged",
                "what can be read can still be read; fork it at a position before the damage to go on"
                    .to_owned(),
            ),
            AskError::AliasTaken(_) => (
                StatusCode::CONFLICT,
                "alias_taken",
                "choose another alias, or another workspace or plan".to_owned(),
            ),
            AskError::AliasReserved(_) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "alias_reserved",
                "choose an alias that does not begin with `sess_`".to_owned(),
            ),
            AskError::KeyConflict => (
                StatusCode::CONFLICT,
                "idempotency_conflict",
                "use a new Idempotency-Key for a new request".to_owned(),
            ),
            AskError::Unavailable(why) => {
                let (code, advice) = Loss::in_message(why).map_or(UNAVAILABLE, |loss| (loss.code(), LOST));
                (StatusCode::SERVICE_UNAVAILABLE, code, advice.to_owned())
            }
            AskError::Overloaded => (
                StatusCode::SERVICE_UNAVAILABLE,
                "overloaded",
                "repeat with the same Idempotency-Key in a moment".to_owned(),
            ),
            AskError::Closing => (
                StatusCode::SERVICE_UNAVAILABLE,
                "daemon_closing",
                "repeat with the same Idempotency-Key once it runs again".to_owned(),
            ),
            AskError::Defect(_) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "defect",
                "nothing was changed; please report this with the daemon's log".to_owned(),
            ),
        };
        Self::new(status, code, title, advice)
    }
}

impl From<FamilyError> for Problem {
    fn from(error: FamilyError) -> Self {
        let title = error.to_string();
        let fault = |bad| if bad { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::CONFLICT };
        let (status, code, advice) = match error {
            FamilyError::Task(refusal) => (fault(refusal.is_bad_request()), refusal.code(), refusal.advice()),
            FamilyError::Refused { code: code @ "storage_unavailable", advice, .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, code, advice)
            }
            FamilyError::Refused {
                code: code @ ("id_unknown" | "box_unknown" | "session_not_found"),
                advice,
                ..
            } => (StatusCode::NOT_FOUND, code, advice),
            FamilyError::Refused { code, advice, bad, .. } => (fault(bad), code, advice),
            FamilyError::Ask(error) => return error.into(),
            FamilyError::NoTask(_) => (
                StatusCode::NOT_FOUND,
                "task_not_found",
                "list the tasks with `lanyard task ls --all`".to_owned(),
            ),
            FamilyError::NoPlan(_) => {
                (StatusCode::NOT_FOUND, "plan_not_found", "list the plans with `lanyard plan ls`".to_owned())
            }
            FamilyError::NoMail(_) => (
                StatusCode::NOT_FOUND,
                "mail_not_found",
                "list the mail with `lanyard mailbox --all`".to_owned(),
            ),
            FamilyError::Forged => (
                StatusCode::FORBIDDEN,
                "run_token_bad",
                "get the token of the task's run with `lanyard task token`".to_owned(),
            ),
            FamilyError::Unavailable(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "storage_unavailable",
                "check the disk with `lanyard doctor`, then repeat it".to_owned(),
            ),
            FamilyError::Closing => {
                (StatusCode::SERVICE_UNAVAILABLE, "daemon_closing", "repeat it once it runs again".to_owned())
            }
        };
        Self::new(status, code, title, advice)
    }
}

impl From<MemoryError> for Problem {
    fn from(error: MemoryError) -> Self {
        let (code, title, advice) = (error.code(), error.to_string(), error.advice());
        let status = match error {
            MemoryError::Refused(refusal) if refusal.is_bad_request() => StatusCode::UNPROCESSABLE_ENTITY,
            MemoryError::Refused(_)
            | MemoryError::SwitchedOff
            | MemoryError::Full { .. }
            | MemoryError::Moved { .. }
            | MemoryError::Busy => StatusCode::CONFLICT,
            MemoryError::NoEntry(_) => StatusCode::NOT_FOUND,
            MemoryError::NoSession(session) => return Self::not_found(session),
            MemoryError::Deleted(session) => return Self::deleted(session),
            MemoryError::Ask(error) => return error.into(),
            MemoryError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, code, title, advice)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "storage_unavailable",
            format!("the journal cannot be read: {}", crate::engine::error_chain(&error)),
            "check the disk with `lanyard doctor`",
        )
    }
}

impl From<PathRefusal> for Problem {
    fn from(refusal: PathRefusal) -> Self {
        let (code, title, advice) = (refusal.code(), refusal.title(), refusal.advice());
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, title, advice)
    }
}

impl From<SnapshotError> for Problem {
    fn from(error: SnapshotError) -> Self {
        let status = match &error {
            SnapshotError::NoCommit { .. } | SnapshotError::NotSnapshot { .. } => StatusCode::NOT_FOUND,
            SnapshotError::BadName { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            SnapshotError::NotGit { .. }
            | SnapshotError::NoGit
            | SnapshotError::Gone { .. }
            | SnapshotError::NotOwner { .. }
            | SnapshotError::TooLong { .. }
            | SnapshotError::TooLarge { .. }
            | SnapshotError::Locked { .. }
            | SnapshotError::StoreBusy { .. }
            | SnapshotError::Special { .. }
            | SnapshotError::Exists { .. }
            | SnapshotError::Git { .. }
            | SnapshotError::Io { .. } => StatusCode::CONFLICT,
        };
        Self::new(status, error.code(), crate::engine::error_chain(&error), error.advice())
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let (status, code, title, advice) = match denied {
            Denied::NoToken => (
                StatusCode::UNAUTHORIZED,
                "token_missing",
                "the request carries no token",
                "send `Authorization: Bearer …` with the token in the data folder's `token` file",
            ),
            Denied::BadToken => (
                StatusCode::UNAUTHORIZED,
                "token_unknown",
                "the token is not known here",
                "read it again from the data folder's `token` file, or make one with `lanyard token new`",
            ),
            Denied::RunEnded => (
                StatusCode::UNAUTHORIZED,
                "run_ended",
                "the run this token was made for has ended",
                "an agent's token ends with its run; the next run of the session gets its own",
            ),
            Denied::Role => (
                StatusCode::FORBIDDEN,
                "role_forbidden",
                "the token's role does not allow this",
                "use an operator's token",
            ),
            Denied::OtherSession => (
                StatusCode::FORBIDDEN,
                "not_your_session",
                "an agent's token can act only as its own session",
                "name the session the token was made for",
            ),
        };
        Self::new(status, code, title, advice)
    }
}

impl From<CursorError> for Problem {
    fn from(error: CursorError) -> Self {
        let code = match error {
            CursorError::Unreadable => "cursor_unreadable",
            CursorError::OtherFilter => "cursor_other_filter",
        };
        Self::bad_request(code, error.to_string(), "start again without a cursor")
    }
}

#[cfg(test)]
#[path = "problem_tests.rs"]
mod tests;
