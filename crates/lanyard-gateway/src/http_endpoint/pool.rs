//! Connections to one address, kept open between requests. Whoever waits for an answer carries the bytes of its
//! connection itself: no task stands in between, to be woken twice for every call.

use parking_lot::Mutex;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Duration, Instant, Sleep};

use crate::http_endpoint::Trouble;
use crate::tls::Tls;
use lanyard_base::self_waking::SelfWakes;

/// Idle connections that are kept.
const IDLE_MAX: usize = 64;
/// How long an idle one is kept. Servers close theirs after some time, and Node's after five seconds.
const IDLE_FOR: Duration = Duration::from_secs(4);
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// As good as for ever: longer than that a clock cannot count from now.
const PATIENCE_MAX: Duration = Duration::from_hours(365 * 24);
/// Connections tried in turn when the server has closed those that were kept.
const TRIES_MAX: usize = 8;

type Outgoing = Request<Full<Bytes>>;

/// One connection.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    /// Carries bytes in both directions while it is polled; nothing once the connection has ended.
    carrier: Option<Carrier>,
    /// Both ends of its channels are polled by the same task: what they wake of each other need not go further.
    wakes: SelfWakes,
    /// When the answer to the request under way comes too late. Kept between requests: to put it off costs less than to
    /// set it anew.
    late: Pin<Box<Sleep>>,
}

type Carrier = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why a line gave no answer.
enum Unanswered {
    /// The request comes back where nothing of it went out.
    Failed(Box<TrySendError<Outgoing>>),
    Late,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").field("is_open", &self.carrier.is_some()).finish_non_exhaustive()
    }
}

/// Carries what can be carried.
fn carry(carrier: &mut Option<Carrier>, context: &mut Context<'_>) {
    if carrier.as_mut().is_some_and(|carrier| carrier.as_mut().poll(context).is_ready()) {
        *carrier = None;
    }
}

impl Line {
    /// Waits until it takes a request; `false` when it never will, or not in time.
    async fn is_ready(&mut self, until: Instant) -> bool {
        let Self { sender, carrier, wakes, late } = self;
        late.as_mut().reset(until);
        poll_fn(|context| {
            wakes.poll(context, |context| {
                carry(carrier, context);
                if carrier.is_none() {
                    return Poll::Ready(false);
                }
                match sender.poll_ready(context) {
                    Poll::Ready(ready) => Poll::Ready(ready.is_ok()),
                    Poll::Pending => late.as_mut().poll(context).map(|()| false),
                }
            })
        })
        .await
    }

    async fn send(&mut self, request: Outgoing, until: Instant) -> Result<Response<Incoming>, Unanswered> {
        let Self { sender, carrier, wakes, late } = self;
        late.as_mut().reset(until);
        let mut request = Some(request);
        let mut sent = pin!(None);
        poll_fn(|context| {
            wakes.poll(context, |context| {
                // Handed over in here, where the line hears that it is woken by it.
                if let Some(request) = request.take() {
                    sent.set(Some(sender.try_send_request(request)));
                }
                carry(carrier, context);
                let answer = sent.as_mut().as_pin_mut().map(|sent| sent.poll(context));
                match answer {
                    Some(Poll::Ready(answer)) => {
                        Poll::Ready(answer.map_err(|unsent| Unanswered::Failed(Box::new(unsent))))
                    }
                    Some(Poll::Pending) | None => late.as_mut().poll(context).map(|()| Err(Unanswered::Late)),
                }
            })
        })
        .await
    }
}

#[derive(Debug)]
pub(super) struct Pool {
    host: String,
    port: u16,
    tls: Option<Tls>,
    idle: Mutex<Vec<(Line, Instant)>>,
}

impl Pool {
    pub(super) fn new((host, port): (String, u16), tls: Option<Tls>) -> Self {
        Self { host, port, tls, idle: Mutex::default() }
    }

    /// Sends a request. The time is that until the answer begins.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Outgoing,
        patience: Duration,
    ) -> Result<Response<Lent>, Trouble> {
        let until = Instant::now() + patience.min(PATIENCE_MAX);
        for _ in 0..TRIES_MAX {
            let mut line = match self.idle_line(until).await {
                Some(line) => line,
                // Aside: a handshake is large, and almost every request finds a connection.
                None => Box::pin(self.new_line(until, patience)).await?,
            };
            match line.send(request, until).await {
                Ok(response) => {
                    let pool = self.clone();
                    return Ok(response.map(|body| Lent { body, lender: Some((line, pool)) }));
                }
                // The server closed it in the meantime: nothing of the request went out.
                Err(Unanswered::Failed(mut unsent)) => match unsent.take_message() {
                    Some(again) => request = again,
                    None => return Err(Trouble::Broken(unsent.into_error().to_string())),
                },
                Err(Unanswered::Late) => return Err(Trouble::Slow(patience)),
            }
        }
        Err(Trouble::Broken("it closes every connection".to_owned()))
    }

    async fn idle_line(&self, until: Instant) -> Option<Line> {
        while let Some(mut line) = self.take() {
            if line.is_ready(until).await {
                return Some(line);
            }
        }
        None
    }

    async fn new_line(&self, until: Instant, patience: Duration) -> Result<Line, Trouble> {
        let given_up = Instant::now() + CONNECT_PATIENCE;
        match tokio::time::timeout_at(given_up.min(until), self.connect()).await {
            Ok(connected) => connected,
            Err(_) if until < given_up => Err(Trouble::Slow(patience)),
            Err(_) => Err(Trouble::Unreachable("it does not take the connection".to_owned())),
        }
    }

    async fn connect(&self) -> Result<Line, Trouble> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| Trouble::Unreachable(error.to_string()))?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => shake(stream).await,
            Some(tls) => shake(tls.wrap(stream).await?).await,
        }
    }

    fn take(&self) -> Option<Line> {
        let mut idle = self.idle.lock();
        // The newest first: what lies below it is older still.
        let (line, since) = idle.pop()?;
        if since.elapsed() > IDLE_FOR {
            idle.clear();
            return None;
        }
        Some(line)
    }

    fn give_back(&self, line: Line) {
        if line.carrier.is_none() || line.sender.is_closed() {
            return;
        }
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push((line, Instant::now()));
        }
    }

    /// Closes those that lie idle: nobody else hears when the server closes its end.
    pub(super) fn sweep(&self) {
        let mut idle = self.idle.lock();
        idle.retain(|(_, since)| since.elapsed() <= IDLE_FOR);
    }
}

async fn shake<S>(stream: S) -> Result<Line, Trouble>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(|error| Trouble::Unreachable(error.to_string()))?;
    let carrier = async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to an MCP server ended early");
        }
    };
    let late = Box::pin(tokio::time::sleep_until(Instant::now()));
    Ok(Line { sender, carrier: Some(Box::pin(carrier)), wakes: SelfWakes::default(), late })
}

/// The body of an answer. Read to its end, its connection is used again; dropped before, it is closed.
#[derive(Debug)]
pub struct Lent {
    body: Incoming,
    lender: Option<(Line, Arc<Pool>)>,
}

impl Lent {
    fn ended(&mut self) {
        if let Some((line, pool)) = self.lender.take() {
            pool.give_back(line);
        }
    }

    /// All of it, if it is not larger than it may be.
    pub async fn whole(self, max: usize) -> Result<Bytes, Trouble> {
        whole(self, max).await.map_err(|cut| match cut {
            Cut::TooLarge => Trouble::TooLarge(max),
            Cut::Broken(error) => Trouble::Broken(error.to_string()),
        })
    }
}

/// Why a body was not read to its end.
#[derive(Debug)]
pub enum Cut<E> {
    TooLarge,
    Broken(E),
}

/// All of a body, if it is not larger than it may be.
pub async fn whole<B>(mut body: B, max: usize) -> Result<Bytes, Cut<B::Error>>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Cut::Broken)?.into_data() else { continue };
        if first.as_ref().map_or(rest.len(), Bytes::len) + data.len() > max {
            return Err(Cut::TooLarge);
        }
        match first.take() {
            // Most bodies come in one piece, which need not be copied.
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

impl Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { body, lender } = &mut *self;
        let frame = match lender {
            None => Pin::new(body).poll_frame(context),
            Some((line, _)) => line.wakes.poll(context, |context| {
                // Asked first, so that the connection knows that more is wanted.
                let frame = Pin::new(&mut *body).poll_frame(context);
                if frame.is_ready() {
                    return frame;
                }
                carry(&mut line.carrier, context);
                Pin::new(&mut *body).poll_frame(context)
            }),
        };
        let frame = ready!(frame);
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
