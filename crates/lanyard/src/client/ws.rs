//! Streams over WebSocket, on the daemon's Unix socket, that come back by themselves; and requests without any of the
//! manners of a command line: whoever has a screen asks again by itself.

use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderValue};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::{
    ANSWER_TIMEOUT, Absence, Answer, Client, HANDSHAKE_TIMEOUT, Route, SILENCE_MAX, encode, silent,
    uncertain, unsendable,
};
use crate::context::Context;
use crate::failure::Failure;
use crate::tui::message::{Call, Method as Verb};

/// Frames that may wait to be shown. A screen that is slow makes the socket wait, and the daemon knows what to do.
const FRAMES_MAX: usize = 1_024;

/// What a feed gives.
#[derive(Debug)]
pub(crate) enum Fed {
    Frame(String),
    Up,
    Down,
    /// The daemon refused for good, or did not come back in time. Nothing comes after this.
    Refused(Failure),
}

/// Where a stream is taken up: everything before was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) seq: Option<u64>,
    pub(crate) connection: Option<String>,
}

/// The address of a stream, given where it goes on.
pub(crate) type Address = Box<dyn Fn(&Cursor) -> Route + Send>;

/// A stream that outlives the daemon: it is taken up again after the last event that came.
#[derive(Debug)]
pub(crate) struct Feed {
    fed: mpsc::Receiver<Fed>,
    task: tokio::task::JoinHandle<()>,
}

impl Feed {
    /// `next` is the command that continues when the daemon does not come back.
    pub(crate) fn open(context: &Context, address: Address, next: String) -> Self {
        let (sender, fed) = mpsc::channel(FRAMES_MAX);
        let (context, absence) = (context.clone(), Absence::new(context));
        let feeder = Feeder { context, address, sender, cursor: Cursor::default(), absence, next };
        Self { fed, task: tokio::spawn(feeder.run()) }
    }

    /// What comes next. Never ends: a stream that can go on no more has said why.
    pub(crate) async fn next(&mut self) -> Fed {
        match self.fed.recv().await {
            Some(fed) => fed,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn next_if_ready(&mut self) -> Option<Fed> {
        self.fed.try_recv().ok()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Feeder {
    context: Context,
    address: Address,
    sender: mpsc::Sender<Fed>,
    cursor: Cursor,
    absence: Absence,
    next: String,
}

impl Feeder {
    async fn run(mut self) {
        while !self.sender.is_closed() {
            let route = (self.address)(&self.cursor);
            let fed = match dial(&self.context, &route).await {
                Ok(Some(socket)) => {
                    if self.sender.send(Fed::Up).await.is_err() {
                        return;
                    }
                    self.read(socket).await;
                    Fed::Down
                }
                Ok(None) => Fed::Down,
                Err(failure) => Fed::Refused(failure),
            };
            let over = matches!(fed, Fed::Refused(_));
            if self.sender.send(fed).await.is_err() || over {
                return;
            }
            if let Err(failure) = self.absence.pause(&self.next).await {
                // A closed channel has nobody to tell.
                let _ = self.sender.send(Fed::Refused(failure)).await;
                return;
            }
        }
    }

    /// Gives out frames until the stream breaks.
    async fn read(&mut self, mut socket: WebSocketStream<UnixStream>) {
        loop {
            let Ok(Some(Ok(message))) = tokio::time::timeout(SILENCE_MAX, socket.next()).await else {
                return;
            };
            match message {
                Message::Text(text) => {
                    self.note(&text);
                    self.absence.ends();
                    if self.sender.send(Fed::Frame(text.as_str().to_owned())).await.is_err() {
                        let _ = socket.close(None).await;
                        return;
                    }
                }
                Message::Close(_) => return,
                // Answered with the next flush.
                Message::Ping(_) => {
                    let _ = socket.flush().await;
                }
                Message::Binary(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    /// Remembers where to go on.
    fn note(&mut self, text: &str) {
        #[derive(serde::Deserialize)]
        struct Mark {
            seq: Option<u64>,
            connection: Option<String>,
            after: Option<u64>,
            #[serde(rename = "type")]
            kind: Option<String>,
        }
        let Ok(mark) = serde_json::from_str::<Mark>(text) else { return };
        match (mark.seq, mark.kind.as_deref()) {
            (Some(seq), _) => self.cursor.seq = self.cursor.seq.max(Some(seq)),
            (None, Some("connected")) => {
                self.cursor.connection = mark.connection.or_else(|| self.cursor.connection.take());
                // A session that was quiet: from where it was joined, not from the end once more.
                self.cursor.seq = self.cursor.seq.or(mark.after);
            }
            (None, _) => {}
        }
    }
}

/// Opens a WebSocket; nothing when there is no daemon, or one that is just ending.
async fn dial(context: &Context, route: &Route) -> Result<Option<WebSocketStream<UnixStream>>, Failure> {
    let home = &context.home;
    let Ok(stream) = UnixStream::connect(home.socket()).await else { return Ok(None) };
    let Ok(token) = std::fs::read_to_string(home.token()) else { return Ok(None) };
    let mut request =
        format!("ws://localhost{}", route.as_str()).into_client_request().map_err(|_| unsendable())?;
    let bearer = HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(|_| unsendable())?;
    request.headers_mut().insert(AUTHORIZATION, bearer);
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, client_async(request, stream)).await {
        Ok(Ok((socket, _))) => Ok(Some(socket)),
        Ok(Err(Error::Http(response))) => {
            let (parts, body) = response.into_parts();
            let failure = Answer { status: parts.status, body: body.unwrap_or_default().into() }.refusal();
            if failure.is_passing() { Ok(None) } else { Err(failure) }
        }
        // A daemon that starts or ends says many things.
        Ok(Err(_)) | Err(_) => Ok(None),
    }
}

impl Client<'_> {
    /// Carries out a request once. A change has a key of its own; an answer that did not come is told as such.
    pub(crate) async fn carry_out(&mut self, call: &Call) -> Result<Value, Failure> {
        let method = match call.method {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        };
        let key = self.key()?;
        let mut request = Request::builder().method(method).uri(call.route.as_str());
        request = self.wire.dressed(request);
        let mut body = Full::default();
        if call.method != Verb::Get {
            request = request.header(CONTENT_TYPE, "application/json").header("idempotency-key", &key);
            body = Full::new(encode(&call.body)?);
        }
        if let Some(epoch) = call.writer {
            request = request.header("lanyard-writer", epoch.to_string());
        }
        let request = request.body(body).map_err(|_| unsendable())?;
        let answered = async {
            let response = self.wire.sender.send_request(request).await.ok()?;
            let status = response.status();
            let body = response.into_body().collect().await.ok()?;
            Some(Answer { status, body: body.to_bytes() })
        };
        let answer = match tokio::time::timeout(ANSWER_TIMEOUT, answered).await {
            Ok(Some(answer)) => answer.accepted()?,
            Ok(None) => return Err(uncertain(None)),
            Err(_) => return Err(silent(ANSWER_TIMEOUT, None)),
        };
        if answer.body.is_empty() { Ok(Value::Null) } else { answer.read() }
    }
}
