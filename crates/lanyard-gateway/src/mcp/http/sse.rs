//! Event streams, frame by frame. A frame that holds no answer anybody waits for keeps its bytes.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use lanyard_api::annotate;
use tokio::sync::{mpsc, watch};

use crate::http_endpoint::Lent;
use crate::http_endpoint::Trouble;
use crate::mcp::envelope::Said;
use crate::mcp::mcp_session::McpSession;
use crate::mcp::rpc::Piece;
use crate::mcp::server::{ANSWER_BYTES_MAX, Server};
use crate::mcp::work::Work;
use lanyard_agents::runs::relay::PAUSED;

/// Frames that wait for a client that reads slowly; then the server waits.
pub(super) const FRAMES_MAX: usize = 16;

/// Relays the stream that answers a request.
pub(super) async fn relay(
    mut body: Lent,
    mut work: Work,
    pieces: mpsc::Sender<Piece>,
    server: Arc<Server>,
    mut closing: watch::Receiver<bool>,
) {
    let patience = server.timeout;
    let mut frames = Frames::default();
    let mut answered = false;
    loop {
        let frame = tokio::select! {
            frame = frames.next(&mut body) => frame,
            () = pieces.closed() => return,
            () = crate::mcp::closed(&mut closing) => {
                // A client that hears nothing would wait for its answer to the end of its patience.
                if !answered {
                    let _ = pieces.send(work.failed(&server.failed(&Trouble::Closing)).await.into_frame()).await;
                }
                return;
            }
            () = tokio::time::sleep(patience), if !answered => {
                let late = format!("no word from the server for {} ms", patience.as_millis());
                let _ = pieces.send(work.failed(&late).await.into_frame()).await;
                return;
            }
        };
        let piece = match frame {
            Some(frame) if !answered && !work.is_idle() => {
                match answer_in(&frame, |said| said.answers(&work.id)) {
                    Some(data) => {
                        answered = true;
                        again(frame, &data, work.finish(data.clone()).await)
                    }
                    None => frame.into(),
                }
            }
            Some(frame) => frame.into(),
            None => break,
        };
        if pieces.send(piece).await.is_err() {
            return;
        }
    }
    if !answered
        && !work.is_idle()
        && let Some(mcp_session) = work.mcp_session.clone()
    {
        // The server means to go on with it on a stream the client asks for.
        mcp_session.park(work.id.clone(), work);
    }
}

/// Relays what belongs to no request, and answers to requests whose own stream has ended.
pub(super) async fn listen(
    mut body: Lent,
    mcp_session: Option<Arc<McpSession>>,
    pieces: mpsc::Sender<Piece>,
    mut closing: watch::Receiver<bool>,
) {
    let mut frames = Frames::default();
    loop {
        let frame = tokio::select! {
            frame = frames.next(&mut body) => frame,
            () = pieces.closed() => return,
            () = crate::mcp::closed(&mut closing) => {
                let _ = pieces.send(Piece::from(Bytes::from_static(PAUSED))).await;
                return;
            }
        };
        let Some(frame) = frame else { return };
        let piece = match &mcp_session {
            Some(mcp_session) => late(frame, mcp_session).await,
            None => frame.into(),
        };
        if pieces.send(piece).await.is_err() {
            return;
        }
    }
}

async fn late(frame: Bytes, mcp_session: &Arc<McpSession>) -> Piece {
    let Some(data) = answer_in(&frame, |said| said.method.is_none()) else { return frame.into() };
    let work = mcp_session.unpark(|id| Said::read(&data).is_some_and(|said| said.answers(id)));
    let piece = match work {
        Some(mut work) => work.finish(data.clone()).await,
        None => annotate::defused(data.clone()).into(),
    };
    again(frame, &data, piece)
}

/// The message in a frame, if it is the one that is looked for.
fn answer_in(frame: &Bytes, is_it: impl Fn(&Said<'_>) -> bool) -> Option<Bytes> {
    let data = data_of(frame)?;
    Said::read(&data).filter(|said| is_it(said))?;
    Some(data)
}

/// The frame with another message in it; the same frame when it is the same message.
fn again(frame: Bytes, before: &Bytes, piece: Piece) -> Piece {
    if piece.parcel.is_none() && piece.bytes == *before {
        return frame.into();
    }
    let mut out = BytesMut::with_capacity(piece.bytes.len() + frame.len());
    for line in lines(&frame).filter(|line| !line.is_empty() && !line.starts_with(b"data")) {
        out.extend_from_slice(line);
        out.extend_from_slice(b"\n");
    }
    for line in piece.bytes.split(|byte| *byte == b'\n') {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.extend_from_slice(b"\n");
    }
    out.extend_from_slice(b"\n");
    Piece { bytes: out.freeze(), parcel: piece.parcel }
}

fn lines(frame: &[u8]) -> impl Iterator<Item = &[u8]> {
    frame.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// What the `data` lines of a frame add up to.
pub(super) fn data_of(frame: &Bytes) -> Option<Bytes> {
    let values = lines(frame).filter_map(|line| {
        let value = line.strip_prefix(b"data:")?;
        Some(value.strip_prefix(b" ").unwrap_or(value))
    });
    let values: Vec<&[u8]> = values.collect();
    match values.as_slice() {
        [] => None,
        [only] => Some(frame.slice_ref(only)),
        _ => Some(values.join(&b'\n').into()),
    }
}

/// The last message of a whole stream.
pub(super) fn last_message(stream: &Bytes) -> Option<String> {
    let mut frames = Frames { held: BytesMut::from(&stream[..]), searched: 0, ended: true };
    let mut last = None;
    while let Some(end) = frames.end() {
        frames.searched = 0;
        let frame = frames.held.split_to(end).freeze();
        last = data_of(&frame).or(last);
    }
    String::from_utf8(last?.to_vec()).ok()
}

/// Cuts a body into frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    held: BytesMut,
    /// Bytes of `held` in which no end was found.
    searched: usize,
    ended: bool,
}

impl Frames {
    /// The next frame with the blank line that ends it; what is left when the body ends is a frame too.
    pub(super) async fn next(&mut self, body: &mut Lent) -> Option<Bytes> {
        loop {
            if let Some(end) = self.end() {
                self.searched = 0;
                return Some(self.held.split_to(end).freeze());
            }
            if self.ended {
                return (!self.held.is_empty()).then(|| self.held.split().freeze());
            }
            match body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.held.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => {
                    tracing::debug!(%error, "an MCP server's stream broke off");
                    self.ended = true;
                }
                None => self.ended = true,
            }
            if self.held.len() > ANSWER_BYTES_MAX {
                tracing::warn!(
                    max = ANSWER_BYTES_MAX,
                    "an MCP server's event is too large; its stream is ended"
                );
                self.held.clear();
                self.ended = true;
            }
        }
    }

    /// After the first blank line.
    fn end(&mut self) -> Option<usize> {
        let from = self.searched.saturating_sub(3);
        let mut at = from;
        while let Some(found) = memchr::memchr(b'\n', self.held.get(at..)?) {
            let newline = at + found;
            let next = newline + 1;
            if self.held.get(next) == Some(&b'\n') {
                return Some(next + 1);
            }
            if self.held.get(next..next + 2) == Some(b"\r\n") {
                return Some(next + 2);
            }
            at = next;
        }
        self.searched = self.held.len();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        let mut frames = Frames::default();
        let mut out = Vec::new();
        // One byte at a time: ends fall anywhere.
        for byte in text.bytes() {
            frames.held.extend_from_slice(&[byte]);
            while let Some(end) = frames.end() {
                frames.searched = 0;
                out.push(String::from_utf8(frames.held.split_to(end).to_vec()).unwrap());
            }
        }
        out.push(String::from_utf8(frames.held.to_vec()).unwrap());
        out
    }

    #[test]
    fn frames_end_at_a_blank_line_of_either_kind() {
        assert_eq!(cut("data: a\n\ndata: b\r\n\r\nid: 1\n"), ["data: a\n\n", "data: b\r\n\r\n", "id: 1\n"]);
        assert_eq!(cut(": hello\n\n"), [": hello\n\n", ""]);
    }

    #[test]
    fn a_changed_message_keeps_the_frames_other_fields() {
        let frame = Bytes::from_static(
            b"id: 7\r\nevent: message\r\ndata: {\"id\":1,\r\ndata: \"result\":{}}\r\n\r\n",
        );
        let data = data_of(&frame).unwrap();
        assert_eq!(&data[..], b"{\"id\":1,\n\"result\":{}}");
        assert_eq!(again(frame.clone(), &data, data.clone().into()).bytes, frame);
        let other = again(frame, &data, Bytes::from_static(b"{}").into());
        assert_eq!(&other.bytes[..], b"id: 7\nevent: message\ndata: {}\n\n");
    }
}
