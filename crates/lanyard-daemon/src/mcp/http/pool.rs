//! Connections to one address, kept open between requests.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Duration, Instant};

use super::tls::Tls;
use crate::mcp::server::Trouble;

/// Idle connections that are kept.
const IDLE_MAX: usize = 64;
/// How long an idle one is kept. Servers close theirs after some time, and Node's after five seconds.
const IDLE_FOR: Duration = Duration::from_secs(4);
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Connections tried in turn when the server has closed those that were kept.
const TRIES_MAX: usize = 8;

type Sender = SendRequest<Full<Bytes>>;

#[derive(Debug)]
pub(super) struct Pool {
    host: String,
    port: u16,
    tls: Option<Tls>,
    idle: Mutex<Vec<(Sender, Instant)>>,
}

impl Pool {
    pub(super) fn new((host, port): (String, u16), tls: Option<Tls>) -> Self {
        Self { host, port, tls, idle: Mutex::default() }
    }

    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Lent>, Trouble> {
        for _ in 0..TRIES_MAX {
            let mut sender = self.connection().await?;
            match sender.try_send_request(request).await {
                Ok(response) => {
                    let pool = self.clone();
                    return Ok(response.map(|body| Lent { body, lender: Some((sender, pool)) }));
                }
                // The server closed it in the meantime: nothing of the request went out.
                Err(mut unsent) => match unsent.take_message() {
                    Some(again) => request = again,
                    None => return Err(Trouble::Broken(unsent.into_error().to_string())),
                },
            }
        }
        Err(Trouble::Broken("it closes every connection".to_owned()))
    }

    async fn connection(&self) -> Result<Sender, Trouble> {
        while let Some(mut sender) = self.take() {
            if sender.ready().await.is_ok() {
                return Ok(sender);
            }
        }
        match tokio::time::timeout(CONNECT_PATIENCE, self.connect()).await {
            Ok(connected) => connected,
            Err(_) => Err(Trouble::Unreachable("it does not take the connection".to_owned())),
        }
    }

    async fn connect(&self) -> Result<Sender, Trouble> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| Trouble::Unreachable(error.to_string()))?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => shake(stream).await,
            Some(tls) => shake(tls.wrap(stream).await?).await,
        }
    }

    fn take(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // The newest first: what lies below it is older still.
        let (sender, since) = idle.pop()?;
        if since.elapsed() > IDLE_FOR {
            idle.clear();
            return None;
        }
        Some(sender)
    }

    fn give_back(&self, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push((sender, Instant::now()));
        }
    }
}

async fn shake<S>(stream: S) -> Result<Sender, Trouble>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(|error| Trouble::Unreachable(error.to_string()))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to an MCP server ended early");
        }
    });
    Ok(sender)
}

/// The body of an answer. Read to its end, its connection is used again; dropped before, it is closed.
#[derive(Debug)]
pub(in crate::mcp) struct Lent {
    body: Incoming,
    lender: Option<(Sender, Arc<Pool>)>,
}

impl Lent {
    fn ended(&mut self) {
        if let Some((sender, pool)) = self.lender.take() {
            pool.give_back(sender);
        }
    }

    /// All of it, if it is not larger than it may be.
    pub(in crate::mcp) async fn whole(mut self, max: usize) -> Result<Bytes, Trouble> {
        let mut first: Option<Bytes> = None;
        let mut rest = BytesMut::new();
        while let Some(frame) = self.frame().await {
            let frame = frame.map_err(|error| Trouble::Broken(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            if first.as_ref().map_or(rest.len(), Bytes::len) + data.len() > max {
                return Err(Trouble::TooLarge(max));
            }
            match first.take() {
                // Most answers come in one piece, which need not be copied.
                None if rest.is_empty() => first = Some(data),
                None => rest.extend_from_slice(&data),
                Some(begun) => {
                    rest.extend_from_slice(&begun);
                    rest.extend_from_slice(&data);
                }
            }
        }
        Ok(first.unwrap_or_else(|| rest.freeze()))
    }
}

impl Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.ended();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // An answer without a body is never polled.
        if self.body.is_end_stream() {
            self.ended();
        }
    }
}
