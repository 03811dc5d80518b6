//! The HTTP side: connections, routes, and the way from a request to its answer.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::choose::{Choice, calls, choose};
use super::conversation::Conversation;
use super::frames::Reply;
use super::log::{Exchange, Log, Outcome};
use super::pace::{Broken, Line, Paced, Piece};
use super::script::{Fault, Step};
use super::{anthropic, chat, gemini, responses};

/// Far more than the agents of one test open.
const CONNECTIONS_MAX: usize = 256;
/// A conversation with images stays well below this.
const BODY_BYTES_MAX: usize = 64 << 20;
/// Headers that carry keys, which no log needs.
const CREDENTIALS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) scripts: Mutex<BTreeMap<String, Vec<Step>>>,
    pub(super) log: Arc<Log>,
    pub(super) released: watch::Sender<BTreeSet<String>>,
    seq: AtomicU64,
}

impl Shared {
    pub(super) async fn until_released(&self, script: &str) {
        // An error means that the model is being dropped, and then nobody waits for an answer.
        let _ = self.released.subscribe().wait_for(|names| names.contains(script)).await;
    }
}

pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { continue };
        let Ok((stream, line)) = with_line(stream) else { continue };
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| respond(request, shared.clone(), line.clone()));
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
            // A client that goes away is an outcome the log has; here it is nothing to report.
            drop((served, place));
        });
    }
}

fn with_line(stream: TcpStream) -> std::io::Result<(TcpStream, Line)> {
    let stream = stream.into_std()?;
    let line = Line(Arc::new(stream.try_clone()?));
    Ok((TcpStream::from_std(stream)?, line))
}

#[derive(Debug, Clone, Copy)]
enum Api {
    Chat,
    Responses,
    Anthropic,
    Gemini { streamed: bool },
    CountTokens,
    Models,
    Unknown,
}

impl Api {
    fn of(method: &Method, path: &str) -> Api {
        let ends = |end: &str| path.ends_with(end);
        if method != Method::POST {
            return if path.contains("/models") || method == Method::HEAD {
                Api::Models
            } else {
                Api::Unknown
            };
        }
        match () {
            () if ends("/chat/completions") => Api::Chat,
            () if ends("/responses") => Api::Responses,
            () if ends("/messages") => Api::Anthropic,
            () if ends("/messages/count_tokens") || ends(":countTokens") => Api::CountTokens,
            () if ends(":streamGenerateContent") => Api::Gemini { streamed: true },
            () if ends(":generateContent") => Api::Gemini { streamed: false },
            () => Api::Unknown,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Api::Chat => "chat",
            Api::Responses => "responses",
            Api::Anthropic => "anthropic",
            Api::Gemini { .. } => "gemini",
            Api::CountTokens => "count_tokens",
            Api::Models => "models",
            Api::Unknown => "unknown",
        }
    }

    fn read(self, body: &Value) -> Conversation {
        match self {
            Api::Chat => chat::read(body),
            Api::Responses => responses::read(body),
            Api::Anthropic => anthropic::read(body),
            Api::Gemini { .. } => gemini::read(body),
            Api::CountTokens | Api::Models | Api::Unknown => Conversation::default(),
        }
    }

    fn streamed(self, body: &Value) -> bool {
        match self {
            Api::Gemini { streamed } => streamed,
            Api::Chat | Api::Responses | Api::Anthropic => body["stream"] == true,
            Api::CountTokens | Api::Models | Api::Unknown => false,
        }
    }
}

async fn respond(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    line: Line,
) -> Result<Response<Paced>, Broken> {
    let (head, body) = request.into_parts();
    // A body that is cut short or too large is answered like an empty one; the log shows that.
    let raw = match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let body: Value = serde_json::from_slice(&raw).unwrap_or_default();
    let api = Api::of(&head.method, head.uri.path());
    let asked = api.read(&body);
    let seq = shared.seq.fetch_add(1, Ordering::Relaxed) + 1;
    let choice = choose(&asked, &shared.scripts.lock().unwrap());
    let calls = calls(&choice.step.calls, &asked, seq);
    let streamed = api.streamed(&body);
    let model = body["model"].as_str().unwrap_or("scripted");
    let reply = Reply::new(seq, model, &choice, &calls, raw.len());
    let (status, pieces) = answer(api, &choice, &reply, streamed, raw.len());
    let mut pending = shared.log.push(Exchange {
        seq,
        api: api.name(),
        path: head.uri.path().to_owned(),
        headers: readable(&head.headers),
        asked,
        script: choice.script.clone(),
        step: choice.index,
        text: choice.step.text.clone(),
        calls: calls.clone(),
        status: status.as_u16(),
        outcome: Outcome::Open,
        body,
    });
    if !choice.step.delay.is_zero() {
        // sleep: the script says how late the answer is
        tokio::time::sleep(choice.step.delay).await;
    }
    match choice.step.fault {
        Some(Fault::Silent) => {
            let never: Infallible = std::future::pending().await;
            match never {}
        }
        Some(Fault::Reset) if choice.step.text.is_empty() => {
            line.arm_reset();
            pending.broken();
            return Err(Broken);
        }
        None | Some(Fault::Reset | Fault::Malformed) => {}
    }
    let content_type = if streamed && status.is_success() { "text/event-stream" } else { "application/json" };
    let mut response = Response::new(Paced::new(pieces, shared, line, pending));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    Ok(response)
}

fn answer(
    api: Api,
    choice: &Choice,
    reply: &Reply<'_>,
    streamed: bool,
    bytes: usize,
) -> (StatusCode, Vec<Piece>) {
    let document = |value: Value| vec![Piece::Bytes(Bytes::from(value.to_string()))];
    let refusal = |code: u16, message: &str| {
        document(
            json!({ "type": "error", "error": { "type": "api_error", "message": message, "code": code } }),
        )
    };
    let pieces = match api {
        Api::CountTokens => document(json!({ "input_tokens": bytes / 4, "totalTokens": bytes / 4 })),
        Api::Models => document(json!({
            "object": "list", "has_more": false, "first_id": "scripted", "last_id": "scripted", "models": [],
            "data": [{ "id": "scripted", "object": "model", "type": "model", "display_name": "Scripted",
                "created": 0, "owned_by": "scripted", "created_at": "2025-01-01T00:00:00Z" }],
        })),
        Api::Unknown => return (StatusCode::NOT_FOUND, refusal(404, "no such path")),
        Api::Chat | Api::Responses | Api::Anthropic | Api::Gemini { .. } => match &choice.step.error {
            Some((code, message)) => {
                let status = StatusCode::from_u16(*code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                return (status, refusal(*code, message));
            }
            None => written(api, reply, streamed),
        },
    };
    (StatusCode::OK, pieces)
}

fn written(api: Api, reply: &Reply<'_>, streamed: bool) -> Vec<Piece> {
    match api {
        Api::Chat => chat::write(reply, streamed),
        Api::Responses => responses::write(reply, streamed),
        Api::Anthropic => anthropic::write(reply, streamed),
        Api::Gemini { .. } => gemini::write(reply, streamed),
        Api::CountTokens | Api::Models | Api::Unknown => Vec::new(),
    }
}

fn readable(headers: &header::HeaderMap) -> BTreeMap<String, String> {
    let shown = headers.iter().filter(|(name, _)| !CREDENTIALS.contains(&name.as_str()));
    shown
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}
