//! T1: turn admission. Alone, beside one append to a file; and by 64 clients at once over HTTP.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::engine::Rig;
use crate::fixture::BODY_BYTES;
use crate::http::{Caller, closed_loop};
use crate::process::Daemon;
use crate::report::{Better, Judge, Row, median, quantile};
use crate::{Plan, progress};

const SESSIONS: usize = 10_000;
const CLIENTS: usize = 64;
/// Turns of one repetition, one after the other.
const TURNS: usize = 400;
/// Turns of one repetition over HTTP.
const HTTP_TURNS: usize = 1_800;

pub(crate) fn run(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let alone = alone(plan, dir)?;
    let [rate, p99] = over_http(plan, dir)?;
    Ok(vec![alone, rate, p99])
}

fn alone(plan: &Plan, dir: &Path) -> Result<Row> {
    let rig = Rig::start(&dir.join("engine"), SESSIONS)?;
    let what = format!("turn admission with a key, one at a time, {SESSIONS} sessions: p50");
    let mut row =
        Row::new("T1", what, "µs", Judge::Ratio(Better::AtMost, 3.0, 2.0)).beside("file append + fdatasync");
    // The first ones pay for pages and code that the others find ready.
    rig.turns(TURNS / 4)?;
    for repetition in 0..plan.repetitions {
        let file = median(&appends(&dir.join("plain"), TURNS)?);
        let turns = median(&rig.turns(TURNS)?);
        row.add(turns, file);
        progress(&format!("turns {}/{}: {turns:.0} µs, file {file:.0} µs", repetition + 1, plan.repetitions));
    }
    Ok(row)
}

/// Appends to a file, each made durable; microseconds of each.
fn appends(path: &Path, count: usize) -> Result<Vec<f64>> {
    let mut file = File::create(path)?;
    let body = vec![b'x'; BODY_BYTES];
    let mut micros = Vec::with_capacity(count);
    for _ in 0..count {
        let began = Instant::now();
        file.write_all(&body)?;
        file.sync_data()?;
        micros.push(began.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(path)?;
    Ok(micros)
}

fn over_http(plan: &Plan, dir: &Path) -> Result<[Row; 2]> {
    let daemon = Daemon::start(&dir.join("http"))?;
    let caller = Caller::of(&daemon);
    let create = || caller.post("/sessions", None, "{\"title\":\"bench\"}");
    closed_loop(&daemon, CLIENTS, (0..SESSIONS).map(|_| create())).context("cannot create sessions")?;
    let mut sessions = all_sessions(&daemon)?.into_iter();

    let what = format!("turn admission over HTTP, {CLIENTS} clients");
    let mut rate = Row::new("T1", what.clone(), "turns/s", Judge::Shown)
        .note("against Restate: not measured here, it is not on this machine");
    let mut p99 = Row::new("T1", format!("{what}: p99"), "ms", Judge::Shown);
    let prompt = "x".repeat(200);
    for repetition in 0..plan.repetitions {
        let turns: Vec<Vec<u8>> = sessions
            .by_ref()
            .take(HTTP_TURNS)
            .map(|id| {
                let body = format!("{{\"prompt\":\"{prompt}\"}}");
                caller.post(&format!("/sessions/{id}/turns"), Some(&format!("key-{id}")), &body)
            })
            .collect();
        let load = closed_loop(&daemon, CLIENTS, turns).context("cannot start turns")?;
        rate.figures.push(load.per_second);
        p99.figures.push(quantile(&load.millis, 0.99));
        progress(&format!(
            "turns over HTTP {}/{}: {:.0}/s",
            repetition + 1,
            plan.repetitions,
            load.per_second
        ));
    }
    daemon.stop()?;
    Ok([rate, p99])
}

/// The ids of all sessions, newest first.
fn all_sessions(daemon: &Daemon) -> Result<Vec<String>> {
    let caller = Caller::of(daemon);
    let mut client = crate::http::Client::connect(daemon)?;
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = client.ask(&caller.get(&format!("/sessions?limit=1000{cursor}")))?;
        let page: Value = serde_json::from_slice(&page)?;
        let rows = page["sessions"].as_array().context("a page without sessions")?;
        ids.extend(rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(ids),
        }
    }
}
