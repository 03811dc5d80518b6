//! The daemon's end of the socket, as the shim sees it: requests in, messages out, both bounded.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::runs::wire::{self, INPUT_MAX, KEY_MAX, LINE_MAX, Message, Request};

/// Unread answers after which no more requests are taken.
const UNREAD_MAX: usize = 64 * 1024;
/// How long the last words may take to be heard.
const FAREWELL: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A request, and the bytes that came with it.
pub(super) struct Frame {
    pub(super) request: Request,
    pub(super) body: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Client {
    stream: UnixStream,
    frames: Frames,
    unread: Vec<u8>,
    /// The length of the spool it was told.
    told: u64,
}

impl Client {
    pub(super) fn new(stream: UnixStream, told: u64) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, frames: Frames::default(), unread: Vec::new(), told })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub(super) fn interest(&self) -> PollFlags {
        let mut flags = PollFlags::empty();
        if self.unread.len() < UNREAD_MAX {
            flags |= PollFlags::IN;
        }
        if !self.unread.is_empty() {
            flags |= PollFlags::OUT;
        }
        flags
    }

    /// What it asks for now. An error means it is gone or speaks nonsense.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Vec<Frame>> {
        match self.stream.read(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => self.frames.feed(&buffer[..read]),
            Err(error) if is_later(&error) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn say(&mut self, message: &Message) -> io::Result<()> {
        self.unread.extend_from_slice(&wire::line(message)?);
        self.flush()
    }

    /// One message however much was written since, and none while the last is unread.
    pub(super) fn tell_output(&mut self, len: u64) -> io::Result<()> {
        if len == self.told || !self.unread.is_empty() {
            return Ok(());
        }
        self.told = len;
        self.say(&Message::Output { to: len })
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        while !self.unread.is_empty() {
            match self.stream.write(&self.unread) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.unread.drain(..written)),
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Says the last words and waits a moment for them to be taken.
    pub(super) fn farewell(mut self, message: &Message) -> io::Result<()> {
        self.say(message)?;
        while !self.unread.is_empty() {
            let mut fds = [PollFd::new(&self.stream, PollFlags::OUT)];
            if poll(&mut fds, Some(&FAREWELL))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.flush()?;
        }
        Ok(())
    }
}

pub(super) fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Bytes as they arrive, cut into requests.
#[derive(Debug, Default)]
struct Frames {
    line: Vec<u8>,
    /// A request whose bytes are on their way.
    open: Option<(Request, usize, Vec<u8>)>,
}

impl Frames {
    fn feed(&mut self, mut bytes: &[u8]) -> io::Result<Vec<Frame>> {
        let mut done = Vec::new();
        loop {
            if let Some((request, len, mut body)) = self.open.take() {
                let take = (len - body.len()).min(bytes.len());
                body.extend_from_slice(&bytes[..take]);
                bytes = &bytes[take..];
                if body.len() < len {
                    self.open = Some((request, len, body));
                    return Ok(done);
                }
                done.push(Frame { request, body });
                continue;
            }
            let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
                self.line.extend_from_slice(bytes);
                if self.line.len() > LINE_MAX {
                    return Err(nonsense("a line is too long"));
                }
                return Ok(done);
            };
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.open = Some(begin(&line)?);
        }
    }
}

fn begin(line: &[u8]) -> io::Result<(Request, usize, Vec<u8>)> {
    let request: Request = serde_json::from_slice(line).map_err(|_| nonsense("a line is no request"))?;
    let len = match &request {
        Request::Send { key, len, .. } if *len > INPUT_MAX || key.len() > KEY_MAX => {
            return Err(nonsense("an input is too long"));
        }
        Request::Send { len, .. } => *len,
        Request::Resize { key, .. } if key.len() > KEY_MAX => return Err(nonsense("a key is too long")),
        Request::CloseInput { .. }
        | Request::Resize { .. }
        | Request::End { .. }
        | Request::Status { .. }
        | Request::Consumed { .. } => 0,
    };
    Ok((request, len, Vec::new()))
}

fn nonsense(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_cut_the_same_way_however_they_arrive() {
        let mut wire = Vec::new();
        for (id, body) in [(1, "a\nb"), (2, ""), (3, "xyz")] {
            wire.extend(wire::line(&Request::Send { id, key: "k".into(), len: body.len() }).unwrap());
            wire.extend_from_slice(body.as_bytes());
        }
        wire.extend(wire::line(&Request::Consumed { to: 9 }).unwrap());
        for step in 1..wire.len() {
            let mut frames = Frames::default();
            let mut seen = Vec::new();
            for piece in wire.chunks(step) {
                seen.extend(frames.feed(piece).unwrap());
            }
            let bodies: Vec<&[u8]> = seen.iter().map(|frame| frame.body.as_slice()).collect();
            assert_eq!(bodies, [b"a\nb".as_slice(), b"", b"xyz", b""], "in pieces of {step}");
        }
    }

    #[test]
    fn nonsense_and_giants_are_refused() {
        let huge = format!("{{\"op\":\"send\",\"id\":1,\"key\":\"k\",\"len\":{}}}\n", INPUT_MAX + 1);
        for text in ["\n", "{}\n", "{\"op\":\"dance\"}\n", huge.as_str(), &"x".repeat(LINE_MAX + 1)] {
            assert!(Frames::default().feed(text.as_bytes()).is_err(), "{text:.40}");
        }
    }
}
