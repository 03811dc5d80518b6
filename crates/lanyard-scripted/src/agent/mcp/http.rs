//! An MCP server over streamable HTTP: one POST per message, the answer as JSON or as a stream of events.

use parking_lot::Mutex;
use std::time::Duration;

use agent_client_protocol_schema::v1::McpServerHttp;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Request, Response, StatusCode, Uri};
use lanyard_client::{EventStream, HttpAnswer, HttpConnection};
use serde_json::Value;

use super::{LinkError, PROTOCOL, answers};

/// How long a server may take: a gate that waits for a person can be behind it.
const ANSWER_MAX: Duration = Duration::from_hours(1);
/// How long it may take to say that it heard.
const HEARD_MAX: Duration = Duration::from_secs(10);
const BODY_MAX: usize = 16 << 20;
/// The header that names a connection.
const SESSION: &str = "mcp-session-id";

#[derive(Debug)]
pub(super) struct Http {
    uri: Uri,
    authority: String,
    headers: Vec<(String, String)>,
    /// What the server calls this connection, if it has a name for it.
    session: Mutex<Option<String>>,
}

impl Http {
    pub(super) fn new(server: &McpServerHttp) -> Result<Self, LinkError> {
        let bad = || LinkError::Unreachable(format!("`{}` is no http:// address", server.url));
        let uri: Uri = server.url.parse().map_err(|_| bad())?;
        let host = uri.host().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(bad)?;
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(80));
        let headers =
            server.headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
        Ok(Self { uri, authority, headers, session: Mutex::default() })
    }

    pub(super) fn forget(&self) {
        *self.session.lock() = None;
    }

    pub(super) fn request(&self, message: &Value, id: i64) -> Result<Value, LinkError> {
        wait(ANSWER_MAX, async {
            let response = self.post(message).await?;
            if is_stream(&response) {
                let mut stream = EventStream::new(response.into_body());
                while let Some(frame) = stream.next().await {
                    match serde_json::from_str::<Value>(&frame.data) {
                        Ok(answer) if answers(&answer, id) => return Ok(answer),
                        _ => {}
                    }
                }
                return Err(LinkError::Closed);
            }
            let answer = HttpAnswer::read(response, BODY_MAX).await;
            let answer = answer.map_err(|error| LinkError::Unreachable(error.to_string()))?;
            serde_json::from_slice(&answer.body).map_err(|error| LinkError::Unreachable(error.to_string()))
        })
    }

    pub(super) fn notify(&self, message: &Value) -> Result<(), LinkError> {
        wait(HEARD_MAX, async { self.post(message).await.map(drop) })
    }

    async fn post(&self, message: &Value) -> Result<Response<Incoming>, LinkError> {
        let unreachable = |error: &dyn std::error::Error| LinkError::Unreachable(error.to_string());
        let mut connection =
            HttpConnection::tcp(&self.authority).await.map_err(|error| unreachable(&error))?;
        let mut request = Request::post(self.uri.path_and_query().map_or("/", |path| path.as_str()))
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", PROTOCOL);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let session = self.session.lock().clone();
        if let Some(session) = &session {
            request = request.header(SESSION, session);
        }
        let body = Full::new(Bytes::from(message.to_string()));
        let request = request.body(body).map_err(|error| unreachable(&error))?;
        let response = connection.send(request).await.map_err(|error| unreachable(&error))?;
        if response.status() == StatusCode::NOT_FOUND && session.is_some() {
            return Err(LinkError::Forgotten);
        }
        if !response.status().is_success() {
            return Err(LinkError::Status(response.status().as_u16()));
        }
        if let Some(name) = response.headers().get(SESSION).and_then(|name| name.to_str().ok()) {
            *self.session.lock() = Some(name.to_owned());
        }
        Ok(response)
    }
}

fn is_stream(response: &Response<Incoming>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// The turn's threads have no runtime of their own.
fn wait<T>(within: Duration, work: impl Future<Output = Result<T, LinkError>>) -> Result<T, LinkError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| LinkError::Unreachable(error.to_string()))?;
    runtime.block_on(async {
        let late = || LinkError::Unreachable(format!("no answer within {} s", within.as_secs()));
        tokio::time::timeout(within, work).await.unwrap_or_else(|_| Err(late()))
    })
}
