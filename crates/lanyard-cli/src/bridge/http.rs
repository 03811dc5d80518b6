//! Requests to the server: one connection each, so that a request without an answer holds up no other.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use lanyard_client::{EventStream, HttpAnswer, HttpConnection};
use serde_json::Value;

use super::BridgeError;

/// Most requests are answered in milliseconds; the first ones set up the folder, which can take many seconds.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// A compaction is answered when it is done, and a model does it.
pub(super) const LONG_TIMEOUT: Duration = Duration::from_mins(30);
/// The whole history of a conversation, with its tools' results, stays below this.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Where the server listens, and what it wants to be told.
#[derive(Debug, Clone)]
pub(super) struct OpenCodeHttp {
    pub(super) address: SocketAddr,
    pub(super) authorization: String,
}

impl OpenCodeHttp {
    pub(super) async fn get(&self, path: &str) -> Result<Value, BridgeError> {
        self.ask(Method::GET, path, None, REQUEST_TIMEOUT).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, BridgeError> {
        self.ask(Method::POST, path, Some(body), REQUEST_TIMEOUT).await
    }

    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        within: Duration,
    ) -> Result<Value, BridgeError> {
        let work = async {
            let response = self.send(method.clone(), path, body).await?;
            let answer = HttpAnswer::read(response, ANSWER_BYTES_MAX).await;
            let HttpAnswer { status, body } =
                answer.map_err(|error| broken(&method, path, &error.to_string()))?;
            if !status.is_success() {
                return Err(refusal(status.as_u16(), &body));
            }
            if body.is_empty() {
                return Ok(Value::Null);
            }
            serde_json::from_slice(&body).map_err(|error| broken(&method, path, &error.to_string()))
        };
        match tokio::time::timeout(within, work).await {
            Ok(answer) => answer,
            Err(_) => Err(broken(&method, path, &format!("no answer within {} s", within.as_secs()))),
        }
    }

    /// Opens the stream of events.
    pub(super) async fn events(&self) -> Result<EventStream, BridgeError> {
        let response = tokio::time::timeout(REQUEST_TIMEOUT, self.send(Method::GET, "/event", None))
            .await
            .map_err(|_| broken(&Method::GET, "/event", "no answer"))??;
        if !response.status().is_success() {
            return Err(refusal(response.status().as_u16(), &[]));
        }
        Ok(EventStream::new(response.into_body()))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, BridgeError> {
        let wrong = |error: &dyn std::error::Error| broken(&method, path, &error.to_string());
        let mut connection = HttpConnection::tcp(self.address).await.map_err(|error| wrong(&error))?;
        let mut request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(HOST, self.address.to_string())
            .header(AUTHORIZATION, &self.authorization)
            .header(ACCEPT, "application/json, text/event-stream");
        let mut bytes = Bytes::new();
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json");
            bytes = Bytes::from(body.to_string());
        }
        let request = request.body(Full::new(bytes)).map_err(|error| wrong(&error))?;
        connection.send(request).await.map_err(|error| wrong(&error))
    }
}

fn broken(method: &Method, path: &str, why: &str) -> BridgeError {
    BridgeError::Request(format!("{method} {path} of OpenCode failed: {why}"))
}

/// OpenCode puts its reason into `data.message`.
fn refusal(status: u16, body: &[u8]) -> BridgeError {
    const KEPT_CHARS: usize = 2_000;
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let said =
        [&value["data"]["message"], &value["message"], &value["name"]].into_iter().find_map(Value::as_str);
    let message = match said {
        Some(said) => said.chars().take(KEPT_CHARS).collect(),
        None => String::from_utf8_lossy(body).chars().take(KEPT_CHARS).collect(),
    };
    BridgeError::Refused { status, message }
}
