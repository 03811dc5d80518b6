//! Connections: TCP on loopback and a Unix socket in the data folder, both speaking HTTP/1.1 to the same front.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, oneshot};

use crate::api::{Front, Via};

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

/// Serves until `closing` says so, then lets open requests finish.
pub(crate) async fn serve(
    tcp: TcpListener,
    socket: UnixListener,
    front: Arc<Front>,
    mut closing: oneshot::Receiver<()>,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { break };
        tokio::select! {
            accepted = tcp.accept() => match accepted {
                Ok((stream, _)) => {
                    // Events are small and must not wait for each other.
                    let _ = stream.set_nodelay(true);
                    connection(stream, Via::Tcp, &front, &graceful, place);
                }
                Err(error) => pause(&error).await,
            },
            accepted = socket.accept() => match accepted {
                Ok((stream, _)) => connection(stream, Via::Socket, &front, &graceful, place),
                Err(error) => pause(&error).await,
            },
            _ = &mut closing => break,
        }
    }
    drop((tcp, socket));
    if tokio::time::timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!("some connections did not end in time and were cut");
    }
}

async fn pause(error: &std::io::Error) {
    tracing::warn!(%error, "cannot accept a connection");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    via: Via,
    front: &Arc<Front>,
    graceful: &GracefulShutdown,
    place: tokio::sync::OwnedSemaphorePermit,
) {
    let front = front.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let answered = front.clone().answer(via, request);
        async move { Ok::<_, std::convert::Infallible>(answered.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        // A broken connection is the client's end of the story: it detached.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection ended early");
        }
        drop(place);
    });
}
