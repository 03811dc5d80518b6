//! Between revisions 2025-11-25 (a greeting, then a connection with an id) and 2026-07-28 (no greeting: every request
//! says who asks and what it speaks). Where both sides speak the same, nothing here is used.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use bytes::Bytes;
use lanyard_api::annotate::json;

use crate::mcp::envelope::{LEGACY, META_CAPABILITIES, META_CLIENT, META_SERVER, META_VERSION, MODERN};

/// What results hold that a client of the newer revision may keep.
const CACHEABLE: [&str; 5] = ["tools", "resources", "resourceTemplates", "prompts", "contents"];

/// A client that greets, in front of a server that has no greeting: what it said of itself goes with each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Modern {
    pub(super) version: String,
    client: String,
    capabilities: String,
}

impl Modern {
    /// From the parameters of an `initialize`.
    pub(super) fn of(params: &str, version: &str) -> Self {
        let said = |key, otherwise: &str| json::member(params, key).unwrap_or(otherwise).to_owned();
        Self {
            version: version.to_owned(),
            client: said("clientInfo", r#"{"name":"lanyard","version":"0"}"#),
            capabilities: said("capabilities", "{}"),
        }
    }

    /// A request or notification with what its sender said of itself.
    pub(super) fn dress(&self, message: &str) -> Option<String> {
        let params = json::member(message, "params").unwrap_or("{}");
        let meta = json::member(params, "_meta").unwrap_or("{}");
        let meta = json::with(meta, META_CAPABILITIES, &self.capabilities)?;
        let meta = json::with(&meta, META_CLIENT, &self.client)?;
        let meta = json::with(&meta, META_VERSION, &json::quoted(&self.version))?;
        json::with(message, "params", &json::with(params, "_meta", &meta)?)
    }
}

/// Whether an answer to `initialize` says that the server has no such thing: the method or the revision is not known.
pub(super) fn refuses_greeting(answer: &str) -> bool {
    let Some(error) = json::member(answer, "error") else { return false };
    matches!(json::member(error, "code"), Some("-32022" | "-32601" | "-32020"))
}

/// The answer to a greeting, from what a server without one says of itself.
pub(super) fn greeting(discovered: &str, asked: Option<&str>, server: &str) -> String {
    let version = asked.filter(|asked| *asked < MODERN).unwrap_or(LEGACY);
    let info = json::member(discovered, "_meta").and_then(|meta| json::member(meta, META_SERVER));
    let info =
        info.map_or_else(|| format!(r#"{{"name":{},"version":"0"}}"#, json::quoted(server)), str::to_owned);
    let capabilities = json::member(discovered, "capabilities").unwrap_or("{}");
    let instructions = json::member(discovered, "instructions")
        .map_or_else(String::new, |words| format!(r#","instructions":{words}"#));
    format!(
        r#"{{"protocolVersion":{},"capabilities":{capabilities},"serverInfo":{info}{instructions}}}"#,
        json::quoted(version)
    )
}

/// What a server says of itself, from its answer to a greeting.
pub(super) fn discovered(greeting: &str) -> String {
    let capabilities = json::member(greeting, "capabilities").unwrap_or("{}");
    let info = json::member(greeting, "serverInfo").unwrap_or("{}");
    let instructions = json::member(greeting, "instructions")
        .map_or_else(String::new, |words| format!(r#","instructions":{words}"#));
    format!(
        r#"{{"resultType":"complete","supportedVersions":["{MODERN}","{LEGACY}"],"capabilities":{capabilities}{instructions},"ttlMs":0,"cacheScope":"private","_meta":{{"{META_SERVER}":{info}}}}}"#
    )
}

/// The parameters of a greeting on behalf of a client that has none.
pub(super) fn greeting_params(meta: Option<&str>) -> String {
    let said =
        |key, otherwise: &str| meta.and_then(|meta| json::member(meta, key)).unwrap_or(otherwise).to_owned();
    format!(
        r#"{{"protocolVersion":"{LEGACY}","capabilities":{},"clientInfo":{}}}"#,
        said(META_CAPABILITIES, "{}"),
        said(META_CLIENT, r#"{"name":"lanyard","version":"0"}"#)
    )
}

/// A result that says of what type it is, for a client that reads it.
pub(super) fn completed(answer: &Bytes) -> Bytes {
    let done = || {
        let text = std::str::from_utf8(answer).ok()?;
        let result = json::member(text, "result")?;
        if json::member(result, "resultType").is_some() {
            return None;
        }
        let mut result = json::with(result, "resultType", "\"complete\"")?;
        // What can be listed or read may be kept by a client; a server of the older revision says nothing of how long.
        if CACHEABLE.iter().any(|kind| json::member(&result, kind).is_some()) {
            for (key, value) in [("ttlMs", "0"), ("cacheScope", "\"private\"")] {
                if json::member(&result, key).is_none() {
                    result = json::with(&result, key, value)?;
                }
            }
        }
        json::with(text, "result", &result)
    };
    done().map_or_else(|| answer.clone(), Bytes::from)
}

/// The headers by which intermediaries know a request of revision 2026-07-28.
pub(super) fn modern_headers(headers: &mut HeaderMap, method: &str, name: Option<&str>, version: &str) {
    let mut set = |key: &'static str, text: &str| {
        if let Ok(value) = HeaderValue::from_str(&header_text(text)) {
            headers.insert(HeaderName::from_static(key), value);
        }
    };
    set("mcp-protocol-version", version);
    set("mcp-method", method);
    if let Some(name) = name {
        set("mcp-name", name);
    }
}

/// A text as a header can carry it.
fn header_text(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text;
    if plain && !(text.starts_with("=?base64?") && text.ends_with("?=")) {
        return text.to_owned();
    }
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_greeted_is_introduced_with_each_request() {
        let params =
            r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c"}}"#;
        let modern = Modern::of(params, MODERN);
        let dressed = modern.dress(r#"{"id":1,"method":"tools/list"}"#).unwrap();
        let meta = format!(
            r#"{{"{META_VERSION}":"2026-07-28","{META_CLIENT}":{{"name":"c"}},"{META_CAPABILITIES}":{{"roots":{{}}}}}}"#
        );
        assert_eq!(dressed, format!(r#"{{"params":{{"_meta":{meta}}},"id":1,"method":"tools/list"}}"#));
        let kept =
            modern.dress(r#"{"id":1,"method":"x","params":{"a":1,"_meta":{"progressToken":7}}}"#).unwrap();
        let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
        assert_eq!((&kept["params"]["a"], &kept["params"]["_meta"]["progressToken"]), (&1.into(), &7.into()));
    }

    #[test]
    fn greetings_and_discoveries_say_the_same() {
        let greeted = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"be kind"}"#;
        let found = discovered(greeted);
        serde_json::from_str::<serde_json::Value>(&found).unwrap();
        assert_eq!(greeting(&found, Some("2025-11-25"), "x"), greeted);
    }

    #[test]
    fn results_say_their_type_once() {
        let answer = Bytes::from_static(br#"{"id":1,"result":{"a":1}}"#);
        assert_eq!(&completed(&answer)[..], br#"{"id":1,"result":{"resultType":"complete","a":1}}"#);
        for same in [r#"{"id":1,"result":{"resultType":"task"}}"#, r#"{"id":1,"error":{}}"#] {
            assert_eq!(completed(&Bytes::from(same)), same);
        }
        assert_eq!(header_text("grüße"), "=?base64?Z3LDvMOfZQ==?=");
    }
}
