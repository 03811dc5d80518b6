//! Server-sent events: bytes in pieces of any size in, whole frames out.

use std::collections::VecDeque;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;

/// The daemon writes to every stream at least every fifteen seconds; one that is silent for longer is broken.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(45);

/// What one blank line ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseFrame {
    pub id: Option<String>,
    pub data: String,
}

/// Frames as they arrive.
#[derive(Debug)]
pub struct EventStream {
    body: Incoming,
    parser: Parser,
    ready: VecDeque<SseFrame>,
}

impl EventStream {
    #[must_use]
    pub fn new(body: Incoming) -> Self {
        Self { body, parser: Parser::default(), ready: VecDeque::new() }
    }

    /// Drops the frames that have arrived.
    pub fn skip_ready(&mut self) {
        self.ready.clear();
    }

    /// The next frame; `None` when the stream ended, broke or fell silent, which for a reader is the same.
    pub async fn next(&mut self) -> Option<SseFrame> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            let piece = tokio::time::timeout(SILENCE_MAX, self.body.frame()).await.ok()??.ok()?;
            if let Ok(bytes) = piece.into_data() {
                self.ready.extend(self.parser.feed(&bytes));
            }
        }
    }
}

/// Keeps what is not a whole line yet, and the lines that are not a whole frame yet.
#[derive(Debug, Default)]
struct Parser {
    rest: Vec<u8>,
    frame: SseFrame,
    has_data: bool,
}

impl Parser {
    fn feed(&mut self, bytes: &[u8]) -> Vec<SseFrame> {
        let mut frames = Vec::new();
        self.rest.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(length) = self.rest[start..].iter().position(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(&self.rest[start..start + length]).into_owned();
            start += length + 1;
            frames.extend(self.line(line.strip_suffix('\r').unwrap_or(&line)));
        }
        self.rest.drain(..start);
        frames
    }

    fn line(&mut self, line: &str) -> Option<SseFrame> {
        if line.is_empty() {
            let frame = std::mem::take(&mut self.frame);
            return std::mem::take(&mut self.has_data).then_some(frame);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.frame.id = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.frame.data.push('\n');
                }
                self.frame.data.push_str(value);
                self.has_data = true;
            }
            // A comment (heartbeat), or a field this reader has no use for.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ": heartbeat\n\nid: 7\ndata: {\"seq\":7,\"text\":\"größe 漢\"}\n\nid:8\r\ndata: one\r\ndata: two\r\n\r\n";

    fn frames() -> Vec<SseFrame> {
        vec![
            SseFrame { id: Some("7".into()), data: "{\"seq\":7,\"text\":\"größe 漢\"}".into() },
            SseFrame { id: Some("8".into()), data: "one\ntwo".into() },
        ]
    }

    #[test]
    fn frames_are_the_same_wherever_the_bytes_are_split() {
        for at in 0..=TEXT.len() {
            let (left, right) = TEXT.as_bytes().split_at(at);
            let mut parser = Parser::default();
            let mut seen = parser.feed(left);
            seen.extend(parser.feed(right));
            assert_eq!(seen, frames(), "split at {at}");
        }
    }

    #[test]
    fn frames_arrive_byte_by_byte() {
        let mut parser = Parser::default();
        let seen: Vec<SseFrame> = TEXT.bytes().flat_map(|byte| parser.feed(&[byte])).collect();
        assert_eq!(seen, frames());
    }

    #[test]
    fn a_frame_that_was_cut_off_is_not_given_out() {
        assert_eq!(Parser::default().feed(b"id: 1\ndata: half"), []);
        assert_eq!(Parser::default().feed(b"id: 1\ndata: half\n"), []);
    }

    #[test]
    fn comments_and_frames_without_data_are_no_events() {
        assert_eq!(Parser::default().feed(b": hello\n\nid: 5\n\nevent: ping\n\n"), []);
    }
}
