//! The right of a request to go on. A stream may last for days, and its right may end before it: the token is revoked,
//! the browser signed out, the run over, the session deleted. Whatever ends a right rings one bell; every stream and
//! every long wait looks at its own right then, and at no other time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Body as HttpBody, Frame};
use lanyard_api::types::StreamFrame;
use lanyard_core::SessionId;
use tokio::sync::watch;

use crate::api::App;
use crate::api::guard::is_live;
use crate::auth::{Caller, StreamSlot};
use crate::problem::Problem;
use lanyard_engine::hub::control;

/// Why a right ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The token is revoked, or its run is over.
    Revoked,
    /// The session was deleted. Readers that are up with it get the event that says so.
    Deleted,
}

impl End {
    /// What a stream's last frame says.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Revoked => "token_revoked",
            Self::Deleted => "session_deleted",
        }
    }
}

/// One caller's right to one thing.
#[derive(Clone)]
pub(super) struct Right {
    app: Arc<App>,
    caller: Caller,
    target: Option<SessionId>,
    /// From before the right was looked at for the first time: what ended since then is not missed.
    endings: watch::Receiver<u64>,
}

impl Right {
    pub(super) fn new(app: &Arc<App>, caller: &Caller, target: Option<SessionId>) -> Self {
        let endings = app.tokens.endings();
        Self { app: app.clone(), caller: caller.clone(), target, endings }
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The same caller's right, whatever becomes of what it looks at.
    pub(super) fn of_caller(&self) -> Self {
        Self { target: None, ..self.clone() }
    }

    /// Comes back when the right has ended.
    pub(super) async fn ended(mut self) -> End {
        loop {
            if let Some(end) = self.end().await {
                return end;
            }
            // Nobody can end anything any more once the bell is gone.
            if self.endings.changed().await.is_err() {
                return End::Revoked;
            }
        }
    }

    async fn end(&self) -> Option<End> {
        let tokens = &self.app.tokens;
        // A journal that cannot be read says nothing against a run.
        if !tokens.knows(&self.caller) || !is_live(&self.app, &self.caller).await.unwrap_or(true) {
            return Some(End::Revoked);
        }
        self.target.filter(|target| tokens.live.is_gone(*target)).map(|_| End::Deleted)
    }

    /// A place among the streams of the caller's token.
    pub(super) fn slot(&self) -> Result<StreamSlot, Problem> {
        self.app.tokens.slot(&self.caller).ok_or_else(|| {
            Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "streams_too_many",
                "the token has too many streams open",
                "close some, or read the directory stream instead of one stream per session",
            )
        })
    }
}

impl std::fmt::Debug for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Right").field("caller", &self.caller).finish_non_exhaustive()
    }
}

/// Marks a response whose stream tells why it ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct SaysGoodbye;

/// Ends the body of a response that streams with the right to it; leaves every other one alone.
pub(super) fn bounded(response: Response, right: Right) -> Response {
    if !streams(&response) {
        return response;
    }
    let slot = match right.slot() {
        Ok(slot) => slot,
        Err(problem) => return axum::response::IntoResponse::into_response(problem),
    };
    let tells = response.extensions().get::<SaysGoodbye>().is_some();
    response.map(|body| {
        let watch = Watch { ended: Box::pin(right.ended()), end: None };
        Body::new(Bounded { body: Some(body), watch, tells, _slot: slot })
    })
}

/// Whether the body goes on for as long as the client stays.
pub(super) fn streams(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

fn goodbye(end: End) -> Bytes {
    control("goodbye", &StreamFrame::Goodbye { why: end.as_str().to_owned() })
}

/// Looks out for the end of a right.
struct Watch {
    ended: Pin<Box<dyn Future<Output = End> + Send>>,
    end: Option<End>,
}

impl Watch {
    fn poll(&mut self, cx: &mut Context<'_>) -> Option<End> {
        if self.end.is_none()
            && let Poll::Ready(end) = self.ended.as_mut().poll(cx)
        {
            self.end = Some(end);
        }
        self.end
    }

    /// The next piece of a stream under this right; `Err` when the right is over.
    fn next<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<Option<T>>,
    ) -> Result<Poll<Option<T>>, End> {
        match self.poll(cx) {
            None => Ok(poll(cx)),
            Some(End::Revoked) => Err(End::Revoked),
            Some(End::Deleted) => match poll(cx) {
                piece @ Poll::Ready(Some(_)) => Ok(piece),
                Poll::Ready(None) | Poll::Pending => Err(End::Deleted),
            },
        }
    }
}

/// A body for as long as its reader has a right to it.
struct Bounded {
    /// Nothing once it is over.
    body: Option<Body>,
    watch: Watch,
    /// Whether its last frame says why it ends.
    tells: bool,
    _slot: StreamSlot,
}

impl HttpBody for Bounded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, watch, tells, .. } = &mut *self;
        let Some(held) = body else { return Poll::Ready(None) };
        match watch.next(cx, |cx| Pin::new(held).poll_frame(cx)) {
            Ok(piece) => piece,
            Err(end) => {
                // Let go at once: what is behind it need not wait for this reader.
                *body = None;
                Poll::Ready(tells.then(|| Ok(Frame::data(goodbye(end)))))
            }
        }
    }
}

/// The frames of a WebSocket for as long as its reader has a right to them.
pub(super) struct Frames<S> {
    stream: Option<S>,
    watch: Watch,
    _slot: StreamSlot,
}

impl<S> Frames<S> {
    pub(super) fn new(stream: S, right: Right) -> Result<Self, Problem> {
        let slot = right.slot()?;
        let watch = Watch { ended: Box::pin(right.ended()), end: None };
        Ok(Self { stream: Some(stream), watch, _slot: slot })
    }
}

impl<S: Stream<Item = Bytes> + Unpin> Stream for Frames<S> {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Self { stream, watch, .. } = &mut *self;
        let Some(held) = stream else { return Poll::Ready(None) };
        match watch.next(cx, |cx| Pin::new(held).poll_next(cx)) {
            Ok(piece) => piece,
            Err(end) => {
                *stream = None;
                Poll::Ready(Some(goodbye(end)))
            }
        }
    }
}
