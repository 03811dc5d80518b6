//! What the wrapper reads of a request's parameters. The rest is the server's and the client's business.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The argument in which a model may say which session it works in.
pub(super) const HINT: &str = "_session_id";

/// What is read of the parameters of any request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallParams<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(rename = "clientInfo")]
    client: Option<ClientInfo>,
    #[serde(rename = "_meta")]
    pub(super) meta: Meta,
}

impl CallParams<'_> {
    /// What the client calls itself: once when it begins, or with every request.
    pub(super) fn client(&self) -> Option<&str> {
        let named = self.client.as_ref().or(self.meta.client.as_ref())?;
        named.name.as_deref()
    }
}

/// What some clients say about a call without being asked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta {
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    client: Option<ClientInfo>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
    /// Codex: the conversation, and the one it works for.
    #[serde(rename = "threadId")]
    pub(super) thread: Option<String>,
    #[serde(rename = "sessionId")]
    pub(super) root: Option<String>,
    #[serde(rename = "callId")]
    codex_call: Option<String>,
    #[serde(rename = "claudecode/toolUseId")]
    claude_call: Option<String>,
}

impl Meta {
    /// A revision without an `initialize`: only there does each request say which it is of.
    pub(super) fn is_modern(&self) -> bool {
        self.version.is_some()
    }

    /// The agent's own id of the call, by which its hook knows it too.
    pub(super) fn call(&self) -> Option<&str> {
        self.claude_call.as_deref().or(self.codex_call.as_deref())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClientInfo {
    name: Option<String>,
}

/// The `arguments` of a call as far as they matter here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Hinting<'a> {
    #[serde(rename = "_session_id", borrow)]
    hint: Option<&'a RawValue>,
}

/// The hint in a call's arguments; only a string is one.
pub(super) fn hint(arguments: Option<&RawValue>) -> Option<String> {
    let arguments = arguments?.get();
    if !arguments.contains("_session") && !arguments.contains("\\u") {
        return None;
    }
    let hinting: Hinting<'_> = serde_json::from_str(arguments).ok()?;
    serde_json::from_str(hinting.hint?.get()).ok()
}

#[cfg(test)]
mod tests {
    use lanyard_client::rpc::RpcEnvelope;

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn only_a_string_is_a_hint() {
        assert_eq!(hint(Some(&raw(r#"{"_session_id":"s"}"#))), Some("s".to_owned()));
        assert_eq!(hint(Some(&raw(r#"{"_session_id":7}"#))), None);
        assert_eq!(hint(Some(&raw(r#"{"a":{"_session_id":"s"}}"#))), None);
        assert_eq!(hint(Some(&raw(r#""_session_id""#))), None);
        assert_eq!(hint(None), None);
    }

    #[test]
    fn a_client_introduces_itself_at_the_start_or_with_each_request() {
        let name = |text: &str| {
            let line = format!(r#"{{"id":1,"method":"x","params":{text}}}"#);
            let envelope = RpcEnvelope::read(line.as_bytes()).unwrap();
            envelope.params::<CallParams<'_>>().client().map(str::to_owned)
        };
        assert_eq!(name(r#"{"clientInfo":{"name":"claude-code"}}"#), Some("claude-code".to_owned()));
        let meta = r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}"#;
        assert_eq!(name(meta), Some("c".to_owned()));
        assert_eq!(name(r#"{"_meta":{}}"#), None);
        assert_eq!(name("[1]"), None);
    }
}
