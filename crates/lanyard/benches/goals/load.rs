//! L1: a working day at once. Two thousand sessions with traffic, and readers attached to all of them: nobody may miss
//! or repeat an event, and what a delivery costs must not grow with the number of readers.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lanyard_core::SessionId;
use serde_json::Value;

use crate::fixture::{self, Scribe};
use crate::http::{Caller, Client};
use crate::process::Daemon;
use crate::ready::Ready;
use crate::report::{Judge, Row, quantile};
use crate::{Plan, machine, progress};

const SESSIONS: usize = 2_000;
/// Readers of the small crowd and of the large one.
const CROWDS: [usize; 2] = [1_000, 5_000];
/// Clients that report what the agents do.
const REPORTERS: usize = 8;
/// Events a second, over all sessions.
const EVENTS_PER_SECOND: u32 = 1_000;
/// How long the last events may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);
/// Digits of a time, in microseconds.
const DIGITS: usize = 12;
/// Bytes one reader reads at a time.
const READ_BYTES: usize = 64 * 1024;

pub(crate) fn run(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let home = dir.join("load");
    let journal = fixture::open(&home)?;
    let ids: Vec<SessionId> = Scribe::new(&journal).beginnings(SESSIONS)?.iter().map(|log| log.id).collect();
    drop(journal);
    let mut rows = Vec::new();
    for (crowd, span) in CROWDS.into_iter().zip(plan.load_spans) {
        let seen = day(&home, &ids, crowd, span)?;
        progress(&format!(
            "{crowd} readers of {SESSIONS} sessions for {} s: {} events, {} deliveries, all complete and in order",
            span.as_secs(),
            seen.events,
            seen.millis.len()
        ));
        let seconds = seen.took.as_secs_f64();
        let of = |what: &str| format!("{what}, {crowd} readers of {SESSIONS} sessions with traffic");
        let mut row = |what: &str, unit: &'static str, figure: f64| {
            let mut row = Row::new("L1", of(what), unit, Judge::Shown);
            row.figures.push(figure);
            rows.push(row);
        };
        row("events", "/s", seen.events as f64 / seconds);
        row("deliveries", "/s", seen.millis.len() as f64 / seconds);
        row("delivery p50", "ms", quantile(&seen.millis, 0.5));
        row("delivery p99", "ms", quantile(&seen.millis, 0.99));
        row("CPU of the daemon", "% of a core", seen.cpu.as_secs_f64() / seconds * 100.0);
        row("memory per reader", "KiB", seen.reader_kib);
    }
    Ok(rows)
}

/// What was seen of one crowd.
struct Seen {
    events: u64,
    /// After how many milliseconds each event arrived at each of its readers.
    millis: Vec<f64>,
    took: Duration,
    cpu: Duration,
    reader_kib: f64,
}

fn day(home: &Path, ids: &[SessionId], crowd: usize, span: Duration) -> Result<Seen> {
    let daemon = Daemon::start(home)?;
    let before_kib = machine::rss_kib(daemon.pid())?;
    let epoch = Instant::now();
    let mut readers = Readers::attach(&daemon, ids, crowd)?;
    let reader_kib = (machine::rss_kib(daemon.pid())? - before_kib) / crowd as f64;
    let (began, cpu) = (Instant::now(), machine::cpu(daemon.pid())?);
    let over = AtomicBool::new(false);
    let (events, mut millis) = std::thread::scope(|scope| -> Result<(u64, Vec<f64>)> {
        let reporters: Vec<_> = ids
            .chunks(ids.len().div_ceil(REPORTERS))
            .map(|mine| {
                let (daemon, over) = (&daemon, &over);
                scope.spawn(move || report(daemon, mine, epoch, span, over))
            })
            .collect();
        let mut millis = Vec::new();
        let mut read = Ok(());
        while read.is_ok() && !reporters.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            read = readers.turn(Duration::from_millis(20), epoch, &mut millis).map(|_| ());
        }
        over.store(true, Ordering::Relaxed);
        let mut events = 0;
        for reporter in reporters {
            events += reporter.join().map_err(|_| anyhow::anyhow!("a reporter panicked"))??;
        }
        read.map(|()| (events, millis))
    })?;
    let took = began.elapsed();
    let cpu = machine::cpu(daemon.pid())?.saturating_sub(cpu);
    readers.catch_up(&daemon, epoch, &mut millis)?;
    drop(readers);
    daemon.stop()?;
    Ok(Seen { events, millis, took, cpu, reader_kib })
}

/// Reports turns of some sessions, evenly, until the time is over: a prompt, words, a tool call, the end.
fn report(
    daemon: &Daemon,
    ids: &[SessionId],
    epoch: Instant,
    span: Duration,
    over: &AtomicBool,
) -> Result<u64> {
    let caller = Caller::of(daemon);
    let mut client = Client::connect(daemon)?;
    let every = Duration::from_secs(1) * u32::try_from(REPORTERS)? / EVENTS_PER_SECOND;
    let began = Instant::now();
    let mut sent = 0;
    while began.elapsed() < span && !over.load(Ordering::Relaxed) {
        let at = usize::try_from(sent)?;
        let (session, step) = (ids[at % ids.len()], (at / ids.len()) % 5);
        let mark = format!("@{:0DIGITS$}", epoch.elapsed().as_micros());
        let (path, body) = match step {
            0 => ("turns", format!(r#"{{"prompt":"{mark} go on"}}"#)),
            1 | 2 => {
                ("signals", format!(r#"{{"type":"said","role":"agent","text":"{mark} at work on it"}}"#))
            }
            3 => ("signals", format!(r#"{{"type":"tool_called","call":"c{at}","tool":"{mark}"}}"#)),
            _ => ("signals", format!(r#"{{"type":"thought","text":"{mark} nearly done"}}"#)),
        };
        client.ask(&caller.post(&format!("/sessions/{session}/{path}"), None, &body))?;
        if step == 4 {
            let done = r#"{"type":"turn_finished","outcome":"completed"}"#;
            client.ask(&caller.post(&format!("/sessions/{session}/signals"), None, done))?;
        }
        sent += 1;
        let due = began + every * u32::try_from(sent)?;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(sent)
}

/// Everyone who is attached, read by one thread.
struct Readers {
    ready: Ready,
    all: Vec<Reader>,
    buffer: Vec<u8>,
}

struct Reader {
    stream: TcpStream,
    session: SessionId,
    /// The last event that was read; none before the stream said where it begins.
    last: Option<u64>,
    /// The beginning of a frame whose end has not arrived yet.
    carried: Vec<u8>,
}

impl Readers {
    fn attach(daemon: &Daemon, ids: &[SessionId], count: usize) -> Result<Self> {
        let (ready, buffer) = (Ready::new()?, vec![0; READ_BYTES]);
        let mut crowd = Self { ready, all: Vec::with_capacity(count), buffer };
        let caller = Caller::of(daemon);
        while crowd.all.len() < count {
            let some = (count - crowd.all.len()).min(100);
            for _ in 0..some {
                let number = crowd.all.len();
                let session = ids[number % ids.len()];
                let mut stream = TcpStream::connect(daemon.address).context("a reader cannot connect")?;
                stream.write_all(&caller.stream(&format!("/sessions/{session}/attach?mode=tail")))?;
                stream.set_nonblocking(true)?;
                crowd.ready.add(&stream, number)?;
                crowd.all.push(Reader { stream, session, last: None, carried: Vec::new() });
            }
            let began = Instant::now();
            while crowd.all.iter().any(|reader| reader.last.is_none()) {
                ensure!(began.elapsed() < PATIENCE, "a reader was not told that it is connected");
                crowd.turn(Duration::from_millis(100), began, &mut Vec::new())?;
            }
        }
        Ok(crowd)
    }

    /// Reads everything that has come, for at most so long.
    fn turn(&mut self, at_most: Duration, epoch: Instant, millis: &mut Vec<f64>) -> Result<usize> {
        let numbers = self.ready.wait(at_most)?;
        for &number in &numbers {
            let reader = self.all.get_mut(number).context("an unknown reader")?;
            match reader.stream.read(&mut self.buffer) {
                Ok(0) => bail!("the stream of reader {number} ended"),
                Ok(count) => reader.take(&self.buffer[..count], epoch, millis)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context(format!("reader {number} cannot read")),
            }
        }
        Ok(numbers.len())
    }

    /// Reads until everyone has everything their session's log has.
    fn catch_up(&mut self, daemon: &Daemon, epoch: Instant, millis: &mut Vec<f64>) -> Result<()> {
        let (caller, mut client) = (Caller::of(daemon), Client::connect(daemon)?);
        let mut heads = HashMap::new();
        for reader in &self.all {
            if heads.contains_key(&reader.session) {
                continue;
            }
            let body = client.ask(&caller.get(&format!("/sessions/{}", reader.session)))?;
            let view: Value = serde_json::from_slice(&body)?;
            heads.insert(reader.session, view["last_seq"].as_u64().context("a session without a log")?);
        }
        let behind = |readers: &[Reader]| {
            readers.iter().filter(|reader| reader.last < heads.get(&reader.session).copied()).count()
        };
        let began = Instant::now();
        while behind(&self.all) > 0 {
            ensure!(began.elapsed() < PATIENCE, "{} readers miss events", behind(&self.all));
            self.turn(Duration::from_millis(50), epoch, millis)?;
        }
        Ok(())
    }
}

impl Reader {
    fn take(&mut self, bytes: &[u8], epoch: Instant, millis: &mut Vec<f64>) -> Result<()> {
        self.carried.extend_from_slice(bytes);
        let whole = std::mem::take(&mut self.carried);
        let mut rest = whole.as_slice();
        while let Some(end) = rest.windows(2).position(|two| two == b"\n\n") {
            self.frame(&rest[..end], epoch, millis)?;
            rest = &rest[end + 2..];
        }
        self.carried.extend_from_slice(rest);
        Ok(())
    }

    /// One frame of the stream: an event follows the one before it, or the reader was failed.
    fn frame(&mut self, frame: &[u8], epoch: Instant, millis: &mut Vec<f64>) -> Result<()> {
        let text = std::str::from_utf8(frame).context("a frame is no text")?;
        if self.last.is_none() {
            let Some((_, connected)) =
                text.split_once("data: ").filter(|_| text.contains("event: connected"))
            else {
                return Ok(());
            };
            let connected: Value = serde_json::from_str(connected.lines().next().unwrap_or_default())?;
            self.last = connected["after"].as_u64();
            ensure!(self.last.is_some(), "a stream does not say where it begins: {text}");
            return Ok(());
        }
        let Some(id) = text.lines().find_map(|line| line.strip_prefix("id: ")) else { return Ok(()) };
        let (id, last) = (id.parse::<u64>()?, self.last.unwrap_or(0));
        ensure!(id == last + 1, "event {id} of {} follows {last}", self.session);
        self.last = Some(id);
        if let Some((_, digits)) = text.split_once('@') {
            let sent: u128 = digits.get(..DIGITS).context("a mark is cut off")?.parse()?;
            millis.push(epoch.elapsed().as_micros().saturating_sub(sent) as f64 / 1e3);
        }
        Ok(())
    }
}
