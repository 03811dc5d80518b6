//! Connections: TCP on loopback and a Unix socket in the data folder, both speaking HTTP/1.1 to the same front.

mod stalled;

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use lanyard_base::self_waking::SelfWaking;
use stalled::Patient;
pub(crate) use stalled::patience;

/// Connections at a time. Further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 10_000;
/// Bytes a connection buffers in each direction. What a reader that has stalled costs, beside what it is sent at once.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// How long a client may take to send its request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long open requests have to finish once the daemon is to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait when the system has no more sockets to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How a request reached the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    Tcp,
    /// The socket in the data folder, which only the daemon's user can open.
    Socket,
}

/// Answers the requests of all connections.
pub(crate) trait Respond: Send + Sync + 'static {
    fn answer(self: Arc<Self>, via: Via, request: Request<Incoming>)
    -> impl Future<Output = Response> + Send;
}

/// Serves until `closing` says so, then lets open requests finish.
pub(crate) async fn serve(
    tcp: TcpListener,
    socket: UnixListener,
    front: Arc<impl Respond>,
    mut closing: oneshot::Receiver<()>,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (ending, _) = watch::channel(());
    let patience = patience();
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { break };
        tokio::select! {
            accepted = tcp.accept() => match accepted {
                Ok((stream, _)) => {
                    // Events are small and must not wait for each other.
                    let _ = stream.set_nodelay(true);
                    connection(stream, Via::Tcp, &front, ConnectionSlot::new(permit, &ending, patience));
                }
                Err(error) => pause(&error).await,
            },
            accepted = socket.accept() => match accepted {
                Ok((stream, _)) => connection(stream, Via::Socket, &front, ConnectionSlot::new(permit, &ending, patience)),
                Err(error) => pause(&error).await,
            },
            _ = &mut closing => break,
        }
    }
    drop((tcp, socket));
    let _ = ending.send(());
    if tokio::time::timeout(DRAIN_TIMEOUT, ending.closed()).await.is_err() {
        tracing::warn!("some connections did not end in time and were cut");
    }
}

/// A connection's place. Whoever keeps it is counted, and waited for when the daemon ends: a WebSocket takes it along.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSlot {
    _permit: Arc<OwnedSemaphorePermit>,
    ending: watch::Receiver<()>,
    /// How long its socket may take nothing.
    patience: Duration,
}

impl ConnectionSlot {
    fn new(permit: OwnedSemaphorePermit, ending: &watch::Sender<()>, patience: Duration) -> Self {
        Self { _permit: Arc::new(permit), ending: ending.subscribe(), patience }
    }
}

async fn pause(error: &std::io::Error) {
    tracing::warn!(%error, "cannot accept a connection");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    via: Via,
    front: &Arc<impl Respond>,
    place: ConnectionSlot,
) {
    let front = front.clone();
    let (mut ending, patience) = (place.ending.clone(), place.patience);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        if request.headers().contains_key(UPGRADE) {
            request.extensions_mut().insert(place.clone());
        }
        // A request with a length and with chunks is read by its chunks, and hyper hides the length. Another reader in
        // front of the daemon may have gone by the length: what it took for the rest of the body must not be read as the
        // next request, so the connection ends with the answer (RFC 9112, section 6.1).
        let chunked = request.headers().contains_key(TRANSFER_ENCODING);
        let answered = front.clone().answer(via, request);
        async move {
            let mut answer = answered.await;
            if chunked {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(Patient::new(stream, patience)), service)
        .with_upgrades();
    tokio::spawn(SelfWaking::new(Box::pin(async move {
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = &mut connection => ended,
            _ = ending.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        // A broken connection is the client's end of the story: it detached.
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended early");
        }
    })));
}
