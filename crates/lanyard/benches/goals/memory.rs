//! M1 and M2: what an idle observer and an idle session cost in memory, and what a full daemon has in all.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::crowd::Crowd;
use crate::fixture::{self, Scribe};
use crate::http::{Caller, Client};
use crate::process::{Daemon, Reference};
use crate::report::{Better, Judge, Row};
use crate::{Plan, machine, progress};

/// Observers that come first and are not counted: they pay for what is made once.
const FIRST: usize = 200;
/// Megabytes a daemon with all sessions may have.
const MEMORY_MB_MAX: f64 = 150.0;
/// How long a process is left alone before its memory is looked at.
const SETTLE: Duration = Duration::from_millis(500);

pub(crate) fn observers(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let what =
        format!("memory per idle reader, attached over HTTP/1.1 SSE ({} of them)", plan.idle_observers);
    let mut row = Row::new("M1", what, "KiB", Judge::Ratio(Better::AtMost, 1.2, 0.4)).beside("axum Sse");
    let home = dir.join("observers");
    let journal = fixture::open(&home)?;
    let logs = Scribe::new(&journal).beginnings(1)?;
    drop(journal);
    let session = logs.first().context("no session")?.id;
    for repetition in 0..plan.repetitions {
        let reference = Reference::start("sse", &[])?;
        let [port] = reference.numbers()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let words = format!("GET / HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n");
        let bare = per_observer(plan, address, reference.pid(), words.as_bytes())?;
        drop(reference);

        let daemon = Daemon::start(&home)?;
        let words = Caller::of(&daemon).stream(&format!("/sessions/{session}/attach?mode=tail"));
        let ours = per_observer(plan, daemon.address, daemon.pid(), &words)?;
        daemon.stop()?;
        row.add(ours, bare);
        progress(&format!(
            "observers {}/{}: {ours:.1} KiB, axum {bare:.1} KiB",
            repetition + 1,
            plan.repetitions
        ));
    }
    Ok(vec![row])
}

fn per_observer(plan: &Plan, address: SocketAddr, pid: u32, words: &[u8]) -> Result<f64> {
    let mut crowd = Crowd::join(address, FIRST, words, b"HTTP/1.1 200")?;
    std::thread::sleep(SETTLE);
    let before = machine::rss_kib(pid)?;
    crowd.grow(address, plan.idle_observers, words, b"HTTP/1.1 200")?;
    std::thread::sleep(SETTLE);
    let after = machine::rss_kib(pid)?;
    crowd.drain()?;
    Ok((after - before) / plan.idle_observers as f64)
}

/// `full` is the data folder with the catalogue of sessions.
pub(crate) fn sessions(plan: &Plan, dir: &Path, full: &Path) -> Result<Vec<Row>> {
    let count = plan.sessions;
    let what = format!("memory per idle registered session ({count} of them)");
    let mut each = Row::new("M2", what, "B", Judge::Ratio(Better::AtMost, 3.0, 1.5))
        .beside("lean struct in a HashMap")
        .note("the daemon's RSS with them, less that of one without any");
    let what = format!("resident memory with {count} sessions in the store");
    let mut all = Row::new("rss", what, "MB", Judge::Below(MEMORY_MB_MAX));
    let mut searched = Row::new("rss", "the same after a search by text", "MB", Judge::Below(MEMORY_MB_MAX));
    let mut first = Row::new("rss", "the first search by text after a start", "ms", Judge::Shown);
    let empty = dir.join("empty");
    for repetition in 0..plan.repetitions {
        let reference = Reference::start("lean", &[count.to_string()])?;
        let lean: f64 =
            reference.said.parse().with_context(|| format!("the reference said `{}`", reference.said))?;
        let daemon = asked(full)?;
        let with = resting_kib(&daemon)?;
        let began = Instant::now();
        Client::connect(&daemon)?.ask(&Caller::of(&daemon).get("/sessions?limit=100&text=session"))?;
        first.figures.push(began.elapsed().as_secs_f64() * 1e3);
        searched.figures.push(resting_kib(&daemon)? * 1024.0 / 1e6);
        daemon.stop()?;
        let daemon = asked(&empty)?;
        let ours = (with - resting_kib(&daemon)?) * 1024.0 / count as f64;
        daemon.stop()?;
        each.add(ours, lean);
        all.figures.push(with * 1024.0 / 1e6);
        progress(&format!(
            "sessions {}/{}: {ours:.0} B each, lean {lean:.0} B",
            repetition + 1,
            plan.repetitions
        ));
    }
    Ok(vec![each, all, searched, first])
}

/// A daemon that has just started and answered one question.
fn asked(home: &Path) -> Result<Daemon> {
    let daemon = Daemon::start(home)?;
    Client::connect(&daemon)?.ask(&Caller::of(&daemon).get("/status"))?;
    Ok(daemon)
}

fn resting_kib(daemon: &Daemon) -> Result<f64> {
    std::thread::sleep(SETTLE);
    machine::rss_kib(daemon.pid())
}
