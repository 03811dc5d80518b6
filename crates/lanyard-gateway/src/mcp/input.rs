//! Questions of a server as revision 2026-07-28 has them: `input_required` is the answer to a request, and the client's
//! answers come with the same request made again.

use bytes::Bytes;
use lanyard_api::annotate::json;
use tokio::time::Duration;

use crate::mcp::envelope::Said;

/// Calls of one client that may wait for its answer, and for how long.
pub(super) const ASKED_MAX: usize = 64;
pub(super) const ASKED_FOR: Duration = Duration::from_mins(10);
/// What the name of such a call begins with; a server's own begins otherwise.
const STATE: &str = "lya_";

/// What may be asked of a client in the middle of a call.
pub(super) fn is_input(method: &str) -> bool {
    matches!(method, "elicitation/create" | "sampling/createMessage" | "roots/list")
}

/// A name for a call that waits. Nothing when the system gives no random bits.
pub(super) fn state() -> Option<String> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    Some(format!("{STATE}{:032x}", u128::from_be_bytes(bits)))
}

/// The id of a server's question, and the result that carries the question to the client.
pub(super) fn required(question: &Bytes, state: &str) -> Option<(String, String)> {
    let text = std::str::from_utf8(question).ok()?;
    let (method, params) = (json::member(text, "method")?, json::member(text, "params").unwrap_or("{}"));
    let id = Said::read(question)?.id?.get().to_owned();
    let asked = format!(r#"{{"method":{method},"params":{params}}}"#);
    let result = format!(
        r#"{{"resultType":"input_required","inputRequests":{{"input":{asked}}},"requestState":"{state}"}}"#
    );
    Some((id, result))
}

/// The answer to a question, in a request made again.
pub(super) struct Again {
    pub(super) state: String,
    pub(super) result: String,
}

pub(super) fn again(body: &Bytes) -> Option<Again> {
    let params = json::member(std::str::from_utf8(body).ok()?, "params")?;
    let state: String = serde_json::from_str(json::member(params, "requestState")?).ok()?;
    let responses = json::member(params, "inputResponses")?;
    let result = json::member(responses, "input").unwrap_or("{}").replace(['\n', '\r'], " ");
    Some(Again { state, result }).filter(|again| again.state.starts_with(STATE))
}

/// What is said to a client whose answer comes too late.
pub(super) const NOBODY_WAITS: &str =
    "no call waits for this answer any more; repeat the call without requestState";
