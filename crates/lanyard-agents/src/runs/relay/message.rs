//! What the relay reads of a JSON-RPC message, and what it answers in the daemon's place.

use std::borrow::Cow;

use lanyard_api::annotate::{self, json};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::heads::RequestHead;

/// JSON-RPC's code for a server that failed.
const SERVER_FAILED: i64 = -32000;
/// The first revision in which a result names its type.
const MODERN: &str = "2026-07-28";

/// One message of an MCP client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// As it was written; none for a notification or an answer.
    id: Option<String>,
    method: String,
    modern: bool,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
}

impl Message {
    pub(super) fn read(head: &RequestHead, body: &[u8]) -> Self {
        let is_object = body.trim_ascii_start().first() == Some(&b'{');
        let envelope: Option<Envelope<'_>> = if is_object { serde_json::from_slice(body).ok() } else { None };
        let version = head.headers.text("mcp-protocol-version").unwrap_or_default();
        let modern = version >= MODERN;
        match envelope {
            Some(Envelope { id, method }) => Self {
                id: id.filter(|_| method.is_some()).map(|id| id.get().to_owned()),
                method: method.unwrap_or_default().into_owned(),
                modern,
            },
            // The daemon says what is wrong with it; nothing is known of what it would do.
            None => Self { id: Some("null".to_owned()), method: String::new(), modern },
        }
    }

    /// Whether the message may reach two daemons. Every method that is not known to be harmless counts as a call.
    pub(super) fn may_repeat(&self) -> bool {
        if self.id.is_none() {
            return true;
        }
        matches!(
            self.method.as_str(),
            "initialize"
                | "ping"
                | "server/discover"
                | "tools/list"
                | "resources/list"
                | "resources/templates/list"
                | "resources/read"
                | "resources/subscribe"
                | "resources/unsubscribe"
                | "prompts/list"
                | "prompts/get"
                | "completion/complete"
                | "logging/setLevel"
        )
    }

    /// Whether an agent that begins to use a server sends it.
    pub(super) fn is_first_contact(&self) -> bool {
        matches!(self.method.as_str(), "initialize" | "server/discover" | "tools/list")
    }

    /// The answer to a request that a daemon had read when it ended.
    pub(super) fn uncertain(&self) -> Option<String> {
        self.failed(
            "call_uncertain: the Lanyard daemon ended while this call ran. The tool may have run; check before you \
             repeat the call.",
        )
    }

    /// The answer to a request that no daemon has read.
    pub(super) fn not_sent(&self, waited_ms: u64) -> Option<String> {
        let seconds = waited_ms / 1_000;
        self.failed(&format!(
            "daemon_away: no Lanyard daemon answered within {seconds} s, so nothing was done. Start it with \
             `lanyard up`, then repeat the call."
        ))
    }

    /// None where no answer is expected.
    fn failed(&self, what: &str) -> Option<String> {
        let id = self.id.as_deref()?;
        if self.method == "tools/call" {
            let result = annotate::failure(what, self.modern);
            return Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
        }
        let error = format!(r#"{{"code":{SERVER_FAILED},"message":{}}}"#, json::quoted(what));
        Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
    }
}

/// A message as an event of a stream.
pub(super) fn event(message: &str) -> Vec<u8> {
    format!("event: message\ndata: {message}\n\n").into_bytes()
}
