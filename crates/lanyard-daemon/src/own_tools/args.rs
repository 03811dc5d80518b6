//! Arguments of a call, read into what a tool takes.

use lanyard_core::SessionId;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tool_refusal::Refused;

pub(super) fn parse<T: DeserializeOwned>(arguments: Value) -> Result<T, Refused> {
    serde_json::from_value(arguments).map_err(|error| {
        let what = format!("the arguments do not fit: {error}");
        Refused::new("arguments_invalid", what, "compare them with the tool's schema and call it again")
    })
}

pub(super) fn need<T>(field: &'static str, value: Option<T>) -> Result<T, Refused> {
    value.ok_or_else(|| Refused::missing(field))
}

pub(super) fn session_id(text: &str) -> Result<SessionId, Refused> {
    text.parse().map_err(|_| Refused::no_such_session(format!("`{text}`")))
}
