//! The smallest HTTP/1.1 client that will do: keep-alive, one request at a time per connection, bodies with a length.
//! It is written out so that what the client costs is small and the same for everyone.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::process::Daemon;
use crate::ready::Ready;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a request is sent with.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    host: String,
    token: String,
}

impl Caller {
    pub(crate) fn of(daemon: &Daemon) -> Self {
        Self { host: daemon.address.to_string(), token: daemon.token.clone() }
    }

    pub(crate) fn on_socket(token: String) -> Self {
        Self { host: "lanyard".to_owned(), token }
    }

    pub(crate) fn get(&self, path: &str) -> Vec<u8> {
        self.head("GET", path, "").into_bytes()
    }

    pub(crate) fn stream(&self, path: &str) -> Vec<u8> {
        self.head("GET", path, "accept: text/event-stream\r\n").into_bytes()
    }

    pub(crate) fn post(&self, path: &str, key: Option<&str>, body: &str) -> Vec<u8> {
        let key = key.map(|key| format!("idempotency-key: {key}\r\n")).unwrap_or_default();
        let length = body.len();
        let more = format!("{key}content-type: application/json\r\ncontent-length: {length}\r\n");
        self.head("POST", path, &more).into_bytes().into_iter().chain(body.bytes()).collect()
    }

    /// A page beside the API.
    pub(crate) fn get_plain(&self, path: &str) -> Vec<u8> {
        self.line("GET", path, "").into_bytes()
    }

    fn head(&self, method: &str, path: &str, more: &str) -> String {
        self.line(method, &format!("/api/v1{path}"), more)
    }

    fn line(&self, method: &str, path: &str, more: &str) -> String {
        let Self { host, token } = self;
        format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n{more}\r\n")
    }
}

/// A connection that asks and waits.
#[derive(Debug)]
pub(crate) struct Client<S> {
    stream: S,
    answer: Answer,
}

impl Client<TcpStream> {
    pub(crate) fn connect(daemon: &Daemon) -> Result<Self> {
        let stream = TcpStream::connect(daemon.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, answer: Answer::default() })
    }
}

impl Client<UnixStream> {
    pub(crate) fn on_socket(path: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, answer: Answer::default() })
    }
}

impl<S: Read + Write> Client<S> {
    /// The body of the answer, which must be a good one.
    pub(crate) fn ask(&mut self, request: &[u8]) -> Result<Vec<u8>> {
        self.stream.write_all(request)?;
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = self.stream.read(&mut buffer)?;
            ensure!(count > 0, "the connection was closed before its answer was complete");
            if let Some(body) = self.answer.take(&buffer[..count])? {
                return Ok(body);
            }
        }
    }
}

/// An answer while it arrives.
#[derive(Debug, Default)]
struct Answer(Vec<u8>);

impl Answer {
    /// Adds what arrived; the body when it is complete. An answer that is not a good one is an error.
    fn take(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
        self.0.extend_from_slice(bytes);
        let Some(head) = self.0.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let text = std::str::from_utf8(&self.0[..head]).context("the answer's head is no text")?;
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.context("the answer has no length")?.parse()?;
        let end = head + 4 + length;
        if self.0.len() < end {
            return Ok(None);
        }
        let good = text.starts_with("HTTP/1.1 2");
        let body = self.0[head + 4..end].to_vec();
        if !good {
            let status = text.lines().next().unwrap_or_default();
            bail!("answered `{status}`: {}", String::from_utf8_lossy(&body));
        }
        self.0.drain(..end);
        Ok(Some(body))
    }
}

/// What a closed loop saw.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) per_second: f64,
    pub(crate) millis: Vec<f64>,
}

/// Keeps one request in flight on each of so many connections until there are no more requests.
pub(crate) fn closed_loop(
    daemon: &Daemon,
    connections: usize,
    requests: impl IntoIterator<Item = Vec<u8>>,
) -> Result<Load> {
    let mut requests = requests.into_iter();
    let mut ready = Ready::new()?;
    let mut lines = Vec::with_capacity(connections);
    for number in 0..connections {
        let stream = connect(daemon.address)?;
        ready.add(&stream, number)?;
        lines.push((stream, Answer::default(), Instant::now()));
    }
    let began = Instant::now();
    let mut in_flight = 0_usize;
    for (stream, _, sent) in &mut lines {
        let Some(request) = requests.next() else { break };
        *sent = Instant::now();
        stream.write_all(&request)?;
        in_flight += 1;
    }
    let mut millis = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while in_flight > 0 {
        let numbers = ready.wait(PATIENCE)?;
        ensure!(!numbers.is_empty(), "no answer for {PATIENCE:?}");
        for number in numbers {
            let (stream, answer, sent) = lines.get_mut(number).context("an unknown connection")?;
            let count = match stream.read(&mut buffer) {
                Ok(0) => bail!("the daemon closed a connection"),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            if answer.take(&buffer[..count])?.is_none() {
                continue;
            }
            millis.push(sent.elapsed().as_secs_f64() * 1e3);
            match requests.next() {
                Some(request) => {
                    *sent = Instant::now();
                    stream.write_all(&request)?;
                }
                None => in_flight -= 1,
            }
        }
    }
    Ok(Load { per_second: millis.len() as f64 / began.elapsed().as_secs_f64(), millis })
}

/// A connection that does not wait.
fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Posts signals to one session without waiting for the answers, which are looked at later.
#[derive(Debug)]
pub(crate) struct Posts {
    address: SocketAddr,
    caller: Caller,
    path: String,
    connections: usize,
    lines: Vec<(TcpStream, Answer)>,
    next: usize,
    pub(crate) unanswered: usize,
}

impl Posts {
    pub(crate) fn to(daemon: &Daemon, session: &str, connections: usize) -> Self {
        let path = format!("/sessions/{session}/signals");
        let (address, caller) = (daemon.address, Caller::of(daemon));
        Self { address, caller, path, connections, lines: Vec::new(), next: 0, unanswered: 0 }
    }

    /// Connects anew: a daemon does not keep connections for ever that ask nothing.
    pub(crate) fn connect(&mut self) -> Result<()> {
        while self.unanswered > 0 {
            self.settle()?;
        }
        self.lines.clear();
        for _ in 0..self.connections {
            self.lines.push((connect(self.address)?, Answer::default()));
        }
        Ok(())
    }

    pub(crate) fn said(&mut self, text: &str) -> Result<()> {
        let body = format!("{{\"type\":\"said\",\"role\":\"agent\",\"text\":\"{text}\"}}");
        let request = self.caller.post(&self.path, None, &body);
        let at = self.next % self.lines.len();
        let (stream, _) = &mut self.lines[at];
        stream.write_all(&request)?;
        self.next += 1;
        self.unanswered += 1;
        Ok(())
    }

    /// Reads the answers that have come.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let mut buffer = [0; 16 * 1024];
        for (stream, answer) in &mut self.lines {
            match stream.read(&mut buffer) {
                Ok(0) => bail!("the daemon closed a publisher's connection"),
                Ok(count) => {
                    let mut done = answer.take(&buffer[..count])?;
                    while done.is_some() {
                        self.unanswered -= 1;
                        done = if answer.0.is_empty() { None } else { answer.take(&[])? };
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
