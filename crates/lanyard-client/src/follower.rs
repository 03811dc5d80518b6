//! Streams that come back: one follower for every stream of a daemon, over server-sent events or a WebSocket. It resumes
//! after the last event that came, with one backoff and one bound for a daemon that is away.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderValue, USER_AGENT};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::absence::Absence;
use crate::connection::HttpAnswer;
use crate::daemon::{AGENT, BoxedStream, DaemonAddress, HANDSHAKE_TIMEOUT};
use crate::error::ClientError;
use crate::route::Route;
use crate::sse::{EventStream, SILENCE_MAX};

/// The position at which a stream is resumed: everything before was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamCursor {
    pub seq: Option<u64>,
    pub connection: Option<String>,
}

impl StreamCursor {
    #[must_use]
    pub fn after(seq: u64) -> Self {
        Self { seq: Some(seq), connection: None }
    }

    /// Moves on past a frame.
    fn pass(&mut self, frame: &str) {
        #[derive(Deserialize)]
        struct Position {
            seq: Option<u64>,
            connection: Option<String>,
            after: Option<u64>,
            #[serde(rename = "type")]
            kind: Option<String>,
        }
        let Ok(position) = serde_json::from_str::<Position>(frame) else { return };
        match (position.seq, position.kind.as_deref()) {
            (Some(seq), _) => self.seq = self.seq.max(Some(seq)),
            (None, Some("connected")) => {
                self.connection = position.connection.or_else(|| self.connection.take());
                // A session that was quiet: from where it was joined, not from the end once more.
                self.seq = self.seq.or(position.after);
            }
            (None, _) => {}
        }
    }
}

/// What a follower reads from.
pub trait StreamSource: Send {
    /// Opens the stream at a position; `None` when it cannot be had at the moment. An error is final.
    fn open(
        &mut self,
        cursor: &StreamCursor,
    ) -> impl Future<Output = Result<Option<OpenStream>, ClientError>> + Send;
}

/// How a daemon's stream is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    ServerSentEvents,
    WebSocket,
}

/// The route of a stream at a position.
type RouteAt = Box<dyn Fn(&StreamCursor) -> Route + Send + Sync>;

/// A stream of a daemon.
pub struct DaemonStream {
    address: DaemonAddress,
    transport: Transport,
    route: RouteAt,
}

impl DaemonStream {
    pub fn new(
        address: DaemonAddress,
        transport: Transport,
        route: impl Fn(&StreamCursor) -> Route + Send + Sync + 'static,
    ) -> Self {
        Self { address, transport, route: Box::new(route) }
    }

    async fn dial(&self, route: &Route) -> Result<OpenStream, ClientError> {
        match self.transport {
            Transport::ServerSentEvents => {
                let connection = self.address.connect().await?.ok_or(ClientError::Away)?;
                Ok(OpenStream::Events(connection.into_stream(route).await?))
            }
            Transport::WebSocket => {
                let socket = web_socket(&self.address, route).await?;
                Ok(OpenStream::WebSocket(Box::new(WebSocketFrames(socket))))
            }
        }
    }
}

impl std::fmt::Debug for DaemonStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DaemonStream")
            .field("address", &self.address)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

impl StreamSource for DaemonStream {
    async fn open(&mut self, cursor: &StreamCursor) -> Result<Option<OpenStream>, ClientError> {
        let route = (self.route)(cursor);
        match self.dial(&route).await {
            Err(error) if error.is_passing() => Ok(None),
            opened => opened.map(Some),
        }
    }
}

/// A stream that is open.
#[derive(Debug)]
pub enum OpenStream {
    Events(EventStream),
    WebSocket(Box<WebSocketFrames>),
}

/// Frames of a WebSocket.
pub struct WebSocketFrames(WebSocketStream<BoxedStream>);

impl std::fmt::Debug for WebSocketFrames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSocketFrames").finish_non_exhaustive()
    }
}

impl OpenStream {
    /// The next frame; `None` when the stream ended, broke or fell silent, which for a reader is the same.
    async fn next(&mut self) -> Option<String> {
        match self {
            Self::Events(stream) => stream.next().await.map(|frame| frame.data),
            Self::WebSocket(frames) => frames.next_text().await,
        }
    }

    /// Drops the frames that have arrived.
    fn skip_ready(&mut self) {
        if let Self::Events(stream) = self {
            stream.skip_ready();
        }
    }
}

/// What a WebSocket carries.
#[derive(Debug)]
pub(crate) enum SocketFrame {
    Text(String),
    Binary(Bytes),
}

impl WebSocketFrames {
    pub(crate) async fn open(address: &DaemonAddress, route: &Route) -> Result<Self, ClientError> {
        web_socket(address, route).await.map(Self)
    }

    /// The next frame; `None` when the socket ended, broke or fell silent.
    pub(crate) async fn next(&mut self) -> Option<SocketFrame> {
        let socket = &mut self.0;
        loop {
            match tokio::time::timeout(SILENCE_MAX, socket.next()).await.ok()??.ok()? {
                Message::Text(text) => return Some(SocketFrame::Text(text.as_str().to_owned())),
                Message::Binary(bytes) => return Some(SocketFrame::Binary(bytes)),
                Message::Close(_) => return None,
                // Answered with the next flush.
                Message::Ping(_) => {
                    let _ = socket.flush().await;
                }
                Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    async fn next_text(&mut self) -> Option<String> {
        loop {
            if let SocketFrame::Text(text) = self.next().await? {
                return Some(text);
            }
        }
    }
}

/// What became of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum FollowStep {
    /// The stream is open. `back` after an absence of the daemon.
    Open {
        back: bool,
    },
    Frame(String),
    /// The daemon does not answer, once for each absence. It is tried again, for this long where there is a bound.
    Lost(Option<Duration>),
}

/// Frames of a stream as they come, over any restart of the daemon.
#[derive(Debug)]
pub struct StreamFollower<S> {
    source: S,
    cursor: StreamCursor,
    stream: Option<OpenStream>,
    absence: Absence,
    /// What continues after a daemon that stayed away, for the error that says so.
    again: String,
}

impl<S: StreamSource> StreamFollower<S> {
    /// `wait` bounds each absence of the daemon; `None` waits for as long as it takes.
    #[must_use]
    pub fn new(source: S, cursor: StreamCursor, wait: Option<Duration>, again: String) -> Self {
        Self { source, cursor, stream: None, absence: Absence::within(wait), again }
    }

    /// Goes on with a stream that is open already.
    #[must_use]
    pub fn resuming(self, stream: OpenStream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// The next step. Nothing is lost when this is dropped before it is done. An error is final.
    pub async fn next(&mut self) -> Result<FollowStep, ClientError> {
        loop {
            let Some(stream) = &mut self.stream else {
                if let Some(step) = self.connect().await? {
                    return Ok(step);
                }
                continue;
            };
            let Some(frame) = stream.next().await else {
                if let Some(step) = self.lost() {
                    return Ok(step);
                }
                continue;
            };
            self.cursor.pass(&frame);
            return Ok(FollowStep::Frame(frame));
        }
    }

    #[must_use]
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Drops the frames that have arrived.
    pub fn skip_ready(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.skip_ready();
        }
    }

    /// Gives the stream up, as when the daemon did not answer elsewhere: it is opened again.
    pub fn lost(&mut self) -> Option<FollowStep> {
        self.stream = None;
        self.absence.begins().then(|| FollowStep::Lost(self.absence.bound()))
    }

    async fn connect(&mut self) -> Result<Option<FollowStep>, ClientError> {
        if self.absence.lasts() {
            let paused = self.absence.pause().await;
            paused.map_err(|over| ClientError::StayedAway { bound: over.0, again: self.again.clone() })?;
        }
        self.stream = self.source.open(&self.cursor).await?;
        if self.stream.is_none() {
            return Ok(self.lost());
        }
        let back = self.absence.lasts();
        self.absence.ends();
        Ok(Some(FollowStep::Open { back }))
    }
}

/// Opens a WebSocket.
async fn web_socket(
    address: &DaemonAddress,
    route: &Route,
) -> Result<WebSocketStream<BoxedStream>, ClientError> {
    let (stream, token) = address.dial().await?.ok_or(ClientError::Away)?;
    let unwritable = |error: &dyn std::error::Error| ClientError::Unwritable(error.to_string());
    let url = format!("ws://{}{}", address.host(), route.as_str());
    let mut request = url.into_client_request().map_err(|error| unwritable(&error))?;
    let bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|error| unwritable(&error))?;
    request.headers_mut().insert(AUTHORIZATION, bearer);
    request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, client_async(request, stream)).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(Error::Http(response))) => {
            let (parts, body) = response.into_parts();
            Err(HttpAnswer { status: parts.status, body: body.unwrap_or_default().into() }.refusal())
        }
        // A daemon that starts or ends breaks off in many ways.
        Ok(Err(_)) => Err(ClientError::Broken),
        Err(_) => Err(ClientError::Silent(HANDSHAKE_TIMEOUT)),
    }
}
