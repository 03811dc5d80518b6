//! The HTTP client: one connection per command, over the daemon's Unix socket. It knows the API's manners (token, keys,
//! problems) and nothing of any command.

mod absence;
mod name_book;
mod record_watch;
mod route;
mod sse;
mod ws;

pub(crate) use absence::Absence;
pub(crate) use name_book::{A_PLAN, A_SESSION, A_TASK, A_WORK, AN_ASKER, NameBook, listed};
pub(crate) use record_watch::{RecordWatch, Woken};
pub(crate) use route::Route;
pub(crate) use sse::Stream;
pub(crate) use ws::{Address, Cursor, Fed, Feed};

use std::io::ErrorKind;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use lanyard_api::home::Home;
use lanyard_api::types::{DaemonStatus, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::context::Context;
use crate::failure::Failure;
use crate::relay::Given;
use name_book::{Meaning, with_nearest};

/// How long an answer may take. Generous: a commit waits for a disk, and a disk can be slow.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a daemon may take to say that it is there, or that it will end: neither waits for a disk.
pub(crate) const SIGN_OF_LIFE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the daemon may take to open a stream.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The daemon writes to every stream at least every fifteen seconds; one that is silent for longer is broken.
const SILENCE_MAX: Duration = Duration::from_secs(45);

pub(crate) struct Client<'a> {
    context: &'a Context,
    wire: Wire,
    if_gone: IfGone,
}

/// What to do when no daemon is there, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfGone {
    Start,
    /// For commands about the daemon itself.
    Leave,
}

/// One connection and the right to use it.
pub(crate) struct Wire {
    sender: SendRequest<Full<Bytes>>,
    token: String,
    host: String,
}

/// A request that can be sent more than once.
struct Ask<'a> {
    method: Method,
    route: &'a Route,
    body: Option<Bytes>,
    /// Makes a repeat of a change harmless; questions need none.
    key: Option<String>,
    /// Whatever takes as long as the journal is large has no limit.
    within: Option<Duration>,
}

struct Answer {
    status: StatusCode,
    body: Bytes,
}

/// Why there was no answer.
enum Lost {
    Broken,
    /// Nothing for this long.
    Silent(Duration),
}

impl<'a> Client<'a> {
    pub(crate) fn new(context: &'a Context, wire: Wire, if_gone: IfGone) -> Self {
        Self { context, wire, if_gone }
    }

    /// Whether it acts as the session this command runs inside of.
    pub(crate) fn is_session(&self) -> bool {
        self.context.given.is_some()
    }

    pub(crate) async fn get<T: DeserializeOwned>(&mut self, route: &Route) -> Result<T, Failure> {
        self.ask(Ask::question(route, Some(ANSWER_TIMEOUT))).await?.read()
    }

    /// A question that may take as long as it takes.
    pub(crate) async fn get_patiently<T: DeserializeOwned>(&mut self, route: &Route) -> Result<T, Failure> {
        self.ask(Ask::question(route, None)).await?.read()
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &mut self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.change(Method::POST, route, Some(encode(body)?), Some(ANSWER_TIMEOUT)).await?.read()
    }

    /// One of several changes a command makes: each has a key of its own, made from the one the user gave.
    pub(crate) async fn post_part<T: DeserializeOwned>(
        &mut self,
        part: &str,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.part(part, route, body, Some(ANSWER_TIMEOUT)).await
    }

    /// The same for changes that may take long.
    pub(crate) async fn post_part_patiently<T: DeserializeOwned>(
        &mut self,
        part: &str,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.part(part, route, body, None).await
    }

    async fn part<T: DeserializeOwned>(
        &mut self,
        part: &str,
        route: &Route,
        body: &impl Serialize,
        within: Option<Duration>,
    ) -> Result<T, Failure> {
        let key = match &self.context.key {
            Some(key) => format!("{key}.{part}"),
            None => self.key()?,
        };
        let body = Some(encode(body)?);
        self.ask(Ask { method: Method::POST, route, body, key: Some(key), within }).await?.read()
    }

    /// A change that does no harm when it is made twice or not at all: no outcome is kept for a repeat.
    pub(crate) async fn post_unkept<T: DeserializeOwned>(
        &mut self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let (body, within) = (Some(encode(body)?), Some(ANSWER_TIMEOUT));
        self.ask(Ask { method: Method::POST, route, body, key: None, within }).await?.read()
    }

    pub(crate) async fn post_patiently<T: DeserializeOwned>(
        &mut self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.change(Method::POST, route, Some(encode(body)?), None).await?.read()
    }

    pub(crate) async fn patch<T: DeserializeOwned>(
        &mut self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.change(Method::PATCH, route, Some(encode(body)?), Some(ANSWER_TIMEOUT)).await?.read()
    }

    pub(crate) async fn delete<T: DeserializeOwned>(
        &mut self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.change(Method::DELETE, route, Some(encode(body)?), Some(ANSWER_TIMEOUT)).await?.read()
    }

    /// Deletes what answers with nothing.
    pub(crate) async fn remove(&mut self, route: &Route) -> Result<(), Failure> {
        self.change(Method::DELETE, route, None, Some(ANSWER_TIMEOUT)).await.map(drop)
    }

    /// Asks the daemon to shut down. Not repeated: a broken connection is what was asked for.
    pub(crate) async fn shut_down(mut self) -> Result<(), Failure> {
        let route = Route::to(&["shutdown"]);
        let body = Some(Bytes::from_static(b"{}"));
        let ask = Ask {
            method: Method::POST,
            route: &route,
            body,
            key: Some(self.key()?),
            within: Some(SIGN_OF_LIFE_TIMEOUT),
        };
        match self.wire.attempt(&ask).await {
            Ok(answer) => answer.accepted().map(drop),
            Err(Lost::Broken) => Ok(()),
            Err(Lost::Silent(waited)) => Err(silent(waited, None)),
        }
    }

    /// Opens a stream of events; `None` when the connection broke or nothing was answered in time. Uses up the
    /// connection; a broken stream is the caller's to resume.
    pub(crate) async fn stream(mut self, route: &Route) -> Result<Option<Stream>, Failure> {
        let (route, _) = self.resolve(route).await?;
        let request = Request::get(route.as_str()).header(ACCEPT, "text/event-stream");
        let Ok(request) = self.wire.dressed(request).body(Full::default()) else { return Err(unsendable()) };
        let answered = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.wire.sender.send_request(request)).await;
        let Ok(Ok(response)) = answered else { return Ok(None) };
        let status = response.status();
        if status.is_success() {
            return Ok(Some(Stream::new(response.into_body())));
        }
        let Ok(body) = response.into_body().collect().await else { return Ok(None) };
        Err(Answer { status, body: body.to_bytes() }.refusal())
    }

    async fn change(
        &mut self,
        method: Method,
        route: &Route,
        body: Option<Bytes>,
        within: Option<Duration>,
    ) -> Result<Answer, Failure> {
        let key = Some(self.key()?);
        self.ask(Ask { method, route, body, key, within }).await
    }

    /// The key the user gave, or a fresh one.
    fn key(&self) -> Result<String, Failure> {
        if let Some(key) = &self.context.key {
            return Ok(key.clone());
        }
        let mut bits = [0_u8; 16];
        getrandom::fill(&mut bits).map_err(|error| {
            Failure::local("no_randomness", format!("cannot make a random key: {error}"), "")
        })?;
        Ok(format!("cli-{:032x}", u128::from_ne_bytes(bits)))
    }

    /// Sends the request, with the id in the place of a name.
    async fn ask(&mut self, ask: Ask<'_>) -> Result<Answer, Failure> {
        let (route, meaning) = self.resolve(ask.route).await?;
        let answer = self.ask_twice(Ask { route: &route, ..ask }).await;
        answer.map_err(|failure| match &meaning {
            Some(meaning) => with_nearest(failure, meaning, self.context.out.columns),
            None => failure,
        })
    }

    /// The address with the id that its name means.
    async fn resolve(&mut self, route: &Route) -> Result<(Route, Option<Meaning>), Failure> {
        let Some(wanted) = route.wanted() else { return Ok((route.clone(), None)) };
        let meaning = self.meaning(wanted).await?;
        let route = match &meaning {
            Meaning::Id(id) => route.resolved(id),
            Meaning::Nothing(..) => route.clone(),
        };
        Ok((route, Some(meaning)))
    }

    /// Sends the request, and once more if the connection breaks before there is an answer: the key makes sure that a
    /// change is made once, whichever of the two arrived.
    async fn ask_twice(&mut self, ask: Ask<'_>) -> Result<Answer, Failure> {
        match self.wire.attempt(&ask).await {
            Ok(answer) => return answer.accepted(),
            Err(Lost::Silent(waited)) => return Err(silent(waited, ask.key.as_deref())),
            Err(Lost::Broken) => {}
        }
        let how = if ask.key.is_some() { "asking again with the same key" } else { "asking again" };
        self.context.out.note(&format!("the connection broke before an answer; {how}"));
        self.wire = match self.context.wire_again(self.if_gone).await {
            Ok(wire) => wire,
            Err(failure) if ask.key.is_none() => return Err(failure),
            Err(_) => return Err(uncertain(ask.key.as_deref())),
        };
        match self.wire.attempt(&ask).await {
            Ok(answer) => answer.accepted(),
            Err(Lost::Silent(waited)) => Err(silent(waited, ask.key.as_deref())),
            Err(Lost::Broken) => Err(uncertain(ask.key.as_deref())),
        }
    }
}

impl<'a> Ask<'a> {
    fn question(route: &'a Route, within: Option<Duration>) -> Self {
        Self { method: Method::GET, route, body: None, key: None, within }
    }
}

impl Wire {
    /// Connects to the daemon of a data folder; `None` when none listens there.
    pub(crate) async fn dial(home: &Home) -> Result<Option<Self>, Failure> {
        let path = home.socket();
        let stream = match UnixStream::connect(&path).await {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(error) => {
                let title = format!("cannot connect to {}: {error}", path.display());
                return Err(Failure::unreachable("socket_unusable", title, "run `lanyard doctor`"));
            }
        };
        let token = std::fs::read_to_string(home.token()).map_err(|error| {
            let title = format!("cannot read the token {}: {error}", home.token().display());
            Failure::unreachable("token_unreadable", title, "run `lanyard doctor`")
        })?;
        Ok(Self::over(stream, token.trim(), "localhost").await)
    }

    /// Connects to the daemon a session was given, as that session; `None` when none listens there.
    pub(crate) async fn dial_as(given: &Given) -> Result<Option<Self>, Failure> {
        let Some(host) = given.host() else {
            let title = format!("`{}` in LANYARD_URL is no address of a daemon", given.url);
            return Err(Failure::usage(title, "leave the variable as Lanyard set it"));
        };
        let Ok(stream) = TcpStream::connect(host).await else { return Ok(None) };
        Ok(Self::over(stream, &given.token, host).await)
    }

    async fn over<S>(stream: S, token: &str, host: &str) -> Option<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        // Ends with the sender; whatever breaks the connection shows in the request that is under way.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Some(Self { sender, token: token.to_owned(), host: host.to_owned() })
    }

    /// Whether the daemon answers on this connection.
    pub(crate) async fn greets(&mut self, is_session: bool, within: Duration) -> Result<bool, Failure> {
        if !is_session {
            return Ok(self.status(within).await?.is_some());
        }
        match self.attempt(&Ask::question(&Route::to(&["me"]), Some(within))).await {
            Ok(_) => Ok(true),
            Err(Lost::Broken) => Ok(false),
            Err(Lost::Silent(waited)) => Err(silent(waited, None)),
        }
    }

    /// Asks how the daemon is, once; `None` when the connection broke.
    pub(crate) async fn status(&mut self, within: Duration) -> Result<Option<DaemonStatus>, Failure> {
        match self.attempt(&Ask::question(&Route::to(&["status"]), Some(within))).await {
            Ok(answer) => answer.accepted()?.read().map(Some),
            Err(Lost::Broken) => Ok(None),
            Err(Lost::Silent(waited)) => Err(silent(waited, None)),
        }
    }

    async fn attempt(&mut self, ask: &Ask<'_>) -> Result<Answer, Lost> {
        let Some(within) = ask.within else { return self.send(ask).await };
        tokio::time::timeout(within, self.send(ask)).await.unwrap_or(Err(Lost::Silent(within)))
    }

    async fn send(&mut self, ask: &Ask<'_>) -> Result<Answer, Lost> {
        let mut request = Request::builder().method(ask.method.clone()).uri(ask.route.as_str());
        request = self.dressed(request);
        if ask.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(key) = &ask.key {
            request = request.header("idempotency-key", key);
        }
        let body = Full::new(ask.body.clone().unwrap_or_default());
        let request = request.body(body).map_err(|_| Lost::Broken)?;
        let response = self.sender.send_request(request).await.map_err(|_| Lost::Broken)?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|_| Lost::Broken)?;
        Ok(Answer { status, body: body.to_bytes() })
    }

    fn dressed(&self, request: hyper::http::request::Builder) -> hyper::http::request::Builder {
        request.header(HOST, &self.host).header(AUTHORIZATION, format!("Bearer {}", self.token))
    }
}

impl Answer {
    fn accepted(self) -> Result<Self, Failure> {
        if self.status.is_success() { Ok(self) } else { Err(self.refusal()) }
    }

    fn refusal(&self) -> Failure {
        let problem = serde_json::from_slice(&self.body).unwrap_or_else(|_| Problem {
            kind: "about:blank".to_owned(),
            status: self.status.as_u16(),
            code: format!("http_{}", self.status.as_u16()),
            title: format!("the daemon answered {}", self.status),
            advice: "look at its log, `daemon.log` in the data folder".to_owned(),
        });
        Failure::refused(problem)
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let title = format!("the daemon's answer cannot be understood: {error}");
            Failure::local("answer_unknown", title, "compare the versions with `lanyard status`")
        })
    }
}

fn encode(body: &impl Serialize) -> Result<Bytes, Failure> {
    serde_json::to_vec(body)
        .map(Bytes::from)
        .map_err(|error| Failure::local("request_unwritable", error.to_string(), ""))
}

fn unsendable() -> Failure {
    Failure::local("request_unwritable", "the request cannot be written", "")
}

fn silent(waited: Duration, key: Option<&str>) -> Failure {
    let title = format!("the daemon did not answer within {} s", waited.as_secs());
    let advice = match key {
        Some(key) => again_with(key),
        None => "run `lanyard doctor`, and look at `daemon.log` in the data folder".to_owned(),
    };
    Failure::unreachable("daemon_silent", title, advice)
}

/// Nothing with effects is repeated behind anyone's back: say what is not known, and how to find out.
fn uncertain(key: Option<&str>) -> Failure {
    let title = "the connection broke before an answer, and there was no second one";
    Failure::unreachable("uncertain", title, key.map_or_else(|| "run it again".to_owned(), again_with))
}

fn again_with(key: &str) -> String {
    format!(
        "run the same command again with `--key {key}`: the change is then made once, whether it was made or not"
    )
}
