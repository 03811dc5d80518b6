//! The envelope of a JSON-RPC message: all a relay reads of it, in one pass and without copies. What it does not know
//! it does not touch.

use std::borrow::Cow;
use std::sync::LazyLock;

use lanyard_api::annotate::json;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The newest revision with an `initialize`, and the one after, without.
pub(super) const LEGACY: &str = "2025-11-25";
pub(super) const MODERN: &str = "2026-07-28";

/// Where a client that does not initialize says who it is and what it speaks (revision 2026-07-28).
pub(super) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
pub(super) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The argument by which a model may say which session it is.
pub(super) const HINT: &str = "_session_id";

/// Signs that the arguments may name a session, made once for all calls.
static NAMED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"session_id"));
static ESCAPED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u"));

/// What the relay reads of a client's message.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) params: Option<Params<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Params<'a> {
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) uri: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    pub(super) meta: Option<&'a RawValue>,
}

/// The conversation of an agent that a call comes from, by the agent's own word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Thread {
    Main,
    /// A subagent's, by this id.
    Sub(String),
}

/// What kind of message a client sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Notification,
    /// An answer to something the server asked.
    Answer,
}

impl<'a> Envelope<'a> {
    /// Only an object is a message: a list would be taken as the fields in their order.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, serde_json::Error> {
        if body.trim_ascii_start().first() == Some(&b'[') {
            return Err(serde::de::Error::custom("a list of messages is not supported"));
        }
        serde_json::from_slice(body)
    }

    pub(super) fn kind(&self) -> Kind {
        match (&self.method, self.id) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            (None, _) => Kind::Answer,
        }
    }

    pub(super) fn method(&self) -> &str {
        self.method.as_deref().unwrap_or_default()
    }

    /// The id as it was written.
    pub(super) fn id(&self) -> &'a str {
        self.id.map_or("null", RawValue::get)
    }

    /// The tool a call names.
    pub(super) fn tool(&self) -> Option<String> {
        let name = self.params.as_ref()?.name?;
        serde_json::from_str(name.get()).ok()
    }

    pub(super) fn arguments(&self) -> Option<&'a str> {
        self.params.as_ref()?.arguments.map(RawValue::get)
    }

    pub(super) fn meta(&self) -> Option<&'a str> {
        self.params.as_ref()?.meta.map(RawValue::get)
    }

    /// The revision a message without an initialize says it is of.
    pub(super) fn modern(&self) -> Option<String> {
        let meta = self.meta()?;
        memchr::memmem::find(meta.as_bytes(), META_VERSION.as_bytes())?;
        let version: String = serde_json::from_str(json::member(meta, META_VERSION)?).ok()?;
        Some(version).filter(|version| version.as_str() >= MODERN)
    }

    /// The client's name, where the message carries it.
    pub(super) fn client(&self) -> Option<String> {
        let meta = self.meta()?;
        memchr::memmem::find(meta.as_bytes(), META_CLIENT.as_bytes())?;
        name_of(json::member(meta, META_CLIENT)?)
    }

    /// The session the arguments name: a string, or it is none of ours.
    pub(super) fn hint(&self) -> Option<String> {
        let arguments = self.arguments()?;
        let bytes = arguments.as_bytes();
        if NAMED.find(bytes).is_none() && ESCAPED.find(bytes).is_none() {
            return None;
        }
        let members = json::members(arguments)?;
        // Said twice it is said last, as every reader of JSON takes it.
        let said = members.iter().rev().find(|member| member.key == HINT)?;
        serde_json::from_str(arguments.get(said.value.clone())?).ok()
    }

    /// Who of the agent's family calls, where the agent says so: it names the calling conversation and the whole one.
    pub(super) fn thread(&self) -> Option<Thread> {
        let meta = self.meta()?;
        memchr::memmem::find(meta.as_bytes(), b"\"threadId\"")?;
        let said = |key| serde_json::from_str::<String>(json::member(meta, key)?).ok();
        let thread = said("threadId")?;
        Some(if said("sessionId").as_ref() == Some(&thread) { Thread::Main } else { Thread::Sub(thread) })
    }
}

/// The name in a client's or server's introduction.
pub(super) fn name_of(info: &str) -> Option<String> {
    serde_json::from_str(json::member(info, "name")?).ok()
}

/// What the relay reads of a server's message.
#[derive(Debug, Deserialize)]
pub(super) struct Said<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
}

impl<'a> Said<'a> {
    pub(super) fn read(text: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// Whether it answers the request with this id.
    pub(super) fn answers(&self, id: &str) -> bool {
        self.method.is_none() && self.id.is_some_and(|held| same_id(held.get(), id))
    }
}

/// An id as it is compared: text that was escaped differently is the same text.
pub(super) fn id_key(id: &str) -> String {
    if !id.contains('\\') {
        return id.to_owned();
    }
    serde_json::from_str::<serde_json::Value>(id).map_or_else(|_| id.to_owned(), |id| id.to_string())
}

fn same_id(one: &str, other: &str) -> bool {
    one == other || id_key(one) == id_key(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(arguments: &str) -> Option<String> {
        let body =
            format!(r#"{{"id":1,"method":"tools\/call","params":{{"name":"t","arguments":{arguments}}}}}"#);
        let envelope = Envelope::read(body.as_bytes()).unwrap();
        assert_eq!(envelope.method(), "tools/call");
        envelope.hint()
    }

    /// S0-33: only a string counts.
    #[test]
    fn only_a_string_names_a_session() {
        assert_eq!(hint(r#"{"_session_id":"s1"}"#).as_deref(), Some("s1"));
        assert_eq!(hint(r#"{"\u005fsession\u005fid":"s1"}"#).as_deref(), Some("s1"));
        for other in ["1", "null", "{}", "[\"s1\"]", "true"] {
            assert_eq!(hint(&format!(r#"{{"_session_id":{other}}}"#)), None, "{other}");
        }
        assert_eq!(hint(r#"{"a":{"_session_id":"s1"},"b":"_session_id"}"#), None);
        assert_eq!(hint("{}"), None);
        assert_eq!(hint("[]"), None);
    }

    #[test]
    fn a_message_said_twice_is_no_message() {
        assert!(Envelope::read(br#"{"id":1,"method":"ping","method":"tools/call"}"#).is_err());
        assert!(Envelope::read(br#"{"id":1,"params":{"name":"a","name":"b"}}"#).is_err());
        assert!(Envelope::read(b"[1]").is_err());
    }

    #[test]
    fn a_subagent_is_told_from_its_parent() {
        let thread = |meta: &str| {
            let body = format!(r#"{{"id":1,"method":"tools/call","params":{{"_meta":{meta}}}}}"#);
            Envelope::read(body.as_bytes()).unwrap().thread()
        };
        assert_eq!(thread(r#"{"threadId":"t1","sessionId":"t1"}"#), Some(Thread::Main));
        assert_eq!(thread(r#"{"threadId":"t2","sessionId":"t1"}"#), Some(Thread::Sub("t2".to_owned())));
        assert_eq!(thread("{}"), None);
    }
}
