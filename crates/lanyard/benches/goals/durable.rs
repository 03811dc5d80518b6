//! D1 and D4: durable appends by 64 writers. The journal and a plain file are driven by the same harness: one channel,
//! one thread that takes what is queued, writes it, makes it durable, and answers.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use lanyard_store::{Batch, EventEntry, Journal, SqliteJournal};
use tokio::sync::{mpsc, oneshot};

use crate::engine::Rig;
use crate::fixture::{self, BODY_BYTES, Log, Scribe};
use crate::report::{Better, Judge, Row, median, quantile};
use crate::{Plan, progress};

const WRITERS: usize = 64;
const MANY_SESSIONS: usize = 10_000;
const FEW_SESSIONS: usize = 64;
/// Events of one commit at most, as in the engine.
const GROUP_MAX: usize = 256;

pub(crate) fn run(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let what = format!("durable append, {WRITERS} writers, {MANY_SESSIONS} sessions, {BODY_BYTES} B");
    let mut d1 =
        Row::new("D1", what, "ev/s", Judge::Ratio(Better::AtLeast, 0.5, 0.8)).beside("file + fdatasync");
    let what = format!("the same through the engine, {WRITERS} asks in flight");
    let mut through = Row::new("D1", what, "ev/s", Judge::Shown)
        .beside("file + fdatasync")
        .note("`said` signals of 200 characters");
    let what = format!("durable append with {MANY_SESSIONS} live sessions vs {FEW_SESSIONS}");
    let mut d4 = Row::new("D4", what, "ev/s", Judge::Ratio(Better::AtLeast, 0.75, 0.9)).beside("64 sessions");

    let mut many = Arm::new(&dir.join("many"), MANY_SESSIONS)?;
    let mut few = if plan.wants("D4") { Some(Arm::new(&dir.join("few"), FEW_SESSIONS)?) } else { None };
    let rig = if plan.wants("D1") { Some(Rig::start(&dir.join("engine"), MANY_SESSIONS)?) } else { None };
    let (mut latencies, mut file_latencies) = (Vec::new(), Vec::new());
    for repetition in 0..plan.repetitions {
        let file = plan.wants("D1").then(|| file_rate(&dir.join("plain"), plan.span)).transpose()?;
        let journal = many.rate(plan.span)?;
        if let Some(few) = &mut few {
            d4.add(journal.per_second, few.rate(plan.span)?.per_second);
        }
        if let (Some(file), Some(rig)) = (&file, &rig) {
            d1.add(journal.per_second, file.per_second);
            through.add(rig.said(WRITERS, plan.span)?, file.per_second);
            file_latencies.push((file.p50_us, file.p99_us));
        }
        latencies.push((journal.p50_us, journal.p99_us));
        progress(&format!(
            "durable {}/{}: journal {:.0} ev/s",
            repetition + 1,
            plan.repetitions,
            journal.per_second
        ));
    }
    d1.note = format!("p50/p99 {} µs; file {} µs", shown(&latencies), shown(&file_latencies));
    let mut rows = Vec::new();
    if plan.wants("D1") {
        rows.extend([d1, through]);
    }
    if plan.wants("D4") {
        rows.push(d4);
    }
    Ok(rows)
}

fn shown(latencies: &[(f64, f64)]) -> String {
    let (p50, p99): (Vec<f64>, Vec<f64>) = latencies.iter().copied().unzip();
    format!("{:.0}/{:.0}", median(&p50), median(&p99))
}

/// A journal with its sessions.
struct Arm {
    journal: SqliteJournal,
    logs: Vec<Log>,
}

impl Arm {
    fn new(home: &Path, sessions: usize) -> Result<Self> {
        let journal = fixture::open(home)?;
        let logs = Scribe::new(&journal).beginnings(sessions)?;
        Ok(Self { journal, logs })
    }

    fn rate(&mut self, span: Duration) -> Result<Rate> {
        let journal = &self.journal;
        drive(&mut self.logs, span, |entries| {
            journal.append(&Batch { entries, ..Batch::default() }).context("cannot append to the journal")
        })
    }
}

fn file_rate(path: &PathBuf, span: Duration) -> Result<Rate> {
    let mut file = File::create(path)?;
    let mut logs = Log::loose(MANY_SESSIONS);
    let mut buffer = Vec::new();
    let rate = drive(&mut logs, span, |entries| {
        buffer.clear();
        for entry in &entries {
            buffer.extend_from_slice(&entry.body);
        }
        file.write_all(&buffer)?;
        Ok(file.sync_data()?)
    })?;
    drop(file);
    std::fs::remove_file(path)?;
    Ok(rate)
}

struct Rate {
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
}

struct Wish {
    entry: EventEntry,
    done: oneshot::Sender<()>,
}

/// Lets writers append in a closed loop, each to sessions of its own in turn.
fn drive(
    logs: &mut Vec<Log>,
    span: Duration,
    mut append: impl FnMut(Vec<EventEntry>) -> Result<()> + Send,
) -> Result<Rate> {
    let (inbox, mut outlet) = mpsc::channel::<Wish>(GROUP_MAX * 16);
    let shares = share(std::mem::take(logs));
    std::thread::scope(|scope| {
        let committing = scope.spawn(move || -> Result<()> {
            while let Some(first) = outlet.blocking_recv() {
                let mut entries = vec![first.entry];
                let mut waiting = vec![first.done];
                while entries.len() < GROUP_MAX
                    && let Ok(wish) = outlet.try_recv()
                {
                    entries.push(wish.entry);
                    waiting.push(wish.done);
                }
                append(entries)?;
                for done in waiting {
                    let _ = done.send(());
                }
            }
            Ok(())
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let began = Instant::now();
        let finished = runtime.block_on(async {
            let until = began + span;
            let writers: Vec<_> =
                shares.into_iter().map(|share| tokio::spawn(writer(share, inbox.clone(), until))).collect();
            let mut finished = Vec::new();
            for writer in writers {
                finished.push(writer.await?);
            }
            anyhow::Ok(finished)
        })?;
        let took = began.elapsed();
        drop(inbox);
        committing.join().map_err(|_| anyhow!("the committing thread panicked"))??;
        let mut micros = Vec::new();
        for (share, latencies) in finished {
            logs.extend(share);
            micros.extend(latencies);
        }
        Ok(Rate {
            per_second: micros.len() as f64 / took.as_secs_f64(),
            p50_us: median(&micros),
            p99_us: quantile(&micros, 0.99),
        })
    })
}

fn share(logs: Vec<Log>) -> Vec<Vec<Log>> {
    let mut shares: Vec<Vec<Log>> = (0..WRITERS).map(|_| Vec::new()).collect();
    for (number, log) in logs.into_iter().enumerate() {
        shares[number % WRITERS].push(log);
    }
    shares
}

async fn writer(mut logs: Vec<Log>, inbox: mpsc::Sender<Wish>, until: Instant) -> (Vec<Log>, Vec<f64>) {
    let mut micros = Vec::new();
    let mut next = 0;
    while Instant::now() < until {
        let (done, answered) = oneshot::channel();
        let at = next % logs.len();
        let entry = logs[at].next();
        let sent = Instant::now();
        // A closed channel means that the committing thread failed, which it says itself.
        if inbox.send(Wish { entry, done }).await.is_err() || answered.await.is_err() {
            break;
        }
        micros.push(sent.elapsed().as_secs_f64() * 1e6);
        next += 1;
    }
    (logs, micros)
}
