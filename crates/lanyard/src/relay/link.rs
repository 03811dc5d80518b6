//! Connections to the daemon that are kept and used again: a call is asked about twice, and many calls may be under way.

use parking_lot::Mutex;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use lanyard_api::names::DAEMON_AWAY;
use lanyard_api::types::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::{TcpStream, UnixStream};

use crate::client::Route;

/// How long one answer may take. An agent waits for it, so it is short; a commit that takes longer is not waited for.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Connections kept for later; as many calls as an agent makes at once.
const IDLE_MAX: usize = 8;
/// Larger answers are not read.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// One daemon and the right to ask it.
#[derive(Debug)]
pub(crate) struct Link {
    place: Place,
    token: Token,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

#[derive(Debug, Clone)]
enum Place {
    Socket(PathBuf),
    /// `127.0.0.1:4400`
    Tcp(String),
}

enum Token {
    Known(String),
    /// Read when connecting: the daemon that writes it may not have started yet.
    File(PathBuf),
}

/// A token is a secret.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Known(_) => f.write_str("Known(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// Why there was no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("no daemon answers")]
    Gone,
    #[error("the daemon did not answer within {} s", ANSWER_WAIT.as_secs())]
    Silent,
    #[error("the daemon answered {status} {code}")]
    Refused { status: u16, code: String },
    #[error("the daemon's answer cannot be understood")]
    Unreadable,
}

impl LinkError {
    /// There is nobody to ask, now at least.
    pub(crate) fn is_down(&self) -> bool {
        matches!(self, Self::Gone | Self::Silent)
    }

    /// The daemon does not let this token do it.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Self::Refused { status: 401 | 403, .. })
    }

    pub(crate) fn is_code(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { code, .. } if code == wanted)
    }
}

impl Link {
    /// The daemon of a data folder, as its operator.
    pub(crate) fn local(socket: PathBuf, token: PathBuf) -> Self {
        Self { place: Place::Socket(socket), token: Token::File(token), idle: Mutex::default() }
    }

    /// The daemon at an address such as `http://127.0.0.1:4400`; nothing for another kind of address.
    pub(crate) fn at(url: &str, token: &str) -> Option<Self> {
        let host = url.strip_prefix("http://")?.trim_end_matches('/');
        let place = Place::Tcp(host.to_owned());
        Some(Self { place, token: Token::Known(token.to_owned()), idle: Mutex::default() })
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, route: &Route) -> Result<T, LinkError> {
        self.ask(Method::GET, route, None).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, LinkError> {
        let body = serde_json::to_vec(body).map_err(|_| LinkError::Unreadable)?;
        self.ask(Method::POST, route, Some(body.into())).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        route: &Route,
        body: Option<Bytes>,
    ) -> Result<T, LinkError> {
        let answer = tokio::time::timeout(ANSWER_WAIT, self.exchange(method, route, body)).await;
        let (status, body) = answer.unwrap_or(Err(LinkError::Silent))?;
        if !status.is_success() {
            let code = serde_json::from_slice::<Problem>(&body).map_or(String::new(), |problem| problem.code);
            // The relay of the agent's run answers; a daemon does not.
            if code == DAEMON_AWAY {
                return Err(LinkError::Gone);
            }
            return Err(LinkError::Refused { status: status.as_u16(), code });
        }
        // An answer without a body reads as nothing.
        let body = if body.is_empty() { Bytes::from_static(b"null") } else { body };
        serde_json::from_slice(&body).map_err(|_| LinkError::Unreadable)
    }

    async fn exchange(
        &self,
        method: Method,
        route: &Route,
        body: Option<Bytes>,
    ) -> Result<(StatusCode, Bytes), LinkError> {
        let mut request = Request::builder().method(method).uri(route.as_str()).header(HOST, self.host());
        request = request.header(AUTHORIZATION, format!("Bearer {}", self.token()?));
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(body.unwrap_or_default())).map_err(|_| LinkError::Unreadable)?;
        let mut sender = self.connection().await?;
        let response = sender.send_request(request).await.map_err(|_| LinkError::Gone)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|_| LinkError::Gone)?.to_bytes();
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(sender);
        }
        Ok((status, body))
    }

    /// One that was kept and still stands, or a new one.
    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>, LinkError> {
        loop {
            let kept = self.idle.lock().pop();
            let Some(mut kept) = kept else { break };
            if kept.ready().await.is_ok() {
                return Ok(kept);
            }
        }
        match &self.place {
            Place::Socket(path) => shake(UnixStream::connect(path).await).await,
            Place::Tcp(host) => shake(TcpStream::connect(host).await).await,
        }
    }

    fn host(&self) -> &str {
        match &self.place {
            Place::Socket(_) => "localhost",
            Place::Tcp(host) => host,
        }
    }

    fn token(&self) -> Result<String, LinkError> {
        match &self.token {
            Token::Known(token) => Ok(token.clone()),
            Token::File(path) => {
                let token = std::fs::read_to_string(path).map_err(|_| LinkError::Gone)?;
                Ok(token.trim().to_owned())
            }
        }
    }
}

async fn shake<S>(stream: std::io::Result<S>) -> Result<SendRequest<Full<Bytes>>, LinkError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let stream = stream.map_err(|_| LinkError::Gone)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| LinkError::Gone)?;
    // Ends with the sender; whatever breaks the connection shows in the request that is under way.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}
