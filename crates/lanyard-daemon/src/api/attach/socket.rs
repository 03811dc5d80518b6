//! A stream over a WebSocket: the frames of the event stream, each as one text message, and what the client sends.
//! Reading never waits for writing: a client that takes nothing can still say what it wants, and the other way round.

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, Stream, StreamExt};
use lanyard_api::types::{StreamAsk, StreamFrame};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_tungstenite::tungstenite;

use crate::api::attach::asks::{Desk, Fault};
use crate::api::attach::{Offered, PROTOCOL};
use crate::problem::Problem;
use crate::server::ConnectionSlot;

/// Largest frame of a client. A larger one is refused; one twice as large ends the connection.
pub(super) const FRAME_BYTES_MAX: usize = 1 << 20;
/// Bytes read at once, and gathered before they are written. What an idle connection costs.
const READ_BYTES: usize = 4 * 1024;
const WRITE_BYTES: usize = 16 * 1024;
/// Frames beside the stream that may wait to be written.
const OUTBOX_MAX: usize = 32;
/// Frames in a row that are not understood before the connection is ended.
const ERRORS_MAX: u32 = 8;
/// How long a connection that is being ended has to take its last words.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// How a client wants its stream.
pub(in crate::api) enum Upgrade {
    Events,
    Socket(Box<WebSocketUpgrade>),
}

/// A WebSocket for one that asks for an upgrade, else server-sent events.
pub(in crate::api) fn upgrade(headers: &HeaderMap, offered: Offered) -> Result<Upgrade, Problem> {
    if !headers.contains_key(header::UPGRADE) {
        return Ok(Upgrade::Events);
    }
    let upgrade = offered.map_err(|rejection| {
        Problem::bad_request(
            "upgrade_invalid",
            format!("the request for a WebSocket does not fit: {}", rejection.body_text()),
            "use a WebSocket client (version 13), or leave `Upgrade` out for server-sent events",
        )
    })?;
    let upgrade = upgrade
        .protocols([PROTOCOL])
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(WRITE_BYTES)
        .max_frame_size(2 * FRAME_BYTES_MAX)
        .max_message_size(2 * FRAME_BYTES_MAX);
    Ok(Upgrade::Socket(Box::new(upgrade)))
}

/// The first byte of a piece that is one binary frame. No piece of an event stream begins with it.
const BINARY: u8 = 0;

/// A piece that is sent as one binary frame.
pub(in crate::api) fn binary(data: &[u8]) -> Bytes {
    [&[BINARY], data].concat().into()
}

/// Serves the stream until it or the client ends.
pub(in crate::api) fn serve(
    upgrade: WebSocketUpgrade,
    stream: impl Stream<Item = Bytes> + Send + Unpin + 'static,
    desk: Option<Desk>,
    place: Option<ConnectionSlot>,
) -> Response {
    upgrade.on_upgrade(move |socket| async move {
        attend(socket, stream, desk).await;
        // Counted as a connection, and waited for when the daemon ends.
        drop(place);
    })
}

/// Something to write beside the stream.
pub(super) enum Out {
    Frame(Bytes),
    /// The place of a request in flight is given back when its answer is written.
    Reply(Bytes, OwnedSemaphorePermit),
    Close(u16, &'static str),
}

async fn attend(socket: WebSocket, stream: impl Stream<Item = Bytes> + Unpin, desk: Option<Desk>) {
    let (sink, source) = socket.split();
    let (outbox, out) = mpsc::channel(OUTBOX_MAX);
    let mut writing = std::pin::pin!(write(sink, stream, out));
    let mut reading = std::pin::pin!(read(source, desk, outbox.clone()));
    tokio::select! {
        sent = &mut writing => if sent.is_ok() {
            // The client answers the end; cutting it off could take its last frames away.
            let _ = tokio::time::timeout(CLOSE_WAIT, reading).await;
        },
        (code, reason) = &mut reading => {
            let close = async { tokio::join!(outbox.send(Out::Close(code, reason)), writing) };
            let _ = tokio::time::timeout(CLOSE_WAIT, close).await;
        }
    }
}

type Sink = SplitSink<WebSocket, Message>;

async fn write(
    mut sink: Sink,
    mut stream: impl Stream<Item = Bytes> + Unpin,
    mut out: mpsc::Receiver<Out>,
) -> Result<(), axum::Error> {
    loop {
        tokio::select! {
            biased;
            Some(out) = out.recv() => match out {
                Out::Frame(frame) => sink.send(text(frame)).await?,
                Out::Reply(frame, place) => {
                    sink.send(text(frame)).await?;
                    drop(place);
                }
                Out::Close(code, reason) => return close(&mut sink, code, reason).await,
            },
            piece = stream.next() => match piece {
                Some(piece) if piece.first() == Some(&BINARY) => {
                    sink.send(Message::Binary(piece.slice(1..))).await?;
                }
                Some(piece) => {
                    for data in Datas(piece) {
                        sink.feed(text(data)).await?;
                    }
                    sink.flush().await?;
                }
                None => return close(&mut sink, close_code::AWAY, "the stream has ended").await,
            },
        }
    }
}

async fn close(sink: &mut Sink, code: u16, reason: &'static str) -> Result<(), axum::Error> {
    sink.send(Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) }))).await
}

fn text(data: Bytes) -> Message {
    match Utf8Bytes::try_from(data) {
        Ok(text) => Message::Text(text),
        // Everything that is sent was made as JSON.
        Err(_) => Message::Text(Utf8Bytes::from_static("{}")),
    }
}

/// Takes what the client sends until it goes, or is to go for this reason.
async fn read(
    mut source: SplitStream<WebSocket>,
    desk: Option<Desk>,
    outbox: mpsc::Sender<Out>,
) -> (u16, &'static str) {
    let mut errors = 0;
    loop {
        let fault = match source.next().await {
            None | Some(Ok(Message::Close(_))) => return (close_code::NORMAL, ""),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Binary(_))) => Fault::not_text(),
            Some(Ok(Message::Text(frame))) => match take(&frame, desk.as_ref(), &outbox) {
                Ok(()) => {
                    errors = 0;
                    continue;
                }
                Err(fault) => fault,
            },
            Some(Err(error)) => return broken(error, &outbox),
        };
        if fault.is_haste() {
            // It was understood. One that asks faster than it takes answers waits here.
            if outbox.send(Out::Frame(fault.frame())).await.is_err() {
                return (close_code::NORMAL, "");
            }
            continue;
        }
        errors += 1;
        // One that does not even take what it is told is not waited for.
        if outbox.try_send(Out::Frame(fault.frame())).is_err() || errors >= ERRORS_MAX {
            return (close_code::POLICY, "too many frames that were not understood");
        }
    }
}

/// One frame of the client.
fn take(frame: &str, desk: Option<&Desk>, outbox: &mpsc::Sender<Out>) -> Result<(), Fault> {
    if frame.len() > FRAME_BYTES_MAX {
        return Err(Fault::too_large());
    }
    let ask: StreamAsk = serde_json::from_str(frame).map_err(|error| Fault::not_read(&error))?;
    match (ask.kind.as_deref(), desk) {
        (Some("ping"), _) if ask.operation.is_none() => {
            // A client that asks faster than it listens gets fewer answers.
            let _ = outbox.try_send(Out::Frame(HEARTBEAT));
            Ok(())
        }
        (Some(_), _) => Err(Fault::unknown_type(ask.reference)),
        (None, Some(desk)) => desk.take(ask, outbox),
        (None, None) => Err(Fault::nothing_to_do(ask.reference)),
    }
}

/// What the connection is ended with after an error of the protocol.
fn broken(error: axum::Error, outbox: &mpsc::Sender<Out>) -> (u16, &'static str) {
    let error = error.into_inner();
    match error.downcast_ref::<tungstenite::Error>() {
        Some(tungstenite::Error::Capacity(_)) => {
            let _ = outbox.try_send(Out::Frame(Fault::too_large().frame()));
            (close_code::SIZE, "the frame is too large")
        }
        Some(tungstenite::Error::Utf8(_)) => (close_code::INVALID, "the frame is not UTF-8"),
        _ => (close_code::PROTOCOL, "the frame breaks the protocol"),
    }
}

const HEARTBEAT: Bytes = Bytes::from_static(br#"{"type":"heartbeat"}"#);

/// The data of each frame of an event stream, sharing its bytes; a comment is a heartbeat.
struct Datas(Bytes);

impl Iterator for Datas {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        const DATA: &[u8] = b"data: ";
        loop {
            let end = memchr::memchr(b'\n', &self.0)?;
            let mut line = self.0.split_to(end + 1);
            line.truncate(end);
            if line.starts_with(DATA) {
                return Some(line.slice(DATA.len()..));
            }
            if line.starts_with(b":") {
                return Some(HEARTBEAT);
            }
        }
    }
}

/// For a frame made elsewhere.
pub(super) fn json(frame: &StreamFrame) -> Bytes {
    serde_json::to_vec(frame).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_a_piece_are_its_frames() {
        let piece = Bytes::from_static(
            b"id: 7\ndata: {\"seq\":7,\"t\":\"\xc3\xb6 id: 9\"}\n\nevent: preview\ndata: {}\n\n:\n\nid: 8\ndata: 8\n\n",
        );
        let datas: Vec<Bytes> = Datas(piece).collect();
        assert_eq!(datas[0], "{\"seq\":7,\"t\":\"ö id: 9\"}".as_bytes());
        assert_eq!(datas[1], "{}");
        assert_eq!(datas[2], HEARTBEAT);
        assert_eq!(datas[3], "8");
        assert_eq!(datas.len(), 4);
    }
}
