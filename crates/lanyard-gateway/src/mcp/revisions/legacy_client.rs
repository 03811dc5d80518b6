//! A client that greets, in front of a server that has no greeting (revision 2026-07-28): Lanyard greets in its place.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use lanyard_api::annotate::json;

use crate::http_endpoint::{HttpEndpoint, Lent, Outgoing, Trouble};
use crate::mcp::envelope::{Envelope, MODERN};
use crate::mcp::http;
use crate::mcp::http_in::{Visit, failed};
use crate::mcp::rpc;
use crate::mcp::server::{ANSWER_BYTES_MAX, Server};
use crate::mcp::translate::{self, Modern};
use crate::mcp::work::{Aim, Work};
use lanyard_engine::live_runs::RunProof;

/// Its own id of the question.
const DISCOVER: &str = r#""lanyard-discover""#;

/// The request as a server without a greeting wants it; nothing where the client speaks as the server does.
pub(in crate::mcp) fn dressed(visit: &Visit, envelope: &Envelope<'_>, body: &Bytes) -> Option<Outgoing> {
    let modern = visit.mcp_session.as_ref()?.modern.read().clone()?;
    if envelope.modern().is_some() || envelope.method.is_none() {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?;
    let name = name_of(envelope.method(), text);
    let body = modern.dress(text)?;
    let mut headers: HeaderMap = http::onward(&visit.headers);
    headers.remove(HeaderName::from_static("mcp-session-id"));
    translate::modern_headers(&mut headers, envelope.method(), name.as_deref(), &modern.version);
    Some(Outgoing { method: axum::http::Method::POST, headers, body: body.into() })
}

/// What a request is about, as its header says it.
fn name_of(method: &str, text: &str) -> Option<String> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    serde_json::from_str(json::member(json::member(text, "params")?, key)?).ok()
}

/// Whether an answer to a greeting has to be looked at before it is passed on.
pub(in crate::mcp) fn may_be_refused<B>(answer: &Response<B>) -> bool {
    let kind = answer.headers().get(axum::http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
        && matches!(answer.status(), StatusCode::OK | StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND)
}

/// Looks at the answer to a greeting; where the server has none, asks it what it is and answers in its place.
pub(in crate::mcp) async fn greet(
    visit: &Visit,
    server: &Arc<Server>,
    upstream: &HttpEndpoint,
    envelope: &Envelope<'_>,
    body: &Bytes,
    answer: Response<Lent>,
) -> Response {
    let (parts, lent) = answer.into_parts();
    let work = Work {
        id: envelope.id().to_owned(),
        aim: Aim::Other,
        mcp_session: visit.mcp_session.clone(),
        proof: RunProof::default(),
        passing: None,
        taste: lanyard_api::annotate::Taste::Unlisted,
        modern: false,
        completes: false,
        own: false,
    };
    let said = match lent.whole(ANSWER_BYTES_MAX).await {
        Ok(said) => said,
        Err(trouble) => return failed(work, &server.failed(&trouble)).await,
    };
    let refused = std::str::from_utf8(&said).is_ok_and(translate::refuses_greeting);
    if let Some(mcp_session) = &visit.mcp_session {
        let was = mcp_session.modern.write().take();
        if was.is_some() {
            visit.context.gateway.book.forget(visit.session, &server.key, "modern").await;
        }
    }
    let params = std::str::from_utf8(body).ok().and_then(|text| json::member(text, "params"));
    let (true, Some(mcp_session), Some(params)) = (refused, &visit.mcp_session, params) else {
        let mut response = Response::new(Body::from(said));
        *response.status_mut() = parts.status;
        *response.headers_mut() = http::back(parts.headers);
        return response;
    };
    let modern = Modern::of(params, MODERN);
    match discover(server, upstream, &modern).await {
        Ok(found) => {
            *mcp_session.modern.write() = Some(Arc::new(modern));
            visit.context.gateway.book.keep(visit.session, &server.key, "modern", params.to_owned()).await;
            let asked: Option<String> = json::member(params, "protocolVersion")
                .and_then(|version| serde_json::from_str(version).ok());
            let result = translate::greeting(&found, asked.as_deref(), &server.name);
            rpc::json_response(Body::from(rpc::result_text(envelope.id(), &result)))
        }
        Err(trouble) => failed(work, &server.failed(&trouble)).await,
    }
}

/// What the server says of itself.
async fn discover(server: &Arc<Server>, upstream: &HttpEndpoint, modern: &Modern) -> Result<String, Trouble> {
    let bare = format!(r#"{{"jsonrpc":"2.0","id":{DISCOVER},"method":"server/discover","params":{{}}}}"#);
    let message = modern.dress(&bare).unwrap_or(bare);
    let out = Outgoing::modern(message, "server/discover", None, &modern.version);
    let answer = upstream.send(out, server.timeout).await?;
    let said = answer.into_body().whole(ANSWER_BYTES_MAX).await?;
    let text = http::message_of(&said)
        .ok_or_else(|| Trouble::Nonsense("no answer to server/discover".to_owned()))?;
    let result = json::member(&text, "result");
    result.map(str::to_owned).ok_or_else(|| Trouble::Nonsense(format!("it refused server/discover: {text}")))
}
