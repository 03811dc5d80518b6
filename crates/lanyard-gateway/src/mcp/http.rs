//! A server behind an address: requests go on with the bytes they came with, answers come back as they are sent. Nothing
//! is remembered between two requests, so a restarted daemon relays for whoever comes, whatever its `Mcp-Session-Id`.

mod sse;
mod talk;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

use crate::http_endpoint::{Lent, Outgoing, Trouble};
use crate::mcp::Gateway;
use crate::mcp::mcp_session::McpSession;
use crate::mcp::rpc;
use crate::mcp::server::{ANSWER_BYTES_MAX, Server};
use crate::mcp::translate;
use crate::mcp::work::Work;
pub(super) use talk::Talk;

/// Headers of a client that are its own affair with Lanyard, or belong to the one connection.
const KEPT_BACK: [HeaderName; 14] = [
    header::AUTHORIZATION,
    header::HOST,
    header::COOKIE,
    header::ORIGIN,
    header::REFERER,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    // Answers are looked at, so they must come as they are.
    header::ACCEPT_ENCODING,
    header::PROXY_AUTHORIZATION,
];
/// Headers of a server that belong to the one connection, or would reach past Lanyard.
const NOT_RETURNED: [HeaderName; 7] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TRAILER,
    header::UPGRADE,
    header::SET_COOKIE,
    header::WWW_AUTHENTICATE,
];

/// The client's headers as the server gets them.
pub(super) fn onward(headers: &HeaderMap) -> HeaderMap {
    without(headers, &KEPT_BACK)
}

fn without(headers: &HeaderMap, left_out: &[HeaderName]) -> HeaderMap {
    let named = headers.get(header::CONNECTION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_named = |name: &HeaderName| {
        !named.is_empty() && named.split(',').any(|word| word.trim().eq_ignore_ascii_case(name.as_str()))
    };
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if !left_out.contains(name) && name.as_str() != "keep-alive" && !is_named(name) {
            kept.append(name, value.clone());
        }
    }
    kept
}

/// The server's headers as the client gets them.
pub(super) fn back(mut headers: HeaderMap) -> HeaderMap {
    // Names that belong to the one connection are seldom there: those that stay keep their place.
    if headers.contains_key(header::CONNECTION) {
        return without(&headers, &NOT_RETURNED);
    }
    for name in &NOT_RETURNED {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers
}

/// The message in an answer, which may be a stream of one event.
pub(super) fn message_of(answer: &Bytes) -> Option<String> {
    let text = std::str::from_utf8(answer).ok()?;
    if text.trim_start().starts_with('{') {
        return Some(text.to_owned());
    }
    sse::last_message(answer)
}

/// The server's answer as the client gets it.
pub(super) async fn returned(
    answer: Response<Lent>,
    mut work: Work,
    server: &Arc<Server>,
    gateway: &Gateway,
) -> Result<Response, (Work, Trouble)> {
    let (parts, body) = answer.into_parts();
    if matches!(
        parts.status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED
    ) {
        return Err((work, Trouble::Denied(parts.status.as_u16())));
    }
    let kind =
        parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is = |wanted: &str| {
        kind.len() >= wanted.len() && kind.as_bytes()[..wanted.len()].eq_ignore_ascii_case(wanted.as_bytes())
    };
    let body = if is(rpc::SSE) {
        let (pieces, stream) = tokio::sync::mpsc::channel(sse::FRAMES_MAX);
        tokio::spawn(sse::relay(body, work, pieces, server.clone(), gateway.closing()));
        rpc::Pieces::body(stream)
    } else if work.is_idle() || !parts.status.is_success() || !is("application/json") {
        Body::new(body)
    } else {
        match tokio::time::timeout(server.timeout, body.whole(ANSWER_BYTES_MAX)).await {
            Ok(Ok(answer)) => work.finish(answer).await.into_body(),
            Ok(Err(trouble)) => return Err((work, trouble)),
            Err(_) => return Err((work, Trouble::Slow(server.timeout))),
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = parts.status;
    *response.headers_mut() = back(parts.headers);
    Ok(response)
}

/// The stream a client opens for what belongs to none of its requests.
pub(super) fn streamed(
    answer: Response<Lent>,
    mcp_session: Option<Arc<McpSession>>,
    gateway: &Gateway,
) -> Response {
    let (parts, body) = answer.into_parts();
    let (pieces, stream) = tokio::sync::mpsc::channel(sse::FRAMES_MAX);
    tokio::spawn(sse::listen(body, mcp_session, pieces, gateway.closing()));
    let mut response = Response::new(rpc::Pieces::body(stream));
    *response.status_mut() = parts.status;
    *response.headers_mut() = back(parts.headers);
    response
}

impl Outgoing {
    /// A message of Lanyard's own to a server of revision 2026-07-28.
    pub(super) fn modern(body: String, method: &str, name: Option<&str>, version: &str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        translate::modern_headers(&mut headers, method, name, version);
        Self { method: Method::POST, headers, body: body.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_the_client_and_lanyard_stays_there() {
        let mut held = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer lys_x"),
            ("host", "127.0.0.1:1"),
            ("cookie", "a=b"),
            ("origin", "http://127.0.0.1:1"),
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("accept-encoding", "gzip"),
            ("mcp-session-id", "s"),
            ("mcp-protocol-version", "2025-11-25"),
            ("mcp-param-region", "eu"),
            ("last-event-id", "7"),
            ("accept", "application/json, text/event-stream"),
            ("traceparent", "00-1-2-01"),
        ] {
            held.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let onward = onward(&held);
        let mut names: Vec<&str> = onward.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "accept",
                "last-event-id",
                "mcp-param-region",
                "mcp-protocol-version",
                "mcp-session-id",
                "traceparent"
            ]
        );
    }
}
