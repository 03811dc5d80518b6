//! Answers in JSON-RPC, and bodies that know whether they got out.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use lanyard_api::annotate::json;
use lanyard_core::NoteId;
use tokio::sync::mpsc;

use crate::intercept::Bound;

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
/// The server behind the gateway failed.
pub(super) const SERVER_FAILED: i64 = -32000;
/// The connection's id is not known.
pub(super) const SESSION_UNKNOWN: i64 = -32001;

pub(super) const SSE: &str = "text/event-stream";
const JSON: &str = "application/json";

/// The text of an answer; `id` and `result` are JSON.
pub(super) fn result_text(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

pub(super) fn error_text(id: &str, code: i64, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{}}}}}"#, json::quoted(message))
}

/// A JSON-RPC error with an HTTP status of its own.
pub(super) fn error(status: StatusCode, id: &str, code: i64, message: &str) -> Response {
    let mut response = json_response(Body::from(error_text(id, code, message)));
    *response.status_mut() = status;
    response
}

pub(super) fn json_response(body: Body) -> Response {
    typed(body, JSON)
}

pub(super) fn typed(body: Body, kind: &'static str) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if kind == SSE {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    response
}

pub(super) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Words that travel in an answer. Dropped before the answer got out, they go again (at least once).
#[derive(Debug)]
pub(super) struct Parcel {
    bound: Bound,
    notes: Vec<NoteId>,
}

impl Parcel {
    pub(super) fn new(bound: Bound, notes: Vec<NoteId>) -> Option<Self> {
        (!notes.is_empty()).then_some(Self { bound, notes })
    }

    fn arrived(mut self) {
        self.notes.clear();
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        if self.notes.is_empty() {
            return;
        }
        let (bound, notes) = (self.bound.clone(), std::mem::take(&mut self.notes));
        // Without a runtime the daemon is ending, and what was not acknowledged goes again at its next start.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { bound.unsent(&notes).await });
        }
    }
}

/// Bytes for the client, with what they carry.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    pub(super) parcel: Option<Parcel>,
}

impl From<Bytes> for Piece {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, parcel: None }
    }
}

impl Piece {
    fn hand_over(self) -> Frame<Bytes> {
        if let Some(parcel) = self.parcel {
            parcel.arrived();
        }
        Frame::data(self.bytes)
    }

    /// As the whole body of an answer.
    pub(super) fn into_body(self) -> Body {
        match self.parcel {
            None => Body::from(self.bytes),
            Some(_) => Body::new(Carried(Some(self))),
        }
    }

    /// As one frame of an event stream.
    pub(super) fn into_frame(self) -> Self {
        let mut frame = Vec::with_capacity(self.bytes.len() + 24);
        frame.extend_from_slice(b"event: message\n");
        for line in self.bytes.split(|byte| *byte == b'\n') {
            frame.extend_from_slice(b"data: ");
            frame.extend_from_slice(line);
            frame.push(b'\n');
        }
        frame.push(b'\n');
        Self { bytes: frame.into(), parcel: self.parcel }
    }
}

/// A whole answer that carries words.
struct Carried(Option<Piece>);

impl HttpBody for Carried {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|piece| Ok(piece.hand_over())))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |piece| piece.bytes.len() as u64))
    }
}

/// Pieces as they come, to the client. Whoever holds the other end learns from it when the client has gone.
pub(super) struct Pieces(mpsc::Receiver<Piece>);

impl Pieces {
    pub(super) fn body(pieces: mpsc::Receiver<Piece>) -> Body {
        Body::new(Self(pieces))
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(piece.hand_over())))
    }
}
