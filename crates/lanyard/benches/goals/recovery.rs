//! R1 and R2: from a start to serving, and from a position in a log to the event after it.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use crate::fixture::{self, BATCH_EVENTS, Log, Scribe};
use crate::http::{Caller, Client};
use crate::process::{Daemon, time_daemon, token};
use crate::report::{Better, Judge, Row, median};
use crate::{Plan, machine, progress};

/// Resumes of one repetition.
const RESUMES: usize = 40;
/// Events of the short log.
const SHORT: usize = 1_000;
/// Events of a commit when a daemon is busy.
const COMMIT: usize = 64;
/// How far from its end a log is resumed.
const NEAR_END: u64 = 10;

/// Writes the catalogue of sessions into the data folder `full`, and leaves in `crashed` what a daemon leaves that is
/// killed while it writes.
pub(crate) fn catalogue(plan: &Plan, full: &Path, crashed: &Path) -> Result<()> {
    let journal = fixture::open(full)?;
    let mut scribe = Scribe::new(&journal);
    let mut logs = scribe.catalogue(plan.sessions)?;
    if plan.wants("R1") {
        scribe.content(&mut logs, plan.events / 10, COMMIT)?;
        std::fs::create_dir_all(crashed)?;
        restore(full, crashed)?;
    }
    Ok(())
}

/// Copies a journal as it lies on disk. The log of writes comes second: it is the one that is added to.
fn restore(from: &Path, to: &Path) -> Result<()> {
    for name in ["journal.db", "journal.db-wal"] {
        std::fs::copy(from.join(name), to.join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    Ok(())
}

/// `full` is the data folder with the catalogue of sessions, `crashed` a journal as a crash leaves it.
pub(crate) fn restart(plan: &Plan, full: &Path, crashed: &Path) -> Result<Vec<Row>> {
    let mut rows = after_an_end(plan, full)?;
    rows.push(after_a_crash(plan, full, crashed)?);
    Ok(rows)
}

fn after_a_crash(plan: &Plan, full: &Path, crashed: &Path) -> Result<Row> {
    let what = format!("restart after a crash while {} events were written, warm", plan.events / 10);
    let mut row = Row::new("R1", what, "ms", Judge::Shown).beside("scan of the session rows");
    let home = crashed.with_extension("home");
    Daemon::start(&home)?.stop()?;
    let token = token(&home)?;
    for _ in 0..plan.repetitions {
        restore(crashed, &home)?;
        let bare = scan(&full.join("journal.db"), plan.sessions)?;
        row.add(millis(serving(&home, &token)?), millis(bare));
    }
    Ok(row)
}

fn after_an_end(plan: &Plan, full: &Path) -> Result<Vec<Row>> {
    // The first start makes the token.
    Daemon::start(full)?.stop()?;
    let token = token(full)?;
    let Plan { sessions, events, .. } = plan;
    let what = format!("restart to serving, {sessions} sessions and {events} events");
    let judge = Judge::Ratio(Better::AtMost, 4.0, 2.0);
    let mut warm = Row::new("R1", format!("{what}, warm"), "ms", judge).beside("scan of the session rows");
    let mut cold = Row::new("R1", format!("{what}, cold"), "ms", judge).beside("scan of the session rows");
    let mut bound = Row::new("R1", "the same, cold, in all", "ms", Judge::Below(1_000.0));
    let file = full.join("journal.db");
    for repetition in 0..plan.repetitions {
        let ours = serving(full, &token)?;
        let bare = scan(&file, *sessions)?;
        warm.add(millis(ours), millis(bare));
        machine::drop_cached(&file)?;
        let bare = scan(&file, *sessions)?;
        machine::drop_cached(&file)?;
        let ours_cold = serving(full, &token)?;
        cold.add(millis(ours_cold), millis(bare));
        bound.figures.push(millis(ours_cold));
        progress(&format!(
            "restart {}/{}: warm {ours:.0?}, cold {ours_cold:.0?}",
            repetition + 1,
            plan.repetitions
        ));
    }
    Ok(vec![warm, cold, bound])
}

fn serving(home: &Path, token: &str) -> Result<Duration> {
    let (caller, socket) = (Caller::on_socket(token.to_owned()), home.join("lanyard.sock"));
    let request = caller.get("/status");
    time_daemon(home, || Client::on_socket(&socket).is_ok_and(|mut client| client.ask(&request).is_ok()))
}

/// Reads every column of every session into a map, without checking any of it.
fn scan(file: &Path, expected: usize) -> Result<Duration> {
    let began = Instant::now();
    let conn = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    let mut all = conn.prepare("SELECT * FROM sessions")?;
    let columns = all.column_count();
    let sid = all.column_index("sid")?;
    let mut rows = all.query([])?;
    let mut sessions = HashMap::new();
    while let Some(row) = rows.next()? {
        let mut bytes = 0;
        for column in 0..columns {
            bytes += match row.get_ref(column)? {
                ValueRef::Null => 0,
                ValueRef::Integer(_) | ValueRef::Real(_) => 8,
                ValueRef::Text(text) => text.len(),
                ValueRef::Blob(blob) => blob.len(),
            };
        }
        sessions.insert(row.get::<_, i64>(sid)?, bytes);
    }
    let took = began.elapsed();
    ensure!(sessions.len() == expected, "{} session rows instead of {expected}", sessions.len());
    Ok(took)
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

/// Three logs: a short one in a small journal, a long one, and a short one whose events lie far apart in a long journal.
pub(crate) fn resume(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let small = written(&dir.join("short"), |scribe| {
        let mut logs = scribe.beginnings(1)?;
        scribe.content(&mut logs, SHORT, BATCH_EVENTS)?;
        Ok(logs)
    })?;
    let large = written(&dir.join("long"), |scribe| {
        let mut logs = scribe.beginnings(2)?;
        let (long, spread) = logs.split_at_mut(1);
        let stride = plan.events / SHORT;
        for _ in 0..SHORT {
            scribe.content(long, stride, BATCH_EVENTS)?;
            scribe.content(spread, 1, BATCH_EVENTS)?;
        }
        Ok(logs)
    })?;
    let (short_daemon, long_daemon) = (Daemon::start(&dir.join("short"))?, Daemon::start(&dir.join("long"))?);
    let short = small.first().context("no log")?;
    let [long, spread] = large.as_slice() else { anyhow::bail!("no logs") };

    let judge = Judge::Ratio(Better::AtMost, 2.0, 1.2);
    let row = |what: String| Row::new("R2", what, "ms", judge).beside("log of 1000");
    let events = plan.events;
    let mut cases = [
        (row(format!("resume near the end of a log of {events}: first event")), long, Near::End),
        (row(format!("resume in the middle of a log of {events}: first event")), long, Near::Middle),
        (row(format!("resume near the end, spread over {events} of others: first event")), spread, Near::End),
        (
            row(format!("resume in the middle, spread over {events} of others: first event")),
            spread,
            Near::Middle,
        ),
    ];
    for repetition in 0..plan.repetitions {
        for (row, log, near) in &mut cases {
            let (mut ours, mut reference) = (Vec::new(), Vec::new());
            for number in 0..RESUMES {
                // Who comes second finds the machine awake; so they take turns.
                if number % 2 == 0 {
                    reference.push(first_event(&short_daemon, short, *near)?);
                }
                ours.push(first_event(&long_daemon, log, *near)?);
                if number % 2 == 1 {
                    reference.push(first_event(&short_daemon, short, *near)?);
                }
            }
            row.add(median(&ours), median(&reference));
        }
        progress(&format!("resume {}/{}", repetition + 1, plan.repetitions));
    }
    short_daemon.stop()?;
    long_daemon.stop()?;
    Ok(cases.into_iter().map(|(row, _, _)| row).collect())
}

fn written(home: &Path, write: impl FnOnce(&mut Scribe<'_>) -> Result<Vec<Log>>) -> Result<Vec<Log>> {
    let journal = fixture::open(home)?;
    let logs = write(&mut Scribe::new(&journal))?;
    drop(journal);
    Ok(logs)
}

#[derive(Debug, Clone, Copy)]
enum Near {
    End,
    Middle,
}

/// Milliseconds from connecting until the first event of a stream is there.
fn first_event(daemon: &Daemon, log: &Log, near: Near) -> Result<f64> {
    let after = match near {
        Near::End => log.seq - NEAR_END,
        Near::Middle => log.seq / 2,
    };
    let request = Caller::of(daemon).stream(&format!("/sessions/{}/events?after={after}", log.id));
    let began = Instant::now();
    let mut stream = TcpStream::connect(daemon.address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.write_all(&request)?;
    let wanted = format!("id: {}\n", after + 1);
    let mut answer = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = stream.read(&mut buffer)?;
        ensure!(count > 0, "the stream ended before its first event");
        answer.extend_from_slice(&buffer[..count]);
        if answer.windows(wanted.len()).any(|some| some == wanted.as_bytes()) {
            return Ok(millis(began.elapsed()));
        }
    }
}
