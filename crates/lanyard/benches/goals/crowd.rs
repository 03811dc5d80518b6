//! Observers: many connections that wait for the same events, read by one thread. It knows only that every event
//! carries one `@`, followed by the time it was published.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::ready::Ready;

/// How long the last of the events may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Digits of a time of publication, in microseconds.
const DIGITS: usize = 12;
/// Bytes one observer reads at a time.
const READ_BYTES: usize = 64 * 1024;

/// Whoever passes events on to the observers.
pub(crate) trait Publisher {
    /// Called before anything is measured.
    fn prepare(&mut self) -> Result<()>;

    /// Publishes all of them at once and does not wait.
    fn publish(&mut self, texts: &[String]) -> Result<()>;

    /// Called now and then, for what a publisher has to look after.
    fn tend(&mut self) -> Result<()>;
}

pub(crate) struct Crowd {
    ready: Ready,
    observers: Vec<Observer>,
    buffer: Vec<u8>,
    epoch: Instant,
}

#[derive(Debug)]
struct Observer {
    stream: TcpStream,
    /// The beginning of a mark whose end has not arrived yet.
    carried: Vec<u8>,
}

impl Crowd {
    /// Connects that many, each with the same words, and waits until all have been answered with `welcome`.
    pub(crate) fn join(address: SocketAddr, count: usize, words: &[u8], welcome: &[u8]) -> Result<Self> {
        let mut crowd = Self {
            ready: Ready::new()?,
            observers: Vec::with_capacity(count),
            buffer: vec![0; READ_BYTES],
            epoch: Instant::now(),
        };
        crowd.grow(address, count, words, welcome)?;
        Ok(crowd)
    }

    pub(crate) fn grow(
        &mut self,
        address: SocketAddr,
        count: usize,
        words: &[u8],
        welcome: &[u8],
    ) -> Result<()> {
        // A few at a time, so that no queue of connections overflows.
        let mut left = count;
        while left > 0 {
            let some = left.min(100);
            let first = self.observers.len();
            for number in first..first + some {
                let mut stream = TcpStream::connect(address).context("an observer cannot connect")?;
                stream.write_all(words)?;
                stream.set_nonblocking(true)?;
                self.ready.add(&stream, number)?;
                self.observers.push(Observer { stream, carried: Vec::new() });
            }
            self.await_welcome(first, welcome)?;
            left -= some;
        }
        Ok(())
    }

    fn await_welcome(&mut self, first: usize, welcome: &[u8]) -> Result<()> {
        let mut waiting: std::collections::HashSet<usize> = (first..self.observers.len()).collect();
        while !waiting.is_empty() {
            let mut strange = None;
            let before = waiting.len();
            let read = self.turn(PATIENCE, |number, _, bytes| {
                if waiting.remove(&number) && !bytes.starts_with(welcome) {
                    strange = Some(String::from_utf8_lossy(bytes).into_owned());
                }
            })?;
            if let Some(strange) = strange {
                bail!("an observer was told: {strange}");
            }
            ensure!(read > 0 || waiting.len() < before, "{before} observers got no answer");
        }
        Ok(())
    }

    /// Reads everything that has come, for at most so long. Answers how many reads there were.
    fn turn(
        &mut self,
        at_most: Duration,
        mut each: impl FnMut(usize, &mut Observer, &[u8]),
    ) -> Result<usize> {
        let numbers = self.ready.wait(at_most)?;
        for &number in &numbers {
            let observer = self.observers.get_mut(number).context("an unknown observer")?;
            match observer.stream.read(&mut self.buffer) {
                Ok(0) => bail!("the stream of observer {number} ended"),
                Ok(count) => each(number, observer, &self.buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context(format!("observer {number} cannot read")),
            }
        }
        Ok(numbers.len())
    }

    /// Reads what is left over from before, such as signs of life.
    pub(crate) fn drain(&mut self) -> Result<()> {
        while self.turn(Duration::ZERO, |_, _, _| {})? > 0 {}
        Ok(())
    }

    /// Publishes one event at a time, evenly, and answers after how many milliseconds each arrived at each observer.
    pub(crate) fn paced(
        &mut self,
        publisher: &mut dyn Publisher,
        events: u32,
        every: Duration,
        padding: usize,
    ) -> Result<Vec<f64>> {
        self.drain()?;
        publisher.prepare()?;
        let expected = self.observers.len() * events as usize;
        let mut millis = Vec::with_capacity(expected);
        let (epoch, began) = (self.epoch, Instant::now());
        let mut sent = 0;
        while sent < events || millis.len() < expected {
            let due = began + every * sent;
            let now = Instant::now();
            if sent < events && now >= due {
                publisher.publish(&[text(epoch, padding)])?;
                sent += 1;
                continue;
            }
            publisher.tend()?;
            let wait = if sent < events { due - now } else { PATIENCE };
            let reads =
                self.turn(wait, |_, observer, bytes| arrivals(epoch, observer, bytes, &mut millis))?;
            let arrived = millis.len();
            ensure!(reads > 0 || sent < events, "only {arrived} of {expected} deliveries arrived");
        }
        ensure!(millis.len() == expected, "{} deliveries instead of {expected}", millis.len());
        Ok(millis)
    }

    /// Publishes many events at once and answers how long it took until everybody had all of them.
    pub(crate) fn burst(
        &mut self,
        publisher: &mut dyn Publisher,
        events: usize,
        padding: usize,
    ) -> Result<Duration> {
        self.drain()?;
        publisher.prepare()?;
        let expected = self.observers.len() * events;
        let texts: Vec<String> = (0..events).map(|_| text(self.epoch, padding)).collect();
        let began = Instant::now();
        publisher.publish(&texts)?;
        let mut arrived = 0;
        while arrived < expected {
            let reads = self.turn(PATIENCE, |_, _, bytes| arrived += marks(bytes))?;
            ensure!(reads > 0, "only {arrived} of {expected} deliveries arrived");
        }
        let took = began.elapsed();
        publisher.tend()?;
        ensure!(arrived == expected, "{arrived} deliveries instead of {expected}");
        Ok(took)
    }

    /// Bytes one event is on the wire, framing included.
    pub(crate) fn size_of_one(&mut self, publisher: &mut dyn Publisher, padding: usize) -> Result<usize> {
        self.drain()?;
        publisher.prepare()?;
        publisher.publish(&[text(self.epoch, padding)])?;
        let (mut bytes, mut arrived) = (0, 0);
        while arrived < self.observers.len() {
            let reads = self.turn(PATIENCE, |_, _, read| {
                bytes += read.len();
                arrived += marks(read);
            })?;
            ensure!(reads > 0, "the first event did not arrive");
        }
        publisher.tend()?;
        Ok(bytes / self.observers.len())
    }
}

/// The content of an event: a mark with the time, and something to make it as long as usual.
fn text(epoch: Instant, padding: usize) -> String {
    format!("@{:0DIGITS$}{:x<padding$}", epoch.elapsed().as_micros(), "")
}

/// How many events begin in these bytes. Written so that it costs next to nothing.
fn marks(bytes: &[u8]) -> usize {
    // Sums of up to 255 fit a byte, which lets the compiler count many bytes at once.
    let count = |some: &[u8]| usize::from(some.iter().map(|byte| u8::from(*byte == b'@')).sum::<u8>());
    bytes.chunks(255).map(count).sum()
}

fn arrivals(epoch: Instant, observer: &mut Observer, bytes: &[u8], millis: &mut Vec<f64>) {
    let now = epoch.elapsed().as_micros();
    let joined;
    let bytes = if observer.carried.is_empty() {
        bytes
    } else {
        joined = [observer.carried.as_slice(), bytes].concat();
        observer.carried.clear();
        &joined
    };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == b'@') {
        rest = &rest[at..];
        let Some(digits) = rest.get(1..=DIGITS) else {
            observer.carried.extend_from_slice(rest);
            return;
        };
        let sent = digits.iter().fold(0_u128, |sum, digit| sum * 10 + u128::from(digit.wrapping_sub(b'0')));
        millis.push(now.saturating_sub(sent) as f64 / 1e3);
        rest = &rest[1 + DIGITS..];
    }
}
