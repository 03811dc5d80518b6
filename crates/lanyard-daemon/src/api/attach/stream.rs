//! One attached client's stream: who it is, where it stands, and until when it may stay.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Body, Frame};
use lanyard_api::types::{AttachMode, PresentConnection, StreamFrame};
use lanyard_core::SessionId;

use lanyard_engine::hub::{EventReader, control};
use lanyard_engine::presence::PresenceGuard;

/// Frames in the form of server-sent events: `connected`, the log, `goodbye`.
pub(super) struct Attached {
    reader: EventReader,
    /// Present for as long as this is kept.
    seat: PresenceGuard,
    guest: PresentConnection,
    mode: AttachMode,
    first: Option<Bytes>,
    over: bool,
}

impl Attached {
    pub(super) fn new(
        reader: EventReader,
        seat: PresenceGuard,
        guest: PresentConnection,
        mode: AttachMode,
        first: Bytes,
    ) -> Self {
        let attached = Self { reader, seat, guest, mode, first: Some(first), over: false };
        let Shown { session, connection, client, channel, actor, mode } = attached.shown();
        tracing::info!(%session, %connection, client, channel, actor, mode, "attached");
        attached
    }

    fn shown(&self) -> Shown<'_> {
        Shown {
            session: self.seat.session(),
            connection: self.guest.connection,
            client: self.guest.client.as_deref().unwrap_or("-"),
            channel: self.guest.channel.as_deref().unwrap_or("-"),
            actor: &self.guest.actor.name,
            mode: self.mode.as_str(),
        }
    }

    fn goodbye(&mut self, why: &str) -> Bytes {
        self.over = true;
        control("goodbye", &StreamFrame::Goodbye { why: why.to_owned() })
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if self.over {
            return Poll::Ready(None);
        }
        let Poll::Ready(piece) = self.reader.poll_piece(cx) else { return Poll::Pending };
        Poll::Ready(Some(match piece {
            Some(Ok(piece)) => piece,
            Some(Err(error)) => {
                tracing::warn!(session = %self.seat.session(), %error, "an attached stream ends: the journal cannot be read");
                self.goodbye("storage_unavailable")
            }
            None => self.goodbye("closing"),
        }))
    }
}

/// What the log says of a connection.
struct Shown<'a> {
    session: SessionId,
    connection: lanyard_core::ConnectionId,
    client: &'a str,
    channel: &'a str,
    actor: &'a str,
    mode: &'static str,
}

impl Drop for Attached {
    fn drop(&mut self) {
        let Shown { session, connection, client, channel, actor, mode } = self.shown();
        tracing::info!(%session, %connection, client, channel, actor, mode, "detached");
    }
}

impl Stream for Attached {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.poll_piece(cx)
    }
}

impl Body for Attached {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.poll_piece(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
