//! A response body that says its pieces in their own time, and notices a client that hangs up.

use std::collections::VecDeque;
use std::future::Future;
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};

use super::log::Pending;
use super::server::Shared;

/// Time for bytes already written to leave before the connection is reset under them.
const FLUSH: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) enum Piece {
    Bytes(Bytes),
    Pause(Duration),
    /// A pause until the test releases this script.
    Hold(String),
    /// The connection is reset.
    Reset,
}

/// The connection a body is written to, kept so that it can be broken on purpose.
#[derive(Debug, Clone)]
pub(super) struct Line(pub(super) Arc<TcpStream>);

impl Line {
    /// Makes the coming close a reset instead of an orderly end.
    pub(super) fn arm_reset(&self) {
        let _ = rustix::net::sockopt::set_socket_linger(&*self.0, Some(Duration::ZERO));
    }
}

pub(super) struct Paced {
    pieces: VecDeque<Piece>,
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    shared: Arc<Shared>,
    line: Line,
    /// Dropped before the last piece was taken, it says that the client hung up.
    pending: Pending,
}

impl Paced {
    pub(super) fn new(pieces: Vec<Piece>, shared: Arc<Shared>, line: Line, pending: Pending) -> Paced {
        let mut timed = VecDeque::new();
        for piece in pieces {
            if matches!(piece, Piece::Reset) {
                timed.push_back(Piece::Pause(FLUSH));
            }
            timed.push_back(piece);
        }
        Paced { pieces: timed, waiting: None, shared, line, pending }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the script breaks the connection here")]
pub(super) struct Broken;

impl Body for Paced {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                if waiting.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.waiting = None;
            }
            match self.pieces.pop_front() {
                None => {
                    self.pending.answered();
                    return Poll::Ready(None);
                }
                Some(Piece::Bytes(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                // sleep: the script says how long the answer pauses
                Some(Piece::Pause(pause)) => self.waiting = Some(Box::pin(tokio::time::sleep(pause))),
                Some(Piece::Hold(script)) => {
                    let shared = self.shared.clone();
                    self.waiting = Some(Box::pin(async move { shared.until_released(&script).await }));
                }
                Some(Piece::Reset) => {
                    self.line.arm_reset();
                    self.pending.broken();
                    return Poll::Ready(Some(Err(Broken)));
                }
            }
        }
    }
}
