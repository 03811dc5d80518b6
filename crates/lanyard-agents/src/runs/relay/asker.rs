//! The agent's side of one connection: requests in, answers out, both bounded.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use lanyard_api::annotate::json;
use lanyard_api::names::DAEMON_AWAY;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::heads::{self, AnswerHead, Body, Buffered, HEAD_BYTES_MAX, Length, Malformed, RequestHead, Step};
use super::place::Cut;
use crate::runs::process::now_ms;

/// Largest body of a request; the gateway takes no larger message.
const BODY_BYTES_MAX: usize = 16 << 20;
/// Time for the head of a request, and for its body.
const HEAD_WAIT_MS: u64 = 10_000;
const BODY_WAIT_MS: u64 = 60_000;
/// How long, and how much, is read of a request that was refused.
const LINGER_MS: u64 = 1_000;
const LINGER_BYTES_MAX: usize = 1 << 20;
/// How long a client may take nothing of its answer.
const STALLED: Duration = Duration::from_mins(1);

/// A whole request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) head: RequestHead,
    pub(super) body: Vec<u8>,
}

/// An answer of the relay's own: status, code, what happened, what to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RelayRefusal {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) title: String,
    pub(super) advice: String,
}

impl RelayRefusal {
    fn new(status: u16, code: &'static str, title: &str, advice: &str) -> Self {
        Self { status, code, title: title.to_owned(), advice: advice.to_owned() }
    }

    /// No daemon has answered.
    pub(super) fn away(title: &str) -> Self {
        Self::new(503, DAEMON_AWAY, title, "start it with `lanyard up`, then repeat the request")
    }

    fn text(&self) -> String {
        let Self { status, code, title, advice } = self;
        let [title, advice] = [title, advice].map(|text| json::quoted(text));
        format!(
            r#"{{"type":"about:blank","status":{status},"code":"{code}","title":{title},"advice":{advice}}}"#
        )
    }
}

impl From<Malformed> for RelayRefusal {
    fn from(Malformed(what): Malformed) -> Self {
        Self::new(400, "bad_request", what, "send one plain HTTP/1.1 request")
    }
}

#[derive(Debug)]
pub(super) struct Asker {
    stream: Buffered<TcpStream>,
    /// Names the relay answers to.
    hosts: [String; 2],
    /// The connection has carried a request that the daemon did not refuse.
    is_known: bool,
    keeps: bool,
}

impl Asker {
    pub(super) fn new(stream: TcpStream, address: SocketAddr) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(STALLED))?;
        let hosts = [address.to_string(), format!("localhost:{}", address.port())];
        Ok(Self { stream: Buffered::new(stream), hosts, is_known: false, keeps: true })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.stream.as_fd()
    }

    /// Whether another request may follow.
    pub(super) fn keeps(&self) -> bool {
        self.keeps
    }

    /// The next request; none when the client is done.
    pub(super) fn next(&mut self) -> Result<Option<Request>, RelayRefusal> {
        // A client that the daemon knows may keep its connection idle; a stranger may not.
        let idle = if self.is_known { None } else { Some(now_ms() + HEAD_WAIT_MS) };
        if self.stream.unused().is_empty() && !self.fill(idle)? {
            return Ok(None);
        }
        let until = Some(now_ms() + HEAD_WAIT_MS);
        let head = loop {
            let read = heads::request(self.stream.unused())?;
            let bytes = read.as_ref().map_or(self.stream.unused().len(), |(_, end)| *end);
            if bytes > HEAD_BYTES_MAX {
                return Err(RelayRefusal::new(
                    431,
                    "head_too_large",
                    "the request's head is too large",
                    "send less",
                ));
            }
            if let Some((head, end)) = read {
                self.stream.use_up(end);
                break head;
            }
            if !self.fill(until)? {
                return Ok(None);
            }
        };
        self.check(&head)?;
        let Some(body) = self.body(&head)? else { return Ok(None) };
        self.keeps = !head.headers.says("connection", "close");
        Ok(Some(Request { head, body }))
    }

    /// Only an agent's own requests pass: its MCP servers and the API that its hooks use.
    fn check(&self, head: &RequestHead) -> Result<(), RelayRefusal> {
        let host = head.headers.only("host")?.unwrap_or_default();
        if !self.hosts.iter().any(|own| own == host) {
            let title = format!("this relay does not answer to the host `{host}`");
            let advice = format!("use http://{}", self.hosts[0]);
            return Err(RelayRefusal { status: 421, code: "host_not_allowed", title, advice });
        }
        if !["/mcp/", "/api/v1/"].iter().any(|prefix| head.target.starts_with(prefix)) {
            let advice = "use /mcp/SESSION/SERVER; open pages at the daemon's own address";
            return Err(RelayRefusal::new(404, "not_relayed", "the relay has no such address", advice));
        }
        if !matches!(head.method.as_str(), "GET" | "POST" | "PUT" | "PATCH" | "DELETE") {
            return Err(RelayRefusal::new(
                405,
                "method_not_allowed",
                "the relay forwards no such method",
                "use POST",
            ));
        }
        Ok(())
    }

    /// None when the client goes in the middle of it.
    fn body(&mut self, head: &RequestHead) -> Result<Option<Vec<u8>>, RelayRefusal> {
        let length = head.length()?;
        let large =
            || RelayRefusal::new(413, "body_too_large", "the message is larger than 16 MiB", "send less");
        if matches!(length, Length::Bytes(bytes) if bytes > BODY_BYTES_MAX as u64) {
            return Err(large());
        }
        if head.headers.says("expect", "100-continue")
            && length != Length::Bytes(0)
            && self.stream.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_err()
        {
            return Ok(None);
        }
        let until = Some(now_ms() + BODY_WAIT_MS);
        let mut at = Body::new(length);
        let mut body = Vec::new();
        loop {
            match at.step(self.stream.unused())? {
                Step::Piece(bytes) => {
                    if body.len() + bytes > BODY_BYTES_MAX {
                        return Err(large());
                    }
                    body.extend_from_slice(&self.stream.unused()[..bytes]);
                    self.stream.use_up(bytes);
                }
                Step::Skip(bytes) => self.stream.use_up(bytes),
                Step::Done => return Ok(Some(body)),
                Step::More => {
                    if !self.fill(until)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Waits for more bytes. False when the client is done.
    fn fill(&mut self, until: Option<u64>) -> Result<bool, RelayRefusal> {
        loop {
            let left = until.map(|until| until.saturating_sub(now_ms()));
            if left == Some(0) {
                let title = "the request did not arrive in time";
                return Err(RelayRefusal::new(408, "request_too_slow", title, "send it again"));
            }
            let wait = left.and_then(|ms| Timespec::try_from(Duration::from_millis(ms)).ok());
            let mut fds = [PollFd::from_borrowed_fd(self.fd(), PollFlags::IN)];
            if poll(&mut fds, wait.as_ref()).is_ok_and(|ready| ready > 0) {
                return Ok(self.stream.fill().unwrap_or(false));
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Cut> {
        self.stream.stream.write_all(bytes).map_err(|_| Cut::Client)
    }

    /// Begins an answer of the daemon: with a length, or in chunks.
    pub(super) fn begin(&mut self, head: &AnswerHead, length: Option<u64>) -> Result<(), Cut> {
        self.is_known |= head.status < 400;
        // A stranger keeps no connection.
        self.keeps &= self.is_known;
        let mut out = format!("HTTP/1.1 {} {}\r\n", head.status, head.reason).into_bytes();
        head.headers.write_onward(&[], &mut out);
        if !matches!(head.status, 204 | 304) {
            match length {
                Some(length) => {
                    heads::write_header("content-length", length.to_string().as_bytes(), &mut out);
                }
                None => heads::write_header("transfer-encoding", b"chunked", &mut out),
            }
        }
        if !self.keeps {
            heads::write_header("connection", b"close", &mut out);
        }
        out.extend_from_slice(b"\r\n");
        self.write(&out)
    }

    /// Bytes of an answer that was begun with a length.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Cut> {
        self.write(bytes)
    }

    /// A piece of an answer that was begun in chunks.
    pub(super) fn chunk(&mut self, bytes: &[u8]) -> Result<(), Cut> {
        if bytes.is_empty() {
            return Ok(());
        }
        let head = format!("{:x}\r\n", bytes.len());
        self.write(head.as_bytes())?;
        self.write(bytes)?;
        self.write(b"\r\n")
    }

    pub(super) fn last_chunk(&mut self) -> Result<(), Cut> {
        self.write(b"0\r\n\r\n")
    }

    /// An answer of the relay's own.
    pub(super) fn answer(&mut self, status: &str, kind: &str, body: &str) -> Result<(), Cut> {
        let close = if self.keeps { "" } else { "connection: close\r\n" };
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{close}\r\n");
        self.write(head.as_bytes())?;
        self.write(body.as_bytes())
    }

    /// Takes what the client still sends, for a moment: a connection that is closed with unread bytes loses the answer.
    pub(super) fn linger(&mut self) {
        let until = Some(now_ms() + LINGER_MS);
        let mut left = LINGER_BYTES_MAX;
        let _ = self.stream.stream.shutdown(Shutdown::Write);
        while left > 0 && matches!(self.fill(until), Ok(true)) {
            let bytes = self.stream.unused().len();
            self.stream.use_up(bytes);
            left = left.saturating_sub(bytes);
        }
    }

    pub(super) fn refuse(&mut self, refusal: &RelayRefusal) -> Result<(), Cut> {
        // What the client would send next may be the rest of what was refused.
        self.keeps = false;
        let reason = match refusal.status {
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            413 => "Content Too Large",
            421 => "Misdirected Request",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Bad Request",
        };
        let status = format!("{} {reason}", refusal.status);
        self.answer(&status, "application/problem+json", &refusal.text())
    }
}
