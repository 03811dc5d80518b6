//! HTTP/1.1 as far as a relay needs it: heads, and where a body ends.

use std::io::{self, Read};

/// Largest head of a request or an answer.
pub(super) const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Most headers in one head.
const HEADERS_MAX: usize = 96;
/// Largest line in front of a chunk.
const CHUNK_HEAD_MAX: usize = 256;

/// Bytes that are no HTTP/1.1, or that two readers could understand differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Headers,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AnswerHead {
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) headers: Headers,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Headers(Vec<(String, Vec<u8>)>);

/// Headers that belong to one connection. A body's length is written anew for the other one.
const HOP_BY_HOP: [&str; 10] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Headers {
    fn of(parsed: &[httparse::Header<'_>]) -> Self {
        let owned = parsed.iter().map(|header| (header.name.to_ascii_lowercase(), header.value.to_vec()));
        Self(owned.collect())
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(held, _)| held == name)?;
        std::str::from_utf8(value).ok()
    }

    /// The value of a header that must not occur twice.
    pub(super) fn only(&self, name: &str) -> Result<Option<&str>, Malformed> {
        let mut values = self.0.iter().filter(|(held, _)| held == name);
        let Some((_, value)) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(Malformed("a header occurs twice that may occur once"));
        }
        std::str::from_utf8(value).map(Some).map_err(|_| Malformed("a header is no text"))
    }

    pub(super) fn says(&self, name: &str, word: &str) -> bool {
        let values = self.0.iter().filter(|(held, _)| held == name);
        let mut words = values.filter_map(|(_, value)| std::str::from_utf8(value).ok());
        words.any(|value| value.split(',').any(|one| one.trim().eq_ignore_ascii_case(word)))
    }

    /// Appends what the other side may see, as lines.
    pub(super) fn write_onward(&self, left_out: &[&str], out: &mut Vec<u8>) {
        for (name, value) in &self.0 {
            let held_back = HOP_BY_HOP.contains(&name.as_str())
                || left_out.contains(&name.as_str())
                || self.says("connection", name);
            if !held_back {
                write_header(name, value, out);
            }
        }
    }

    /// How long the body is. A message that says it in two ways is refused.
    fn length(&self) -> Result<Option<Length>, Malformed> {
        let coding = self.only("transfer-encoding")?;
        let length = self.only("content-length")?;
        match (coding, length) {
            (None, None) => Ok(None),
            (Some(coding), None) if coding.eq_ignore_ascii_case("chunked") => Ok(Some(Length::Chunked)),
            (None, Some(digits)) if !digits.is_empty() && digits.bytes().all(|one| one.is_ascii_digit()) => {
                let length = digits.parse().map_err(|_| Malformed("the body is too long"))?;
                Ok(Some(Length::Bytes(length)))
            }
            (Some(_), _) | (None, Some(_)) => Err(Malformed("the length of the body is unclear")),
        }
    }
}

pub(super) fn write_header(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Bytes(u64),
    Chunked,
    /// With the connection.
    Open,
}

/// The head at the front of `bytes` and its length; none while it is not whole.
pub(super) fn request(bytes: &[u8]) -> Result<Option<(RequestHead, usize)>, Malformed> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let end = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Malformed("the head is no HTTP/1.1")),
    };
    if parsed.version != Some(1) {
        return Err(Malformed("only HTTP/1.1 is spoken here"));
    }
    let head = RequestHead {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        headers: Headers::of(parsed.headers),
    };
    Ok(Some((head, end)))
}

pub(super) fn answer(bytes: &[u8]) -> Result<Option<(AnswerHead, usize)>, Malformed> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let end = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Malformed("the head is no HTTP/1.1")),
    };
    let head = AnswerHead {
        status: parsed.code.unwrap_or_default(),
        reason: parsed.reason.unwrap_or_default().to_owned(),
        headers: Headers::of(parsed.headers),
    };
    Ok(Some((head, end)))
}

impl RequestHead {
    /// A request without a length has no body.
    pub(super) fn length(&self) -> Result<Length, Malformed> {
        Ok(self.headers.length()?.unwrap_or(Length::Bytes(0)))
    }
}

impl AnswerHead {
    pub(super) fn length(&self) -> Result<Length, Malformed> {
        if matches!(self.status, 100..200 | 204 | 304) {
            return Ok(Length::Bytes(0));
        }
        Ok(self.headers.length()?.unwrap_or(Length::Open))
    }

    pub(super) fn is_event_stream(&self) -> bool {
        let kind = self.headers.text("content-type").unwrap_or_default();
        kind.get(..17).is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"))
    }
}

/// A stream with the bytes that were read from it and not used yet.
#[derive(Debug)]
pub(super) struct Buffered<S> {
    pub(super) stream: S,
    held: Vec<u8>,
    at: usize,
}

impl<S: Read> Buffered<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, held: Vec::new(), at: 0 }
    }

    pub(super) fn unused(&self) -> &[u8] {
        self.held.get(self.at..).unwrap_or_default()
    }

    pub(super) fn use_up(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.held.len());
        if self.at == self.held.len() {
            self.held.clear();
            self.at = 0;
        }
    }

    /// Reads more. False at the end of the stream.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        self.held.drain(..self.at);
        self.at = 0;
        let before = self.held.len();
        self.held.resize(before + HEAD_BYTES_MAX / 2, 0);
        let read = loop {
            match self.stream.read(&mut self.held[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.held.truncate(before + read.as_ref().map_or(0, |read| *read));
        read.map(|read| read > 0)
    }
}

/// Where in a body a reader stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Bytes(u64),
    ChunkHead,
    Chunk(u64),
    ChunkEnd,
    Trailer,
    Open,
    Done,
}

/// What the next bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Content.
    Piece(usize),
    /// What frames it.
    Skip(usize),
    More,
    Done,
}

impl Body {
    pub(super) fn new(length: Length) -> Self {
        match length {
            Length::Bytes(length) => Self::Bytes(length),
            Length::Chunked => Self::ChunkHead,
            Length::Open => Self::Open,
        }
    }

    /// Whether the end of the connection is the end of the body.
    pub(super) fn may_end(self) -> bool {
        matches!(self, Self::Open | Self::Done | Self::Bytes(0))
    }

    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<Step, Malformed> {
        match *self {
            Self::Done | Self::Bytes(0) => Ok(Step::Done),
            _ if bytes.is_empty() => Ok(Step::More),
            Self::Open => Ok(Step::Piece(bytes.len())),
            Self::Bytes(left) => {
                let take = take(left, bytes);
                *self = Self::Bytes(left - take as u64);
                Ok(Step::Piece(take))
            }
            Self::Chunk(left) => {
                let take = take(left, bytes);
                let left = left - take as u64;
                *self = if left == 0 { Self::ChunkEnd } else { Self::Chunk(left) };
                Ok(Step::Piece(take))
            }
            Self::ChunkHead => self.chunk_head(bytes),
            Self::ChunkEnd => match bytes {
                [b'\r', b'\n', ..] => {
                    *self = Self::ChunkHead;
                    Ok(Step::Skip(2))
                }
                [b'\r'] => Ok(Step::More),
                _ => Err(Malformed("a chunk does not end where it should")),
            },
            Self::Trailer => self.trailer(bytes),
        }
    }

    fn chunk_head(&mut self, bytes: &[u8]) -> Result<Step, Malformed> {
        match httparse::parse_chunk_size(bytes) {
            Ok(httparse::Status::Complete((used, size))) => {
                *self = if size == 0 { Self::Trailer } else { Self::Chunk(size) };
                Ok(Step::Skip(used))
            }
            Ok(httparse::Status::Partial) if bytes.len() <= CHUNK_HEAD_MAX => Ok(Step::More),
            Ok(httparse::Status::Partial) | Err(_) => Err(Malformed("a chunk has no size")),
        }
    }

    /// Lines after the last chunk; an empty one is the end.
    fn trailer(&mut self, bytes: &[u8]) -> Result<Step, Malformed> {
        match bytes.windows(2).position(|two| two == b"\r\n") {
            Some(0) => {
                *self = Self::Done;
                Ok(Step::Skip(2))
            }
            Some(end) => Ok(Step::Skip(end + 2)),
            None if bytes.len() <= HEAD_BYTES_MAX => Ok(Step::More),
            None => Err(Malformed("the trailer is too long")),
        }
    }
}

fn take(left: u64, bytes: &[u8]) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len())
}
