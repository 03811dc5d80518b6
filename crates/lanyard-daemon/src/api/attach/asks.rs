//! Requests over a WebSocket. Each is a row of the route table, carried out on this session through the same router,
//! with the connection's own token: what HTTP would refuse is refused here.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, Request};
use axum::response::Response;
use bytes::Bytes;
use lanyard_api::names::API;
use lanyard_api::types::{StreamAsk, StreamFrame};
use lanyard_core::SessionId;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc};
use tower::ServiceExt;

use crate::api::App;
use crate::api::attach::socket::{FRAME_BYTES_MAX, Out, json};
use crate::api::context::REPLAYED;
use crate::api::routes::{ApiRoute, table};
use crate::server::Via;

/// Requests of one connection that may be under way. A place is free again when the answer was written.
const DO_MAX: usize = 8;
/// Largest answer that fits into a frame.
const REPLY_BYTES_MAX: usize = 8 << 20;
/// Longest name a client may give its request.
const REF_CHARS_MAX: usize = 128;

const TOO_MANY: &str = "too_many_in_flight";
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const WRITER: HeaderName = HeaderName::from_static("lanyard-writer");

/// What can be asked for: everything about one session but another stream.
static OPERATIONS: LazyLock<BTreeMap<&'static str, ApiRoute>> = LazyLock::new(|| {
    let about_a_session = |route: &ApiRoute| route.base == API && route.path.contains("{id}");
    table()
        .into_iter()
        .filter(|route| about_a_session(route) && !route.streams)
        .map(|route| (route.name, route))
        .collect()
});

/// Takes the requests of one connection.
pub(in crate::api) struct Desk {
    app: Arc<App>,
    session: SessionId,
    authorization: Option<HeaderValue>,
    room: Arc<Semaphore>,
}

/// A frame that was not understood.
#[derive(Debug)]
pub(super) struct Fault {
    reference: Option<String>,
    code: &'static str,
    what: String,
    advice: String,
}

impl Desk {
    pub(in crate::api) fn new(app: Arc<App>, session: SessionId, authorization: &str) -> Self {
        let authorization = HeaderValue::from_str(authorization).ok().map(|mut value| {
            value.set_sensitive(true);
            value
        });
        Self { app, session, authorization, room: Arc::new(Semaphore::new(DO_MAX)) }
    }

    /// Has it carried out aside; its answer comes when it is there. A client that leaves does not take it along.
    pub(super) fn take(&self, ask: StreamAsk, outbox: &mpsc::Sender<Out>) -> Result<(), Fault> {
        let reference = ask.reference.clone();
        if reference.as_ref().is_some_and(|text| text.chars().count() > REF_CHARS_MAX) {
            return Err(Fault::new(
                None,
                "ref_too_long",
                "the `ref` is too long",
                "use up to 128 characters",
            ));
        }
        let fault = |what: Fault| Fault { reference: reference.clone(), ..what };
        let request = self.request(ask).map_err(fault)?;
        let place = self.room.clone().try_acquire_owned().map_err(|_| {
            let advice = "wait for an answer before sending the next";
            Fault::new(reference.clone(), TOO_MANY, format!("{DO_MAX} requests are under way"), advice)
        })?;
        let router = self.app.router.lock().clone();
        let Some(router) = router else {
            return Err(Fault::new(
                reference,
                "daemon_closing",
                "the daemon is ending",
                "repeat it once it runs again",
            ));
        };
        let outbox = outbox.clone();
        tokio::spawn(async move {
            let Ok(response) = router.oneshot(request).await;
            let frame = reply(reference, response).await;
            let _ = outbox.send(Out::Reply(frame, place)).await;
        });
        Ok(())
    }

    fn request(&self, ask: StreamAsk) -> Result<Request<Body>, Fault> {
        let route = ask.operation.as_deref().and_then(|name| OPERATIONS.get(name)).ok_or_else(|| {
            let what = match &ask.operation {
                Some(name) => format!("there is no operation `{name}` on a session"),
                None => "the frame names no operation".to_owned(),
            };
            Fault::new(
                None,
                "do_unknown",
                what,
                "`do` is an operationId of /api/v1/openapi.json with `{id}` in its path",
            )
        })?;
        let uri = uri(route, self.session, &ask.params)?;
        let body = match (&ask.body, route.body.is_some()) {
            (Some(body), true) => body.to_string(),
            (None, true) => "{}".to_owned(),
            (None, false) => String::new(),
            (Some(_), false) => {
                let what = format!("`{}` takes no body", route.name);
                return Err(Fault::new(None, "body_unknown", what, "leave `body` out"));
            }
        };
        let mut request = Request::builder().method(route.method.to_uppercase().as_str()).uri(uri);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if route.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(key) = ask.key {
            request = request.header(KEY, key);
        }
        if let Some(epoch) = ask.writer_epoch {
            request = request.header(WRITER, epoch);
        }
        // The connection's Host and Origin were looked at when it was made.
        request.extension(Via::Socket).body(Body::from(body)).map_err(|error| {
            Fault::new(
                None,
                "frame_invalid",
                format!("no request can be made of the frame: {error}"),
                "use visible ASCII in `key`",
            )
        })
    }
}

/// The route's path with its parts filled in, and the rest of what was given as its query.
fn uri(route: &ApiRoute, session: SessionId, params: &BTreeMap<String, String>) -> Result<String, Fault> {
    let mut rest = params.clone();
    let mut uri = String::from(API);
    for part in route.path.split('/').skip(1) {
        uri.push('/');
        match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            Some("id") => uri.push_str(&session.to_string()),
            Some(name) => {
                let value = rest.remove(name).ok_or_else(|| {
                    let what = format!("`{}` needs `{name}`", route.name);
                    Fault::new(None, "param_missing", what, format!("put `{name}` into `params`"))
                })?;
                push_encoded(&mut uri, &value);
            }
            None => uri.push_str(part),
        }
    }
    for (at, (name, value)) in rest.iter().enumerate() {
        if !route.query.contains(&name.as_str()) {
            let what = format!("`{}` knows no `{name}`", route.name);
            return Err(Fault::new(None, "param_unknown", what, "compare it with /api/v1/openapi.json"));
        }
        uri.push(if at == 0 { '?' } else { '&' });
        push_encoded(&mut uri, name);
        uri.push('=');
        push_encoded(&mut uri, value);
    }
    Ok(uri)
}

fn push_encoded(text: &mut String, part: &str) {
    use std::fmt::Write;
    for byte in part.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
}

/// The answer as a frame; its body as it is.
async fn reply(reference: Option<String>, response: Response) -> Bytes {
    #[derive(Serialize)]
    struct Reply<'a> {
        r#type: &'static str,
        r#ref: Option<&'a str>,
        status: u16,
        body: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        replayed: bool,
    }
    let status = response.status().as_u16();
    let replayed = response.headers().contains_key(REPLAYED);
    let too_large = |reference| {
        let advice = "ask for less, or over HTTP; what it changed is changed";
        Fault::new(
            reference,
            "reply_too_large",
            format!("the answer ({status}) does not fit into a frame"),
            advice,
        )
    };
    let Ok(body) = axum::body::to_bytes(response.into_body(), REPLY_BYTES_MAX).await else {
        return too_large(reference).frame();
    };
    let body: Option<&RawValue> = serde_json::from_slice(&body).ok();
    let frame = Reply { r#type: "reply", r#ref: reference.as_deref(), status, body, replayed };
    serde_json::to_vec(&frame).unwrap_or_default().into()
}

impl Fault {
    fn new(
        reference: Option<String>,
        code: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { reference, code, what: what.into(), advice: advice.into() }
    }

    pub(super) fn not_text() -> Self {
        Self::new(None, "frame_not_text", "the frame is binary", "send JSON as text")
    }

    pub(super) fn too_large() -> Self {
        let what = format!("the frame is larger than {FRAME_BYTES_MAX} bytes");
        Self::new(None, "frame_too_large", what, "send it over HTTP, or put long content into a file")
    }

    pub(super) fn not_read(error: &serde_json::Error) -> Self {
        let advice = r#"send {"ref":"1","do":"start_turn","body":{…}} or {"type":"ping"}"#;
        Self::new(None, "frame_invalid", format!("the frame cannot be read: {error}"), advice)
    }

    pub(super) fn unknown_type(reference: Option<String>) -> Self {
        Self::new(
            reference,
            "type_unknown",
            "the only `type` of a client's frame is `ping`",
            "use `do` for requests",
        )
    }

    pub(super) fn nothing_to_do(reference: Option<String>) -> Self {
        Self::new(
            reference,
            "do_unknown",
            "this stream takes no requests",
            "attach to a session, or use HTTP",
        )
    }

    /// Whether it came only too soon.
    pub(super) fn is_haste(&self) -> bool {
        self.code == TOO_MANY
    }

    pub(super) fn frame(self) -> Bytes {
        let Self { reference, code, what, advice } = self;
        json(&StreamFrame::Error { reference, code: code.to_owned(), what, advice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str, params: &[(&str, &str)]) -> Result<String, &'static str> {
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        uri(&OPERATIONS[name], SessionId::from_u128(1), &params).map_err(|fault| fault.code)
    }

    #[test]
    fn a_request_stays_on_its_session_whatever_it_is_given() {
        let at = format!("/api/v1/sessions/{}", SessionId::from_u128(1));
        assert_eq!(path("start_turn", &[]), Ok(format!("{at}/turns")));
        assert_eq!(
            path("answer_gate", &[("gate", "../../x?y#z")]),
            Ok(format!("{at}/gates/..%2F..%2Fx%3Fy%23z"))
        );
        assert_eq!(
            path("list_events", &[("after", "3"), ("limit", "2")]),
            Ok(format!("{at}/events?after=3&limit=2"))
        );
        assert_eq!(path("answer_gate", &[]), Err("param_missing"));
        assert_eq!(path("start_turn", &[("id", "sess_2")]), Err("param_unknown"));
        assert_eq!(path("start_turn", &[("workspace", "/x")]), Err("param_unknown"));
    }

    #[test]
    fn no_other_stream_and_nothing_about_others_can_be_asked_for() {
        for name in ["attach", "list_sessions", "shutdown", "mcp_message", "new_token"] {
            assert!(!OPERATIONS.contains_key(name), "{name}");
        }
        assert!(OPERATIONS.contains_key("stop_session"));
    }
}
