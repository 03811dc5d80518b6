//! F1 to F3: one session, a thousand observers. Every event is published over HTTP and durable before anyone sees it;
//! the floor only passes bytes on.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::crowd::{Crowd, Publisher};
use crate::fixture::{self, BATCH_EVENTS, Scribe};
use crate::http::{Caller, Posts};
use crate::process::{Daemon, Reference};
use crate::redis::Redis;
use crate::report::{Better, Judge, Row, median, quantile};
use crate::{Plan, machine, progress};

pub(crate) const OBSERVERS: usize = 1_000;
/// Twenty events a second to a thousand observers are 20,000 deliveries a second.
pub(crate) const EVERY: Duration = Duration::from_millis(50);
/// Letters of an event besides its time, so that it has about 300 bytes on the wire.
pub(crate) const PADDING: usize = 64;
/// Events of a burst.
const BURST: usize = 100;
/// Bursts of one repetition.
const BURSTS: usize = 3;
/// Events the observed session has from before: a reader that starts with them and stops reading is stuck at once.
const OLD_EVENTS: usize = 20_000;

pub(crate) fn run(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let mut stage = Stage::set(dir)?;
    let mut rows = Vec::new();
    if ["F1", "F2", "F3"].iter().any(|goal| plan.wants(goal)) {
        rows.extend(beside_the_floor(plan, dir, &mut stage)?);
    }
    if plan.wants("F4") {
        rows.extend(crate::slow::run(plan, &mut stage)?);
    }
    stage.daemon.stop()?;
    rows.retain(|row| plan.wants(row.goal));
    Ok(rows)
}

/// A daemon, a session with a past, its observers and who publishes to them.
pub(crate) struct Stage {
    pub(crate) daemon: Daemon,
    pub(crate) session: String,
    pub(crate) crowd: Crowd,
    pub(crate) posts: Posts,
}

impl Stage {
    fn set(dir: &Path) -> Result<Self> {
        let home = dir.join("observed");
        let journal = fixture::open(&home)?;
        let mut scribe = Scribe::new(&journal);
        let mut logs = scribe.beginnings(1)?;
        scribe.content(&mut logs, OLD_EVENTS, BATCH_EVENTS)?;
        drop(journal);
        let session = logs.first().context("no session")?.id.to_string();
        let daemon = Daemon::start(&home)?;
        let words = Caller::of(&daemon).stream(&format!("/sessions/{session}/events?tail=0"));
        let crowd = Crowd::join(daemon.address, OBSERVERS, &words, b"HTTP/1.1 200")?;
        let posts = Posts::to(&daemon, &session, BURST);
        Ok(Self { daemon, session, crowd, posts })
    }

    /// The 99th percentile of delivery, in milliseconds.
    pub(crate) fn p99(&mut self, events: u32) -> Result<f64> {
        Ok(quantile(&self.crowd.paced(&mut self.posts, events, EVERY, PADDING)?, 0.99))
    }
}

impl Publisher for Posts {
    fn prepare(&mut self) -> Result<()> {
        self.connect()
    }

    fn publish(&mut self, texts: &[String]) -> Result<()> {
        texts.iter().try_for_each(|text| self.said(text))
    }

    fn tend(&mut self) -> Result<()> {
        if self.unanswered > 0 { self.settle() } else { Ok(()) }
    }
}

/// The floor: the same bytes, sent by one loop.
struct Floor {
    reference: Reference,
    crowd: Crowd,
    line: Line,
}

struct Line {
    publisher: TcpStream,
    /// Bytes of a frame on the wire.
    frame: usize,
}

impl Floor {
    fn set(frame: usize) -> Result<Self> {
        let reference = Reference::start("floor", &[OBSERVERS.to_string()])?;
        let [publishing, observing] = reference.numbers()?;
        let publisher = TcpStream::connect((Ipv4Addr::LOCALHOST, publishing))?;
        publisher.set_nodelay(true)?;
        let crowd = Crowd::join(SocketAddr::from((Ipv4Addr::LOCALHOST, observing)), OBSERVERS, b"", b"+")?;
        Ok(Self { reference, crowd, line: Line { publisher, frame } })
    }
}

impl Publisher for Line {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn publish(&mut self, texts: &[String]) -> Result<()> {
        let width = self.frame;
        let mut frames = Vec::with_capacity(texts.len() * width);
        for text in texts {
            write!(frames, "{text:.<width$}")?;
        }
        Ok(self.publisher.write_all(&frames)?)
    }

    fn tend(&mut self) -> Result<()> {
        Ok(())
    }
}

/// What one repetition says of one server.
struct Seen {
    cpu_us: f64,
    p50_ms: f64,
    p99_ms: f64,
    burst: f64,
}

fn watch(crowd: &mut Crowd, publisher: &mut dyn Publisher, pid: u32, events: u32) -> Result<Seen> {
    let before = machine::cpu(pid)?;
    let millis = crowd.paced(publisher, events, EVERY, PADDING)?;
    let used = machine::cpu(pid)?.saturating_sub(before);
    let mut bursts = Vec::new();
    for _ in 0..BURSTS {
        let took = crowd.burst(publisher, BURST, PADDING)?;
        bursts.push((BURST * OBSERVERS) as f64 / took.as_secs_f64());
    }
    Ok(Seen {
        cpu_us: used.as_secs_f64() * 1e6 / millis.len() as f64,
        p50_ms: quantile(&millis, 0.5),
        p99_ms: quantile(&millis, 0.99),
        burst: median(&bursts),
    })
}

fn beside_the_floor(plan: &Plan, dir: &Path, stage: &mut Stage) -> Result<Vec<Row>> {
    let frame = stage.crowd.size_of_one(&mut stage.posts, PADDING)?;
    let mut floor = Floor::set(frame)?;
    let mut redis = Redis::start(&dir.join("redis"), OBSERVERS, frame)?;
    let [mut cpu, mut burst, mut burst_redis, mut p99, mut p50] = rows(frame);
    if redis.is_none() {
        burst_redis.reference = "not measured: no redis-server here";
    }
    for repetition in 0..plan.repetitions {
        let bare = watch(&mut floor.crowd, &mut floor.line, floor.reference.pid(), plan.paced_events)?;
        let ours = watch(&mut stage.crowd, &mut stage.posts, stage.daemon.pid(), plan.paced_events)?;
        cpu.add(ours.cpu_us, bare.cpu_us);
        burst.add(ours.burst, bare.burst);
        p99.add(ours.p99_ms, bare.p99_ms);
        p50.add(ours.p50_ms, bare.p50_ms);
        match &mut redis {
            Some(redis) => {
                let pid = redis.pid();
                let theirs = watch(&mut redis.crowd, &mut redis.line, pid, plan.paced_events)?;
                burst_redis.add(ours.burst, theirs.burst);
            }
            None => burst_redis.figures.push(ours.burst),
        }
        let Seen { cpu_us, p99_ms, burst, .. } = ours;
        progress(&format!(
            "fan-out {}/{}: {cpu_us:.1} µs CPU (floor {:.1}), p99 {p99_ms:.1} ms (floor {:.1}), burst {burst:.0}/s",
            repetition + 1,
            plan.repetitions,
            bare.cpu_us,
            bare.p99_ms
        ));
    }
    if redis.is_some() {
        burst_redis.judge = Judge::Ratio(Better::AtLeast, 1.0, 2.0);
    }
    Ok(vec![cpu, burst_redis, burst, p99, p50])
}

fn rows(frame: usize) -> [Row; 5] {
    let crowd = format!("{OBSERVERS} SSE observers");
    let paced = format!("{crowd}, 20 events/s of {frame} B on the wire");
    let bursts = format!("burst of {BURST} events to {crowd}");
    [
        Row::new("F1", format!("{paced}: CPU per delivery"), "µs", Judge::Ratio(Better::AtMost, 2.8, 1.8))
            .beside("one send each")
            .note("all of the daemon's CPU: accepting and committing each event too, a thousandth of it per delivery"),
        Row::new("F2", format!("{bursts}: deliveries"), "/s", Judge::Shown).beside("one send each"),
        Row::new("F2", bursts, "/s", Judge::Shown).beside("Redis pub/sub").note(format!(
            "published as {BURST} requests at once; NATS is not measured here"
        )),
        Row::new("F3", format!("{paced}: p99 delivery"), "ms", Judge::Ratio(Better::AtMost, 1.8, 1.3))
            .beside("one send each")
            .note("from the request to publish until the event is read, the commit included; the floor commits nothing"),
        Row::new("F3", "the same, p50", "ms", Judge::Shown).beside("one send each"),
    ]
}
