//! What is said to the daemon about a terminal, one request after the other: typing keeps its order, and each piece is
//! typed once, over any restart of the daemon.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use lanyard_api::types::{
    HeldWriter, NewTerminalInput, NewWindowSize, NewWriter, WriterAnswer, WriterResult,
};
use lanyard_client::{
    ANSWER_TIMEOUT, ApiRequest, ClientError, DaemonAddress, DaemonConnection, HttpAnswer, Route, encode,
    random_key,
};
use lanyard_core::session::WindowSize;
use lanyard_core::{ConnectionId, SessionId};
use serde::Serialize;
use tokio::sync::mpsc;

/// Orders that may wait. More typing than that waits in this terminal.
pub(super) const ORDERS_MAX: usize = 64;
/// Bytes that go out together.
const TOGETHER_MAX: usize = 32 * 1024;
/// Between two questions whether the writer has handed over, and between two tries to reach a daemon.
const PAUSE: Duration = Duration::from_millis(500);
/// How often the writer is asked; one that does not answer hands over in that time.
const ASKS_MAX: u32 = 60;

#[derive(Debug)]
pub(super) enum Order {
    Input(Vec<u8>),
    Size(WindowSize),
    /// Become the writer of this connection; with `take` the one there is asked to hand over.
    Claim {
        connection: ConnectionId,
        take: bool,
    },
    /// Be done with writing.
    Release,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum TypistNews {
    Writing,
    /// Another writes.
    Watching(String),
    Refused(String),
}

pub(super) struct Typist {
    address: DaemonAddress,
    session: SessionId,
    connection: Option<DaemonConnection>,
    pen: Option<(ConnectionId, u64)>,
    /// How long a daemon that is away is waited for.
    patience: Duration,
}

impl Typist {
    pub(super) fn new(address: DaemonAddress, session: SessionId, patience: Duration) -> Self {
        Self { address, session, connection: None, pen: None, patience }
    }

    /// Until nobody orders anything any more.
    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Order>, news: mpsc::Sender<TypistNews>) {
        let mut next: Option<Order> = None;
        loop {
            let order = match next.take() {
                Some(order) => order,
                None => match orders.recv().await {
                    Some(order) => order,
                    None => return,
                },
            };
            let told = match order {
                Order::Input(mut bytes) => {
                    while bytes.len() < TOGETHER_MAX {
                        match orders.try_recv() {
                            Ok(Order::Input(more)) => bytes.extend(more),
                            Ok(other) => {
                                next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.input(&bytes).await
                }
                Order::Size(size) => self.size(size).await,
                Order::Claim { connection, take } => Some(self.claim(connection, take).await),
                Order::Release => {
                    self.release().await;
                    None
                }
            };
            if let Some(told) = told
                && news.send(told).await.is_err()
            {
                return;
            }
        }
    }

    async fn input(&mut self, bytes: &[u8]) -> Option<TypistNews> {
        let body = NewTerminalInput { data: STANDARD.encode(bytes) };
        let said = self.say(&["terminal", "input"], &body).await;
        self.lost(said)
    }

    async fn size(&mut self, size: WindowSize) -> Option<TypistNews> {
        self.pen?;
        let body = NewWindowSize { cols: size.cols, rows: size.rows };
        let said = self.say(&["terminal", "size"], &body).await;
        self.lost(said)
    }

    fn lost(&mut self, said: Result<HttpAnswer, ClientError>) -> Option<TypistNews> {
        match said {
            Ok(_) => None,
            Err(ClientError::Refused(problem)) => match problem.code.as_str() {
                "writer_superseded" | "writer_held" => {
                    self.pen = None;
                    Some(TypistNews::Watching(problem.title))
                }
                // The stream tells of the end.
                "terminal_not_running" => None,
                _ => Some(TypistNews::Refused(problem.title)),
            },
            Err(error) => Some(TypistNews::Refused(error.to_string())),
        }
    }

    async fn claim(&mut self, connection: ConnectionId, take: bool) -> TypistNews {
        let body = NewWriter { connection, client: Some("cli".to_owned()), take };
        for _ in 0..ASKS_MAX {
            let answer = match self.say(&["writer"], &body).await.and_then(|answer| answer.json()) {
                Ok(answer) => answer,
                Err(ClientError::Refused(problem)) => return TypistNews::Watching(problem.title),
                Err(error) => return TypistNews::Watching(error.to_string()),
            };
            let WriterAnswer { result, epoch, .. } = answer;
            match result {
                WriterResult::Granted => {
                    self.pen = Some((connection, epoch));
                    return TypistNews::Writing;
                }
                WriterResult::Asked => tokio::time::sleep(PAUSE).await,
                WriterResult::Denied | WriterResult::Released => break,
            }
        }
        TypistNews::Watching("the writer keeps it".to_owned())
    }

    async fn release(&mut self) {
        let Some((connection, epoch)) = self.pen.take() else { return };
        let _ = self.say(&["writer", "release"], &HeldWriter { connection, epoch }).await;
    }

    /// Sends a request under one key until it is answered, or the daemon stays away for too long.
    async fn say(&mut self, to: &[&str], body: &impl Serialize) -> Result<HttpAnswer, ClientError> {
        let session = self.session.to_string();
        let route = Route::to(&[&["sessions", &session], to].concat());
        let (body, key) = (encode(body)?, random_key("cli")?);
        let writer = self.pen.map(|(_, epoch)| epoch);
        let since = tokio::time::Instant::now();
        loop {
            let (body, key) = (Some(body.clone()), Some(key.clone()));
            let change = ApiRequest::change(Method::POST, &route, body, key, Some(ANSWER_TIMEOUT));
            let answered = self.attempt(&ApiRequest { writer, ..change }).await;
            match answered.and_then(HttpAnswer::accepted) {
                Err(error) if error.is_passing() && since.elapsed() < self.patience => {
                    self.connection = None;
                    tokio::time::sleep(PAUSE).await;
                }
                answered => return answered,
            }
        }
    }

    async fn attempt(&mut self, request: &ApiRequest<'_>) -> Result<HttpAnswer, ClientError> {
        if self.connection.is_none() {
            self.connection = self.address.connect().await?;
        }
        match &mut self.connection {
            Some(connection) => connection.attempt(request).await,
            None => Err(ClientError::Away),
        }
    }
}
