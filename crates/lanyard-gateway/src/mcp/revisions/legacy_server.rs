//! A client without a greeting (revision 2026-07-28) in front of an address that wants one: Lanyard greets in its place,
//! once for each session and server, and keeps the connection's id. What the server asks in the middle of a call reaches
//! the client as `input_required`; the server's stream waits in between.

mod call;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use lanyard_api::annotate::json;

use crate::http_endpoint::{HttpEndpoint, Lent, Outgoing, Trouble};
use crate::mcp::envelope::{Envelope, LEGACY, META_CAPABILITIES, META_CLIENT, META_VERSION, MODERN, Said};
use crate::mcp::http::{self, Talk};
use crate::mcp::http_in::{Visit, failed};
use crate::mcp::mcp_session::McpSession;
use crate::mcp::server::{ANSWER_BYTES_MAX, Server};
use crate::mcp::translate::{self, Modern};
use crate::mcp::work::Work;
use crate::mcp::{input, rpc};
use call::{Call, Parked};

/// Its own ids of the greeting and of the question before it.
const GREETING: &str = r#""lanyard-greeting""#;
const DISCOVER: &str = r#""lanyard-discover""#;

/// A connection to a server that was greeted in a client's place.
#[derive(Debug)]
pub(in crate::mcp) struct LegacyServer {
    session: Option<HeaderValue>,
    version: String,
    greeting: String,
    /// Ids of requests: a client without a connection may use the same ones again.
    next: AtomicU64,
    /// Calls that wait for the client to answer a question.
    parked: Mutex<HashMap<String, Parked>>,
}

impl LegacyServer {
    fn id(&self) -> String {
        format!("\"lanyard-{}\"", self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn outgoing(&self, mut headers: HeaderMap, body: Bytes) -> Outgoing {
        for name in ["mcp-method", "mcp-name", "mcp-session-id"] {
            headers.remove(HeaderName::from_static(name));
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Ok(version) = HeaderValue::from_str(&self.version) {
            headers.insert(HeaderName::from_static("mcp-protocol-version"), version);
        }
        if let Some(session) = &self.session {
            headers.insert(HeaderName::from_static("mcp-session-id"), session.clone());
        }
        Outgoing { method: Method::POST, headers, body }
    }
}

/// The connection of this MCP session, where the server is known to want one.
pub(in crate::mcp) async fn known(visit: &Visit) -> Option<(Arc<McpSession>, Arc<LegacyServer>)> {
    let mcp_session = visit.mcp_session.clone()?;
    let legacy_server = mcp_session.legacy_server.lock().await.clone()?;
    Some((mcp_session, legacy_server))
}

/// Whether an answer to a client without a greeting has to be looked at before it is forwarded. A refused
/// `server/discover` is forwarded as it is: a client that also knows the older revision then greets the server itself
/// and has all of it, roots and the stream between calls included, which a greeting in its place cannot give.
pub(in crate::mcp) fn may_be_refused<B>(envelope: &Envelope<'_>, answer: &Response<B>) -> bool {
    envelope.method() != "server/discover"
        && matches!(
            answer.status(),
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
        )
}

/// Looks at the answer; where the server knows nothing of this revision, greets it and asks again.
pub(in crate::mcp) async fn meet(
    visit: &Visit,
    server: &Arc<Server>,
    upstream: &HttpEndpoint,
    envelope: &Envelope<'_>,
    body: &Bytes,
    answer: Response<Lent>,
    work: Work,
) -> Response {
    let (parts, lent) = answer.into_parts();
    let said = match tokio::time::timeout(server.timeout, lent.whole(ANSWER_BYTES_MAX)).await {
        Ok(Ok(said)) => said,
        Ok(Err(trouble)) => return failed(work, &server.failed(&trouble)).await,
        Err(_) => return failed(work, &server.failed(&Trouble::Slow(server.timeout))).await,
    };
    let text = http::message_of(&said).unwrap_or_default();
    let met = match &visit.mcp_session {
        Some(mcp_session) if !is_modern(&text) => {
            if discovers(server, upstream, envelope).await {
                None
            } else {
                greeted(server, upstream, envelope, mcp_session, None).await.ok()
            }
        }
        Some(_) | None => None,
    };
    if let (Some(mcp_session), Some(legacy_server)) = (&visit.mcp_session, met) {
        return request(visit, server, upstream, envelope, body, work, (mcp_session.clone(), legacy_server))
            .await;
    }
    let mut response = Response::new(Body::from(said));
    *response.status_mut() = parts.status;
    *response.headers_mut() = http::back(parts.headers);
    response
}

/// Whether only a server of the newer revision says this.
fn is_modern(answer: &str) -> bool {
    let code = json::member(answer, "error").and_then(|error| json::member(error, "code"));
    json::member(answer, "result").is_some() || matches!(code, Some("-32020" | "-32021" | "-32022"))
}

/// Whether the server says what it is without a greeting: then its refusal meant something else.
async fn discovers(server: &Server, upstream: &HttpEndpoint, envelope: &Envelope<'_>) -> bool {
    let modern = Modern::of(&translate::greeting_params(envelope.meta()), MODERN);
    let bare = format!(r#"{{"jsonrpc":"2.0","id":{DISCOVER},"method":"server/discover","params":{{}}}}"#);
    let out = Outgoing::modern(modern.dress(&bare).unwrap_or(bare), "server/discover", None, &modern.version);
    match answer_to(server, upstream, out, DISCOVER).await {
        Ok((_, said)) => is_modern(&said),
        Err(Trouble::Nonsense(_)) => false,
        // Nothing is known of it then, and nothing is changed.
        Err(_) => true,
    }
}

/// Sends a message of Lanyard's own and waits for its answer.
async fn answer_to(
    server: &Server,
    upstream: &HttpEndpoint,
    out: Outgoing,
    id: &str,
) -> Result<(Option<HeaderValue>, String), Trouble> {
    let answer = upstream.send(out, server.timeout).await?;
    let session = answer.headers().get("mcp-session-id").cloned();
    let mut talk = Talk::of(answer);
    let heard = async {
        while let Some(data) = talk.next().await? {
            let is_it = Said::read(&data).is_some_and(|said| said.answers(id));
            if is_it || !talk.is_stream() {
                return Ok(String::from_utf8_lossy(&data).into_owned());
            }
        }
        Err(Trouble::Nonsense("it gave no answer to Lanyard's own question".to_owned()))
    };
    match tokio::time::timeout(server.timeout, heard).await {
        Ok(heard) => heard.map(|text| (session, text)),
        Err(_) => Err(Trouble::Slow(server.timeout)),
    }
}

/// The MCP session's connection: greeted once, and again where the server has forgotten the one before.
async fn greeted(
    server: &Server,
    upstream: &HttpEndpoint,
    envelope: &Envelope<'_>,
    mcp_session: &McpSession,
    lost: Option<&Arc<LegacyServer>>,
) -> Result<Arc<LegacyServer>, Trouble> {
    // Held over the greeting: whoever comes meanwhile uses the same connection.
    let mut held = mcp_session.legacy_server.lock().await;
    if let Some(legacy_server) = held.as_ref()
        && lost.is_none_or(|lost| !Arc::ptr_eq(lost, legacy_server))
    {
        return Ok(legacy_server.clone());
    }
    *held = None;
    let mut legacy_server = LegacyServer {
        session: None,
        version: LEGACY.to_owned(),
        greeting: String::new(),
        next: AtomicU64::new(1),
        parked: Mutex::default(),
    };
    let params = translate::greeting_params(envelope.meta());
    let greet = format!(r#"{{"jsonrpc":"2.0","id":{GREETING},"method":"initialize","params":{params}}}"#);
    let out = legacy_server.outgoing(HeaderMap::new(), greet.into());
    let (session, said) = answer_to(server, upstream, out, GREETING).await?;
    let result = json::member(&said, "result")
        .ok_or_else(|| Trouble::Nonsense("it refused Lanyard's greeting".to_owned()))?;
    result.clone_into(&mut legacy_server.greeting);
    legacy_server.session = session;
    if let Some(version) =
        json::member(result, "protocolVersion").and_then(|it| serde_json::from_str(it).ok())
    {
        legacy_server.version = version;
    }
    let done = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    upstream.send(legacy_server.outgoing(HeaderMap::new(), done), server.timeout).await?;
    let legacy_server = Arc::new(legacy_server);
    *held = Some(legacy_server.clone());
    Ok(legacy_server)
}

/// A request of the client, as the server wants it.
pub(in crate::mcp) async fn request(
    visit: &Visit,
    server: &Arc<Server>,
    upstream: &HttpEndpoint,
    envelope: &Envelope<'_>,
    body: &Bytes,
    mut work: Work,
    (mcp_session, mut legacy_server): (Arc<McpSession>, Arc<LegacyServer>),
) -> Response {
    work.completes = true;
    if envelope.method() == "server/discover" {
        let result = translate::discovered(&legacy_server.greeting);
        return rpc::json_response(Body::from(rpc::result_text(&work.id, &result)));
    }
    if let Some(again) = input::again(body) {
        return call::go_on(visit, server, &legacy_server, again, work).await;
    }
    let id = legacy_server.id();
    let Some(message) = undressed(body, Some(&id)) else {
        return failed(work, &server.failed(&Trouble::Nonsense("the request has no parts".to_owned()))).await;
    };
    let headers = http::onward(&visit.headers);
    let mut outcome =
        upstream.send(legacy_server.outgoing(headers.clone(), message.clone()), server.timeout).await;
    if legacy_server.session.is_some()
        && outcome.as_ref().is_ok_and(|answer| answer.status() == StatusCode::NOT_FOUND)
    {
        // It has forgotten the connection.
        outcome = match greeted(server, upstream, envelope, &mcp_session, Some(&legacy_server)).await {
            Ok(newer) => {
                legacy_server = newer;
                upstream.send(legacy_server.outgoing(headers, message), server.timeout).await
            }
            Err(trouble) => Err(trouble),
        };
    }
    let answer = match outcome {
        Ok(answer) => answer,
        Err(trouble) => return failed(work, &server.failed(&trouble)).await,
    };
    server.worked();
    if !answer.status().is_success() {
        return match http::returned(answer, work, server, &visit.context.gateway).await {
            Ok(response) => response,
            Err((work, trouble)) => failed(work, &server.failed(&trouble)).await,
        };
    }
    let call = Call { server: server.clone(), legacy_server, id, work };
    call::follow(visit, call, Talk::of(answer)).await
}

/// A notification of the client, as the server wants it.
pub(in crate::mcp) fn told(legacy_server: &LegacyServer, visit: &Visit, body: &Bytes) -> Option<Outgoing> {
    Some(legacy_server.outgoing(http::onward(&visit.headers), undressed(body, None)?))
}

/// The message without what a client of the newer revision says of itself.
fn undressed(body: &Bytes, id: Option<&str>) -> Option<Bytes> {
    let mut text = std::str::from_utf8(body).ok()?.to_owned();
    if let Some(id) = id {
        text = json::with(&text, "id", id)?;
    }
    let Some(params) = json::member(&text, "params") else { return Some(text.into()) };
    let Some(meta) = json::member(params, "_meta") else { return Some(text.into()) };
    let mut meta = meta.to_owned();
    for key in [META_VERSION, META_CLIENT, META_CAPABILITIES] {
        if json::member(&meta, key).is_some() {
            meta = json::without(&meta, key)?;
        }
    }
    let params = json::with(params, "_meta", &meta)?;
    json::with(&text, "params", &params).map(Bytes::from)
}
