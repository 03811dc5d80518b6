//! Lines of JSON on pipes: whole lines in, or all bytes cut at the ends of lines, and lines out. Stdin and stdout are read
//! and written by threads, so that a pipe that hangs keeps no program from ending.

use std::io::{BufRead, Read, Write};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{mpsc, oneshot};

/// The longest line that is looked at. Longer ones pass in parts, as they come.
const LINE_BYTES_MAX: usize = 32 << 20;
/// Bytes read at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Pieces of stdin read ahead.
const AHEAD_MAX: usize = 16;

/// How long the last lines may take to get out.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// A line that was read.
#[derive(Debug, PartialEq, Eq)]
pub enum LineRead {
    /// With its end; the last one of a stream may have none.
    Line(Vec<u8>),
    /// It has more bytes than are taken, and was left out.
    TooLong,
}

/// The next line that is not blank; `None` when there will be no more.
pub fn read_line(input: &mut impl BufRead, bytes_max: usize) -> Option<LineRead> {
    loop {
        let mut line = Vec::new();
        let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        let read = input.by_ref().take(limit).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return None;
        }
        if line.len() > bytes_max && !line.ends_with(b"\n") {
            // A stream that breaks within the line has no next one.
            return input.skip_until(b'\n').is_ok().then_some(LineRead::TooLong);
        }
        if !line.trim_ascii().is_empty() {
            return Some(LineRead::Line(line));
        }
    }
}

/// Lines of stdin, until its end. `ahead_max` lines are read ahead.
#[must_use]
pub fn stdin_lines(bytes_max: usize, ahead_max: usize) -> mpsc::Receiver<LineRead> {
    let (sender, receiver) = mpsc::channel(ahead_max);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        while let Some(line) = read_line(&mut stdin, bytes_max) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Bytes for stdout, and the report that they are out.
type Outgoing = (Vec<u8>, Option<oneshot::Sender<std::io::Result<()>>>);

/// Stdout, written to by a thread. A reader that is slow holds up only those who wait for it.
#[derive(Debug, Clone)]
pub struct StdoutLines(mpsc::Sender<Outgoing>);

/// Done when nothing more can be written: all is out, or the other end is closed.
pub type Written = oneshot::Receiver<()>;

impl StdoutLines {
    /// `waiting_max` lines may wait for the reader; then every writer waits.
    #[must_use]
    pub fn open(waiting_max: usize) -> (Self, Written) {
        let (sender, mut receiver) = mpsc::channel::<Outgoing>(waiting_max);
        let (finish, written) = oneshot::channel();
        std::thread::spawn(move || {
            let mut stdout = std::io::stdout().lock();
            while let Some((bytes, done)) = receiver.blocking_recv() {
                let result = stdout.write_all(&bytes).and_then(|()| stdout.flush());
                let broken = result.is_err();
                if let Some(done) = done {
                    let _ = done.send(result);
                }
                if broken {
                    break;
                }
            }
            // The program may not wait for this.
            let _ = finish.send(());
        });
        (Self(sender), written)
    }

    /// Waits for room. False when the other end is closed.
    pub async fn send(&self, line: Vec<u8>) -> bool {
        self.0.send((line, None)).await.is_ok()
    }

    /// Waits until the bytes are out.
    pub async fn write(&self, bytes: Vec<u8>) -> std::io::Result<()> {
        let closed = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let (done, written) = oneshot::channel();
        self.0.send((bytes, Some(done))).await.map_err(|_| closed())?;
        written.await.map_err(|_| closed())?
    }

    /// Waits, for a bounded time, until all is out. Every other clone must be gone by then.
    pub async fn close(self, written: Written) {
        drop(self);
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, written).await;
    }
}

/// What comes next of a stream. All pieces together are the stream, byte for byte.
#[derive(Debug, PartialEq, Eq)]
pub enum LinePiece {
    /// A whole line with its end; the last one may have none.
    Line(Vec<u8>),
    /// A part of a line that is too long to be looked at.
    Part(Vec<u8>),
}

impl LinePiece {
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Line(bytes) | Self::Part(bytes) => bytes,
        }
    }
}

/// Pieces of stdin. Read in a thread: a read that never returns must not keep the program from ending.
#[must_use]
pub fn stdin_pieces() -> mpsc::Receiver<LinePiece> {
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

/// Pieces of a pipe.
#[derive(Debug)]
pub struct PipeLines<R> {
    from: R,
    cutter: Cutter,
    chunk: Vec<u8>,
    ready: std::collections::VecDeque<LinePiece>,
    ended: bool,
}

impl<R: AsyncRead + Unpin> PipeLines<R> {
    #[must_use]
    pub fn of(from: R) -> Self {
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
    pub async fn next(&mut self) -> Option<LinePiece> {
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

#[derive(Debug)]
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

    fn cut(&mut self, bytes: &[u8]) -> Vec<LinePiece> {
        let mut pieces = Vec::new();
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let ends = part.ends_with(b"\n");
            if self.passing {
                pieces.push(LinePiece::Part(part.to_vec()));
                self.passing = !ends;
                continue;
            }
            self.held.extend_from_slice(part);
            if ends {
                pieces.push(LinePiece::Line(std::mem::take(&mut self.held)));
            } else if self.held.len() > self.max {
                pieces.push(LinePiece::Part(std::mem::take(&mut self.held)));
                self.passing = true;
            }
        }
        pieces
    }

    fn rest(&mut self) -> Vec<LinePiece> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { Vec::new() } else { vec![LinePiece::Line(held)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_one_by_one() {
        let mut input: &[u8] = b"one\n\n  \ntwo\nhalf";
        let line = |text: &str| Some(LineRead::Line(text.into()));
        assert_eq!(read_line(&mut input, 100), line("one\n"));
        assert_eq!(read_line(&mut input, 100), line("two\n"));
        assert_eq!(read_line(&mut input, 100), line("half"));
        assert_eq!(read_line(&mut input, 100), None);
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out_and_the_next_one_taken() {
        let mut input: &[u8] = b"12345678\n123456789\nnext\n";
        assert_eq!(read_line(&mut input, 8), Some(LineRead::Line(b"12345678\n".to_vec())));
        assert_eq!(read_line(&mut input, 8), Some(LineRead::TooLong));
        assert_eq!(read_line(&mut input, 8), Some(LineRead::Line(b"next\n".to_vec())));
    }

    #[test]
    fn a_stream_is_cut_at_its_newlines_and_nothing_is_lost() {
        let mut cutter = Cutter::new(8);
        let line = |text: &str| LinePiece::Line(text.into());
        let part = |text: &str| LinePiece::Part(text.into());
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
