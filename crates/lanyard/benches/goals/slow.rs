//! F4: readers that do not read. They are far behind from the start, so that everything between them and the daemon is
//! full; the others must not notice, and the daemon must not keep for them what they do not take.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, connect, socket};

use crate::crowd::Publisher;
use crate::fanout::{OBSERVERS, Stage};
use crate::http::Caller;
use crate::report::{Better, Judge, Row};
use crate::{Plan, machine, progress};

/// Readers that stand still while the daemon's memory is looked at.
const STUCK: usize = 100;
/// What a slow reader's system holds for it.
const RECEIVE_BYTES: usize = 4_096;
/// How long a reader that stands still is given to fill what is between it and the daemon.
const SETTLE: Duration = Duration::from_secs(2);

pub(crate) fn run(plan: &Plan, stage: &mut Stage) -> Result<Vec<Row>> {
    let what = format!("p99 of {OBSERVERS} others beside a stalled reader and one of 1 B/s");
    let mut p99 =
        Row::new("F4", what, "ms", Judge::Ratio(Better::AtMost, 1.2, 1.05)).beside("without the two");
    for repetition in 0..plan.repetitions {
        let alone = stage.p99(plan.paced_events)?;
        let stalled = stuck(stage)?;
        let crawling = stuck(stage)?;
        std::thread::sleep(SETTLE);
        let mut posts = Crawl { posts: &mut stage.posts, reader: crawling, read_at: Instant::now() };
        let millis =
            stage.crowd.paced(&mut posts, plan.paced_events, crate::fanout::EVERY, crate::fanout::PADDING)?;
        let beside = crate::report::quantile(&millis, 0.99);
        drop(stalled);
        p99.add(beside, alone);
        progress(&format!(
            "slow readers {}/{}: {beside:.1} ms, alone {alone:.1} ms",
            repetition + 1,
            plan.repetitions
        ));
    }
    Ok(vec![p99, memory(stage)?])
}

/// Measured once: what the first stalled readers leave behind, the next ones use again.
fn memory(stage: &mut Stage) -> Result<Row> {
    let what = format!("daemon's memory per stalled reader ({STUCK} of them)");
    let mut row = Row::new("F4", what, "KiB", Judge::Shown)
        .note("RSS; what the kernel holds for a socket is not in it");
    let before = machine::rss_kib(stage.daemon.pid())?;
    let readers = (0..STUCK).map(|_| stuck(stage)).collect::<Result<Vec<_>>>()?;
    std::thread::sleep(SETTLE);
    row.figures.push((machine::rss_kib(stage.daemon.pid())? - before) / STUCK as f64);
    drop(readers);
    Ok(row)
}

/// A reader of everything from the beginning that never reads.
fn stuck(stage: &Stage) -> Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    set_socket_recv_buffer_size(&socket, RECEIVE_BYTES)?;
    connect(&socket, &stage.daemon.address)?;
    let mut stream = TcpStream::from(socket);
    let path = format!("/sessions/{}/events?after=0", stage.session);
    stream.write_all(&Caller::of(&stage.daemon).stream(&path))?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// A publisher beside which somebody reads one byte a second.
struct Crawl<'a> {
    posts: &'a mut crate::http::Posts,
    reader: TcpStream,
    read_at: Instant,
}

impl Publisher for Crawl<'_> {
    fn prepare(&mut self) -> Result<()> {
        self.posts.prepare()
    }

    fn publish(&mut self, texts: &[String]) -> Result<()> {
        self.posts.publish(texts)
    }

    fn tend(&mut self) -> Result<()> {
        if self.read_at.elapsed() >= Duration::from_secs(1) {
            self.read_at = Instant::now();
            match self.reader.read(&mut [0; 1]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.posts.tend()
    }
}
