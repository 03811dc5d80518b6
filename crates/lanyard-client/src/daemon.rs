//! Requests to a daemon: its address and token, and the manners of its API (keys, problems, bounds).

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::http::request::Builder;
use hyper::{Method, Request};
use lanyard_api::home::Home;
use lanyard_api::types::{DaemonStatus, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::connection::{HttpAnswer, HttpConnection};
use crate::error::ClientError;
use crate::route::Route;
use crate::sse::EventStream;

/// How long an answer may take. Generous: a commit waits for a disk, and a disk can be slow.
pub const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a daemon may take to say that it is there, or that it will end: neither waits for a disk.
pub const SIGN_OF_LIFE_TIMEOUT: Duration = Duration::from_secs(5);
/// The program, for the list of tokens.
pub(crate) const AGENT: &str = concat!("lanyard/", env!("CARGO_PKG_VERSION"));
/// How long the daemon may take to open a stream.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer that is read; exports of a whole journal stay far below it.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// Where a daemon listens, and the token to show it.
#[derive(Clone)]
pub enum DaemonAddress {
    /// The socket and the token file of a data folder. The token is read at each connection: the daemon that writes it
    /// may not have started yet.
    Folder { socket: PathBuf, token: PathBuf },
    /// Host and port, such as `127.0.0.1:4400`.
    Tcp { host: String, token: String },
}

/// Without the token, which is a secret.
impl std::fmt::Debug for DaemonAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder { socket, .. } => f.debug_tuple("Folder").field(socket).finish(),
            Self::Tcp { host, .. } => f.debug_tuple("Tcp").field(host).finish(),
        }
    }
}

/// A connected stream of either kind.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send + Sync {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync> Duplex for T {}

pub(crate) type BoxedStream = Box<dyn Duplex>;

impl DaemonAddress {
    /// The daemon of a data folder, as its operator.
    #[must_use]
    pub fn of(home: &Home) -> Self {
        Self::Folder { socket: home.socket(), token: home.token() }
    }

    /// The daemon at a URL such as `http://127.0.0.1:4400`.
    pub fn at(url: &str, token: &str) -> Result<Self, ClientError> {
        let host = url.strip_prefix("http://").ok_or_else(|| ClientError::Address(url.to_owned()))?;
        Ok(Self::Tcp { host: host.trim_end_matches('/').to_owned(), token: token.to_owned() })
    }

    /// Connects; `None` when no daemon listens there.
    pub async fn connect(&self) -> Result<Option<DaemonConnection>, ClientError> {
        let Some((stream, token)) = self.dial().await? else { return Ok(None) };
        let Ok(http) = HttpConnection::over(stream).await else { return Ok(None) };
        let host = self.host().to_owned();
        Ok(Some(DaemonConnection { http, token, host, bytes_max: ANSWER_BYTES_MAX }))
    }

    /// The connected stream and the token; `None` when no daemon listens there.
    pub(crate) async fn dial(&self) -> Result<Option<(BoxedStream, String)>, ClientError> {
        match self {
            Self::Folder { socket, token } => {
                let stream = match UnixStream::connect(socket).await {
                    Ok(stream) => stream,
                    Err(error)
                        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
                    {
                        return Ok(None);
                    }
                    Err(source) => return Err(ClientError::Socket { path: socket.clone(), source }),
                };
                let read = std::fs::read_to_string(token);
                let token = read.map_err(|source| ClientError::Token { path: token.clone(), source })?;
                Ok(Some((Box::new(stream), token.trim().to_owned())))
            }
            Self::Tcp { host, token } => {
                let Ok(stream) = TcpStream::connect(host).await else { return Ok(None) };
                Ok(Some((Box::new(stream), token.clone())))
            }
        }
    }

    pub(crate) fn host(&self) -> &str {
        match self {
            Self::Folder { .. } => "localhost",
            Self::Tcp { host, .. } => host,
        }
    }
}

/// One connection and the right to use it.
#[derive(Debug)]
pub struct DaemonConnection {
    http: HttpConnection,
    token: String,
    host: String,
    bytes_max: usize,
}

/// A request that can be sent more than once.
#[derive(Debug)]
pub struct ApiRequest<'a> {
    pub method: Method,
    pub route: &'a Route,
    pub body: Option<Bytes>,
    /// The media type of the body; JSON when absent.
    pub media_type: Option<&'a str>,
    /// Makes a repeat of a change harmless; questions need none.
    pub key: Option<String>,
    /// The epoch of the right to write, where one is held.
    pub writer: Option<u64>,
    /// No limit for answers that take longer the larger the journal is.
    pub within: Option<Duration>,
}

impl<'a> ApiRequest<'a> {
    #[must_use]
    pub fn question(route: &'a Route, within: Option<Duration>) -> Self {
        Self { method: Method::GET, route, body: None, media_type: None, key: None, writer: None, within }
    }

    #[must_use]
    pub fn change(
        method: Method,
        route: &'a Route,
        body: Option<Bytes>,
        key: Option<String>,
        within: Option<Duration>,
    ) -> Self {
        Self { method, route, body, media_type: None, key, writer: None, within }
    }
}

impl DaemonConnection {
    /// Reads no answer that is longer.
    #[must_use]
    pub(crate) fn limited(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    pub(crate) async fn is_ready(&mut self) -> bool {
        self.http.is_ready().await
    }

    /// Whether the daemon answers on this connection; a session's token may not ask for the daemon's status.
    pub async fn greets(&mut self, is_session: bool, within: Duration) -> Result<bool, ClientError> {
        if !is_session {
            return Ok(self.status(within).await?.is_some());
        }
        match self.attempt(&ApiRequest::question(&Route::to(&["me"]), Some(within))).await {
            Ok(_) => Ok(true),
            Err(ClientError::Broken) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Asks how the daemon is, once; `None` when the connection broke.
    pub async fn status(&mut self, within: Duration) -> Result<Option<DaemonStatus>, ClientError> {
        match self.attempt(&ApiRequest::question(&Route::to(&["status"]), Some(within))).await {
            Ok(answer) => answer.accepted()?.json().map(Some),
            Err(ClientError::Broken) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a request once. The answer may be a refusal; an error says that there is none.
    pub async fn attempt(&mut self, request: &ApiRequest<'_>) -> Result<HttpAnswer, ClientError> {
        let Some(within) = request.within else { return self.send(request).await };
        let answered = tokio::time::timeout(within, self.send(request)).await;
        answered.unwrap_or(Err(ClientError::Silent(within)))
    }

    async fn send(&mut self, asked: &ApiRequest<'_>) -> Result<HttpAnswer, ClientError> {
        let mut request =
            self.authorized(Request::builder().method(asked.method.clone()).uri(asked.route.as_str()));
        if asked.body.is_some() {
            request = request.header(CONTENT_TYPE, asked.media_type.unwrap_or("application/json"));
        }
        if let Some(key) = &asked.key {
            request = request.header("idempotency-key", key);
        }
        if let Some(epoch) = asked.writer {
            request = request.header("lanyard-writer", epoch.to_string());
        }
        let request = request
            .body(Full::new(asked.body.clone().unwrap_or_default()))
            .map_err(|error| unwritable(&error))?;
        self.http.exchange(request, self.bytes_max).await.map_err(|_| ClientError::Broken)
    }

    /// Opens a stream of server-sent events. It takes the connection.
    pub async fn into_stream(mut self, route: &Route) -> Result<EventStream, ClientError> {
        let request = self.authorized(Request::get(route.as_str()).header(ACCEPT, "text/event-stream"));
        let request = request.body(Full::default()).map_err(|error| unwritable(&error))?;
        let answered = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.http.send(request)).await;
        let response = answered.map_err(|_| ClientError::Silent(HANDSHAKE_TIMEOUT))?;
        let response = response.map_err(|_| ClientError::Broken)?;
        if response.status().is_success() {
            return Ok(EventStream::new(response.into_body()));
        }
        let answer = HttpAnswer::read(response, self.bytes_max).await.map_err(|_| ClientError::Broken)?;
        Err(answer.refusal())
    }

    fn authorized(&self, request: Builder) -> Builder {
        request
            .header(HOST, &self.host)
            .header(USER_AGENT, AGENT)
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
    }
}

impl HttpAnswer {
    /// The answer, unless it is a refusal.
    pub fn accepted(self) -> Result<Self, ClientError> {
        if self.status.is_success() { Ok(self) } else { Err(self.refusal()) }
    }

    /// The refusal as the daemon words it.
    pub(crate) fn refusal(&self) -> ClientError {
        let problem = serde_json::from_slice(&self.body).unwrap_or_else(|_| Problem {
            kind: "about:blank".to_owned(),
            status: self.status.as_u16(),
            code: format!("http_{}", self.status.as_u16()),
            title: format!("the daemon answered {}", self.status),
            advice: "look at its log, `daemon.log` in the data folder".to_owned(),
        });
        ClientError::Refused(Box::new(problem))
    }

    /// The body as JSON; an empty one is `null`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        let body: &[u8] = if self.body.is_empty() { b"null" } else { &self.body };
        serde_json::from_slice(body).map_err(ClientError::Unreadable)
    }
}

/// The body of a request.
pub fn encode(body: &impl Serialize) -> Result<Bytes, ClientError> {
    serde_json::to_vec(body).map(Bytes::from).map_err(|error| ClientError::Unwritable(error.to_string()))
}

/// A fresh idempotency key; its first part says which program made it.
pub fn random_key(program: &str) -> Result<String, ClientError> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(|error| ClientError::NoRandomness(error.to_string()))?;
    Ok(format!("{program}-{:032x}", u128::from_ne_bytes(bits)))
}

fn unwritable(error: &hyper::http::Error) -> ClientError {
    ClientError::Unwritable(error.to_string())
}
