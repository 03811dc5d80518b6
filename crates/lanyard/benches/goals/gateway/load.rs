//! Callers of one MCP server: each sends `tools/call` over and over on a connection of its own, and waits for the answer.
//! One thread for all of them, so that what the callers cost is small and the same for every server.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::answer::Answer;
use crate::ready::Ready;
use crate::report::quantile;
use crate::{machine, progress};

/// The address of the echo server.
pub(crate) const PATH: &str = "/mcp";
/// What callers say they speak.
pub(crate) const PROTOCOL: &str = "2025-11-25";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Calls before the clock runs, each caller.
const WARM_CALLS: u32 = 20;
/// Bytes of the argument.
const ARGUMENT: usize = 200;
/// The argument ends with it, and so does every good answer.
const MARK: &str = "~the-end~";
/// All ids have as many digits, so that they can be written into a ready request.
const FIRST_ID: u32 = 100_000_000;
/// Ids of one caller: none is used twice where callers share a session.
const IDS_EACH: u32 = 10_000_000;

/// A server as its callers reach it.
pub(crate) struct Target {
    name: String,
    address: SocketAddr,
    pid: u32,
    callers: Vec<Caller>,
}

/// Where one caller goes, and as whom.
pub(crate) struct Way {
    pub(crate) path: String,
    /// Lines of the request's head.
    pub(crate) headers: String,
}

struct Caller {
    stream: TcpStream,
    answer: Answer,
    request: Vec<u8>,
    /// Where the id's digits stand in the request.
    at: usize,
    id: u32,
    sent: Instant,
}

/// What the callers saw, and what it cost the process they called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) cpu_us: f64,
}

impl Seen {
    /// The median of each figure.
    pub(crate) fn median(seen: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| quantile(&seen.iter().map(figure).collect::<Vec<_>>(), 0.5);
        Self {
            per_second: of(|seen| seen.per_second),
            p50_us: of(|seen| seen.p50_us),
            p99_us: of(|seen| seen.p99_us),
            cpu_us: of(|seen| seen.cpu_us),
        }
    }
}

impl Target {
    /// Connects a caller for each way and has it introduce itself. `pid` is the process whose CPU counts.
    pub(crate) fn join(name: &str, address: SocketAddr, pid: u32, ways: &[Way]) -> Result<Self> {
        let mut callers = Vec::new();
        for (number, way) in (0..).zip(ways) {
            let caller = Caller::join(address, way, FIRST_ID + number * IDS_EACH);
            callers.push(caller.with_context(|| format!("{name}, caller {number}"))?);
        }
        progress(&format!("{name}: {} callers", callers.len()));
        Ok(Self { name: name.to_owned(), address, pid, callers })
    }

    /// So many of the callers call for so long.
    pub(crate) fn call(&mut self, callers: usize, span: Duration) -> Result<Seen> {
        let Self { name, address, pid, callers: all } = self;
        let callers = all.get_mut(..callers).context("not so many callers")?;
        drive(*address, *pid, callers, span).with_context(|| format!("calling {name}"))
    }
}

fn drive(address: SocketAddr, pid: u32, callers: &mut [Caller], span: Duration) -> Result<Seen> {
    let mut ready = Ready::new()?;
    for (number, caller) in callers.iter_mut().enumerate() {
        // Some servers close a connection that was not used for a few seconds.
        caller.stream = connect(address)?;
        ready.add(&caller.stream, number)?;
    }
    let warm = WARM_CALLS * u32::try_from(callers.len())?;
    let (mut began, mut cpu, mut warmed) = (Instant::now(), Duration::ZERO, 0);
    for caller in &mut *callers {
        caller.send()?;
    }
    let (mut in_flight, mut micros) = (callers.len(), Vec::new());
    while in_flight > 0 {
        let numbers = ready.wait(PATIENCE)?;
        ensure!(!numbers.is_empty(), "no answer for {PATIENCE:?}");
        for number in numbers {
            let caller = callers.get_mut(number).context("an unknown caller")?;
            let Some(ended) = caller.hear()? else { continue };
            if warmed < warm {
                warmed += 1;
                if warmed == warm {
                    (began, cpu) = (Instant::now(), machine::cpu(pid)?);
                }
            } else if began.elapsed() < span {
                micros.push(caller.sent.elapsed().as_secs_f64() * 1e6);
            } else {
                in_flight -= 1;
                continue;
            }
            if ended {
                caller.stream = connect(address)?;
                ready.add(&caller.stream, number)?;
            }
            caller.send()?;
        }
    }
    let took = began.elapsed().min(span).as_secs_f64();
    let used = machine::cpu(pid)?.saturating_sub(cpu).as_secs_f64();
    let calls = micros.len() as f64;
    let [p50_us, p99_us] = [0.5, 0.99].map(|share| quantile(&micros, share));
    Ok(Seen { per_second: calls / took, p50_us, p99_us, cpu_us: used * 1e6 / calls })
}

impl Caller {
    fn join(address: SocketAddr, way: &Way, id: u32) -> Result<Self> {
        let stream = connect(address)?;
        let (answer, sent) = (Answer::default(), Instant::now());
        let mut caller = Self { stream, answer, request: Vec::new(), at: 0, id, sent };
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{PROTOCOL}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#
        );
        let session = caller.ask(address, &head(address, way, "", hello.len()), &hello)?;
        let session = session.map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
        let more = format!("{session}mcp-protocol-version: {PROTOCOL}\r\n");
        let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        caller.ask(address, &head(address, way, &more, told.len()), told)?;
        let filled = ARGUMENT - MARK.len();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{:x<filled$}{MARK}"}}}}}}"#,
            ""
        );
        let head = head(address, way, &more, body.len());
        caller.at = head.len() + body.find(&id.to_string()).context("a request without its id")?;
        caller.request = [head.into_bytes(), body.into_bytes()].concat();
        Ok(caller)
    }

    /// One request outside of the loop; the session the answer names.
    fn ask(&mut self, address: SocketAddr, head: &str, body: &str) -> Result<Option<String>> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_read_timeout(Some(PATIENCE))?;
        self.stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = self.stream.read(&mut buffer)?;
            ensure!(count > 0, "the connection was closed before its answer was complete");
            let Some(told) = self.answer.take(&buffer[..count])? else { continue };
            ensure!(told.good, "refused: {}", String::from_utf8_lossy(&told.body));
            if told.ends {
                self.stream = connect(address)?;
            }
            self.stream.set_nonblocking(true)?;
            return Ok(told.session);
        }
    }

    fn send(&mut self) -> Result<()> {
        self.id += 1;
        let digits = self.id.to_string();
        self.request[self.at..self.at + digits.len()].copy_from_slice(digits.as_bytes());
        self.sent = Instant::now();
        Ok(self.stream.write_all(&self.request)?)
    }

    /// Reads what has come. Once the answer is complete, whether the connection ended with it.
    fn hear(&mut self) -> Result<Option<bool>> {
        let mut buffer = [0; 16 * 1024];
        let count = match self.stream.read(&mut buffer) {
            Ok(0) => bail!("the connection was closed in the middle of a call"),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some(told) = self.answer.take(&buffer[..count])? else { return Ok(None) };
        let has = |what: &[u8]| told.body.windows(what.len()).any(|part| part == what);
        let good = told.good && has(MARK.as_bytes()) && has(self.id.to_string().as_bytes());
        ensure!(good, "a wrong answer to call {}: {}", self.id, String::from_utf8_lossy(&told.body));
        Ok(Some(told.ends))
    }
}

fn head(address: SocketAddr, way: &Way, more: &str, length: usize) -> String {
    let Way { path, headers } = way;
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}{more}content-length: {length}\r\n\r\n"
    )
}

/// A connection that does not wait.
fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}
