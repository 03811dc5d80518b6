//! A stream cut into lines, without ever holding more than one line of bounded length.

use std::io::{Read, Write};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{mpsc, oneshot};

/// The longest line that is looked at. Longer ones pass in parts, as they come.
const LINE_BYTES_MAX: usize = 32 << 20;
/// Bytes read at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Pieces of stdin read ahead.
const AHEAD_MAX: usize = 16;

/// What comes next of a stream. All pieces together are the stream, byte for byte.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A whole line with its end; the last one may have none.
    Line(Vec<u8>),
    /// Of a line that is too long to be looked at.
    Part(Vec<u8>),
}

impl Piece {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Line(bytes) | Self::Part(bytes) => bytes,
        }
    }
}

/// Pieces of stdin. Read in a thread: a read that never returns must not keep the program from ending.
pub(super) fn stdin() -> mpsc::Receiver<Piece> {
    let (sender, receiver) = mpsc::channel(AHEAD_MAX);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut cutter = Cutter::new(LINE_BYTES_MAX);
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut ended = false;
        while !ended {
            let pieces = match stdin.read(&mut chunk) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => {
                    ended = true;
                    cutter.rest()
                }
                Ok(read) => cutter.cut(&chunk[..read]),
            };
            for piece in pieces {
                if sender.blocking_send(piece).is_err() {
                    return;
                }
            }
        }
    });
    receiver
}

/// The client's end, written to by both directions. A thread writes, so that a client that does not read holds up
/// nobody but who waits for it.
#[derive(Debug, Clone)]
pub(super) struct Output(mpsc::Sender<(Vec<u8>, oneshot::Sender<std::io::Result<()>>)>);

impl Output {
    pub(super) fn open() -> Self {
        let (sender, mut receiver) = mpsc::channel::<(Vec<u8>, oneshot::Sender<_>)>(AHEAD_MAX);
        std::thread::spawn(move || {
            let mut stdout = std::io::stdout().lock();
            while let Some((bytes, done)) = receiver.blocking_recv() {
                let _ = done.send(stdout.write_all(&bytes).and_then(|()| stdout.flush()));
            }
        });
        Self(sender)
    }

    /// Done when the bytes are out.
    pub(super) async fn write(&self, bytes: Vec<u8>) -> std::io::Result<()> {
        let closed = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let (done, written) = oneshot::channel();
        self.0.send((bytes, done)).await.map_err(|_| closed())?;
        written.await.map_err(|_| closed())?
    }
}

/// Pieces of a pipe.
pub(super) struct Lines<R> {
    from: R,
    cutter: Cutter,
    chunk: Vec<u8>,
    ready: std::collections::VecDeque<Piece>,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn of(from: R) -> Self {
        let cutter = Cutter::new(LINE_BYTES_MAX);
        Self {
            from,
            cutter,
            chunk: vec![0; CHUNK_BYTES],
            ready: std::collections::VecDeque::new(),
            ended: false,
        }
    }

    /// Nothing at the end, and when the pipe breaks.
    pub(super) async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            if self.ended {
                return None;
            }
            match self.from.read(&mut self.chunk).await {
                Ok(0) | Err(_) => {
                    self.ended = true;
                    self.ready.extend(self.cutter.rest());
                }
                Ok(read) => self.ready.extend(self.cutter.cut(&self.chunk[..read])),
            }
        }
    }
}

struct Cutter {
    held: Vec<u8>,
    /// In the middle of a line that is too long.
    passing: bool,
    max: usize,
}

impl Cutter {
    fn new(max: usize) -> Self {
        Self { held: Vec::new(), passing: false, max }
    }

    fn cut(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let ends = part.ends_with(b"\n");
            if self.passing {
                pieces.push(Piece::Part(part.to_vec()));
                self.passing = !ends;
                continue;
            }
            self.held.extend_from_slice(part);
            if ends {
                pieces.push(Piece::Line(std::mem::take(&mut self.held)));
            } else if self.held.len() > self.max {
                pieces.push(Piece::Part(std::mem::take(&mut self.held)));
                self.passing = true;
            }
        }
        pieces
    }

    fn rest(&mut self) -> Vec<Piece> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { Vec::new() } else { vec![Piece::Line(held)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_cut_at_its_newlines_and_nothing_is_lost() {
        let mut cutter = Cutter::new(8);
        let line = |text: &str| Piece::Line(text.into());
        let part = |text: &str| Piece::Part(text.into());
        assert_eq!(cutter.cut(b"a\n\nb"), [line("a\n"), line("\n")]);
        assert_eq!(cutter.cut(b"c\r\n"), [line("bc\r\n")]);
        assert_eq!(cutter.cut(b"123456789"), [part("123456789")]);
        assert_eq!(cutter.cut(b"still"), [part("still")]);
        assert_eq!(cutter.cut(b"!\nnext\n"), [part("!\n"), line("next\n")]);
        assert_eq!(cutter.cut(b"last"), []);
        assert_eq!(cutter.rest(), [line("last")]);
        assert_eq!(cutter.rest(), []);
    }
}
