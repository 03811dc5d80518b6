//! Words from one side in the terms of the other: a question as a permission request, a refusal as a
//! JSON-RPC error, the end of a turn as a stop reason.

use agent_client_protocol_schema::v1::{
    Error, PermissionOption, PermissionOptionKind, RequestPermissionRequest, SessionId, StopReason,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use lanyard_core::GateId;
use lanyard_core::session::{InterruptCause, OptionKind, Question, TurnOutcome};
use serde_json::{Value, json};

use crate::failure::Failure;

/// Refused by the daemon, for a reason that `data.code` names.
pub(super) const REFUSED: i32 = -32001;

/// A gate as a permission request. `of` names the subagent that asks, where it is one.
pub(super) fn permission(
    session: &SessionId,
    gate: GateId,
    question: &Question,
    of: Option<&str>,
) -> RequestPermissionRequest {
    let call = match (&question.call, of) {
        (Some(call), None) => call.clone(),
        // A subagent's calls are not in this conversation, so this one is told of here alone.
        _ => gate.to_string(),
    };
    let title = match of {
        Some(name) => format!("{name}: {}", question.title),
        None => question.title.clone(),
    };
    // An agent that speaks the protocol has put it in the protocol's own terms, with diffs and places.
    let told = serde_json::from_value::<ToolCallUpdate>(question.detail.clone()).map(|told| told.fields);
    let fields = told.unwrap_or_else(|_| {
        ToolCallUpdateFields::new().raw_input((!question.detail.is_null()).then(|| question.detail.clone()))
    });
    let fields = fields.title(title).status(ToolCallStatus::Pending);
    let options = question.options.iter().map(|option| {
        let kind = match option.kind {
            OptionKind::AllowOnce => PermissionOptionKind::AllowOnce,
            OptionKind::AllowAlways => PermissionOptionKind::AllowAlways,
            OptionKind::RejectOnce => PermissionOptionKind::RejectOnce,
            OptionKind::RejectAlways => PermissionOptionKind::RejectAlways,
            // An editor that allows by itself must not choose what is not known to be harmless.
            OptionKind::Other => PermissionOptionKind::RejectOnce,
        };
        PermissionOption::new(option.id.clone(), option.name.clone(), kind)
    });
    RequestPermissionRequest::new(session.clone(), ToolCallUpdate::new(call, fields), options.collect())
}

/// Why something was not done, for the editor.
pub(super) fn error_of(failure: &Failure) -> Error {
    let Failure::Told { problem, .. } = failure else { return Error::internal_error() };
    let what = if problem.advice.is_empty() {
        problem.title.clone()
    } else {
        format!("{}; {}", problem.title, problem.advice)
    };
    let code = match problem.status {
        400 | 422 => Error::invalid_params().code.into(),
        404 | 410 => Error::resource_not_found(None).code.into(),
        _ => REFUSED,
    };
    Error::new(code, what).data(json!({"code": problem.code, "advice": problem.advice}))
}

/// How a finished turn is answered.
pub(super) fn finished(outcome: TurnOutcome, reason: Option<&str>) -> Result<StopReason, Error> {
    match outcome {
        TurnOutcome::Completed => Ok(StopReason::EndTurn),
        TurnOutcome::Refused => Ok(StopReason::Refusal),
        TurnOutcome::Failed => Err(failed("turn_failed", reason.unwrap_or("the agent failed"))),
    }
}

/// How a turn that was cut short is answered.
pub(super) fn interrupted(cause: InterruptCause, reason: Option<&str>) -> Result<StopReason, Error> {
    match cause {
        InterruptCause::User => Ok(StopReason::Cancelled),
        InterruptCause::Limit if reason.is_some_and(|reason| reason.contains("token")) => {
            Ok(StopReason::MaxTokens)
        }
        InterruptCause::Limit => Ok(StopReason::MaxTurnRequests),
        InterruptCause::Crash | InterruptCause::Timeout | InterruptCause::HostLost => {
            let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            Err(failed(
                "turn_interrupted",
                &format!("the turn was interrupted by {}{because}", cause.as_str()),
            ))
        }
    }
}

pub(super) fn failed(code: &str, what: &str) -> Error {
    Error::new(Error::internal_error().code.into(), what).data(json!({"code": code}))
}

/// The parameters of a method.
pub(super) fn params_of<P: serde::de::DeserializeOwned>(params: Value) -> Result<P, Error> {
    serde_json::from_value(params).map_err(|error| Error::invalid_params().data(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_keeps_what_the_agent_showed_with_it() {
        let ask = |detail: Value| {
            let question = serde_json::from_value::<Question>(json!({
                "kind": "permission", "title": "Edit a.rs", "call": "c1", "detail": detail, "request": "1",
                "options": [{"id": "y", "name": "Yes", "kind": "allow_once"}, {"id": "z", "name": "?", "kind": "other"}],
            }))
            .unwrap();
            let request = permission(&SessionId::new("s"), GateId::from_u128(7), &question, None);
            serde_json::to_value(request).unwrap()
        };
        let diff = json!([{"type": "diff", "path": "/w/a.rs", "oldText": "a", "newText": "b"}]);
        let told = ask(json!({"toolCallId": "c1", "title": "x", "kind": "edit", "content": diff}));
        let expected = json!({
            "toolCallId": "c1", "title": "Edit a.rs", "kind": "edit", "status": "pending", "content": diff,
        });
        assert_eq!(told["toolCall"], expected);
        assert_eq!(told["options"][1]["kind"], "reject_once", "what nobody knows is not allowed by itself");
        let told = ask(json!({"command": "ls"}));
        assert_eq!(told["toolCall"]["rawInput"], json!({"command": "ls"}));
    }
}
