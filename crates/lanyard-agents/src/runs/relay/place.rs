//! The daemon's side: finding one, and reading its answer while the client still waits.

use super::RELAY_WAIT;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::asker::{Asker, Request};
use super::contacts::Contacts;
use super::heads::{self, AnswerHead, Body, Buffered, HEAD_BYTES_MAX, Step};
use crate::runs::process::now_ms;

/// How long a request waits for a daemon to come back. Shorter than the shortest time an agent gives a call (60 s).
const AWAY_WAIT_MS: u64 = 30_000;
/// Pauses between two looks for a daemon.
const LOOK_MIN_MS: u64 = 20;
const LOOK_MAX_MS: u64 = 250;
/// How often a stream without a daemon carries a comment, so that both ends notice a dead connection.
const KEEP_ALIVE_MS: u64 = 10_000;
const KEEP_ALIVE: &[u8] = b": \n\n";
/// Headers of a client that end here: the daemon has another name, and cookies of a browser are no agent's affair.
const NOT_FORWARDED: [&str; 3] = ["host", "cookie", "expect"];

/// Where requests come in and where they go.
#[derive(Debug)]
pub(super) struct RelayPlace {
    pub(super) socket: PathBuf,
    pub(super) address: SocketAddr,
    pub(super) contacts: Contacts,
    /// How long a request waits for a daemon.
    pub(super) wait_ms: u64,
}

/// The time a request waits for a daemon; tests cannot wait that long, and give their own.
pub(super) fn away_wait_ms() -> u64 {
    let given = std::env::var(RELAY_WAIT).ok().and_then(|value| value.parse().ok());
    given.unwrap_or(AWAY_WAIT_MS)
}

/// Why an exchange with the daemon came to no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// The client has closed its connection.
    Client,
    /// No daemon came back in time.
    Late,
    /// The daemon ended before it had read the whole request, so it did nothing with it.
    Unread,
    /// The daemon had read the request and ended before the whole answer was out.
    Read,
}

/// How long a daemon is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Ms(u64),
    /// As long as the client listens to the stream that was opened for it.
    Listening,
}

impl RelayPlace {
    /// A connection to the daemon, as soon as there is one.
    pub(super) fn connect(&self, asker: &mut Asker, patience: Patience) -> Result<UnixStream, Cut> {
        let begun = now_ms();
        let (mut pause, mut beat) = (LOOK_MIN_MS, begun);
        loop {
            if let Ok(stream) = UnixStream::connect(&self.socket) {
                return Ok(stream);
            }
            let now = now_ms();
            match patience {
                Patience::Ms(most) if now.saturating_sub(begun) >= most => return Err(Cut::Late),
                Patience::Listening if now.saturating_sub(beat) >= KEEP_ALIVE_MS => {
                    beat = now;
                    asker.chunk(KEEP_ALIVE)?;
                }
                Patience::Ms(_) | Patience::Listening => {}
            }
            pause_for(asker, pause)?;
            pause = (pause * 2).min(LOOK_MAX_MS);
        }
    }
}

/// Waits a little, unless the client goes.
pub(super) fn pause_for(asker: &Asker, ms: u64) -> Result<(), Cut> {
    let until = now_ms() + ms;
    loop {
        let left = until.saturating_sub(now_ms());
        if left == 0 {
            return Ok(());
        }
        let mut fds = [PollFd::from_borrowed_fd(asker.fd(), PollFlags::RDHUP)];
        watch(&mut fds, Some(left));
        if !fds[0].revents().is_empty() {
            return Err(Cut::Client);
        }
    }
}

/// A poll that failed is one without news: its caller looks again.
fn watch(fds: &mut [PollFd<'_>], wait_ms: Option<u64>) {
    let wait = wait_ms.and_then(|ms| Timespec::try_from(std::time::Duration::from_millis(ms)).ok());
    let _ = poll(fds, wait.as_ref());
}

/// A request that was given to the daemon.
#[derive(Debug)]
pub(super) struct Exchange {
    stream: Buffered<UnixStream>,
    /// The whole request is in the daemon's hands or on the way into them.
    sent: bool,
    /// Bytes at the front that were lent out.
    lent: usize,
}

impl Exchange {
    /// Sends a request. A daemon that takes no more of it may have answered already.
    pub(super) fn begin(mut stream: UnixStream, request: &Request, more: &[(&str, &str)]) -> Self {
        let mut head = format!("{} {} HTTP/1.1\r\n", request.head.method, request.head.target).into_bytes();
        let left_out: Vec<&str> =
            NOT_FORWARDED.into_iter().chain(more.iter().map(|(name, _)| *name)).collect();
        heads::write_header("host", b"localhost", &mut head);
        heads::write_header("connection", b"close", &mut head);
        if !matches!(request.head.method.as_str(), "GET" | "HEAD") || !request.body.is_empty() {
            heads::write_header("content-length", request.body.len().to_string().as_bytes(), &mut head);
        }
        request.head.headers.write_onward(&left_out, &mut head);
        for (name, value) in more {
            heads::write_header(name, value.as_bytes(), &mut head);
        }
        head.extend_from_slice(b"\r\n");
        let sent = stream.write_all(&head).and_then(|()| stream.write_all(&request.body)).is_ok();
        Self { stream: Buffered::new(stream), sent, lent: 0 }
    }

    /// The head of the answer.
    pub(super) fn head(&mut self, asker: &Asker) -> Result<AnswerHead, Cut> {
        loop {
            let read = heads::answer(self.stream.unused()).map_err(|_| Cut::Read)?;
            if let Some((head, end)) = read {
                self.stream.use_up(end);
                if head.status >= 200 {
                    return Ok(head);
                }
                continue;
            }
            if self.stream.unused().len() > HEAD_BYTES_MAX || !self.more(asker)? {
                return Err(if self.sent { Cut::Read } else { Cut::Unread });
            }
        }
    }

    /// The next bytes of the answer; none at its end.
    pub(super) fn piece(&mut self, body: &mut Body, asker: &Asker) -> Result<Option<&[u8]>, Cut> {
        self.stream.use_up(std::mem::take(&mut self.lent));
        loop {
            match body.step(self.stream.unused()).map_err(|_| Cut::Read)? {
                Step::Piece(bytes) => {
                    self.lent = bytes;
                    return Ok(self.stream.unused().get(..bytes));
                }
                Step::Skip(bytes) => self.stream.use_up(bytes),
                Step::Done => return Ok(None),
                Step::More if self.more(asker)? => {}
                Step::More if body.may_end() => return Ok(None),
                Step::More => return Err(Cut::Read),
            }
        }
    }

    /// Reads more, unless the client goes first. False at the end.
    fn more(&mut self, asker: &Asker) -> Result<bool, Cut> {
        loop {
            let daemon: BorrowedFd<'_> = self.stream.stream.as_fd();
            let mut fds = [
                PollFd::from_borrowed_fd(daemon, PollFlags::IN),
                PollFd::from_borrowed_fd(asker.fd(), PollFlags::RDHUP),
            ];
            watch(&mut fds, None);
            let (readable, gone) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
            if gone {
                return Err(Cut::Client);
            }
            if readable {
                break;
            }
        }
        match self.stream.fill() {
            Ok(more) => Ok(more),
            // The kernel says so when the other end was closed with bytes in it that nobody had read.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(Cut::Unread),
            Err(_) => Err(Cut::Read),
        }
    }
}
