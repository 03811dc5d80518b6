//! A page of a hundred out of all sessions, over HTTP, by conditions that match much, little and nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::fixture::{owner, word, workspace};
use crate::http::{Caller, Client};
use crate::process::Daemon;
use crate::report::{Judge, Row, median, quantile};
use crate::{Plan, progress};

/// Pages of one repetition; fewer when they take long.
const PAGES: usize = 200;
const PAGES_MIN: usize = 20;
const LONG: Duration = Duration::from_secs(1);
/// Milliseconds a page may take.
const BAR_MS: f64 = 10.0;

/// `full` is the data folder with the catalogue of sessions.
pub(crate) fn run(plan: &Plan, full: &Path) -> Result<Vec<Row>> {
    let daemon = Daemon::start(full)?;
    let mut cases = Vec::new();
    for (what, query) in queries(plan.sessions) {
        let found = count(&daemon, &query)?;
        let what = format!("page of 100 out of {}, {what} ({found} on it): p99", plan.sessions);
        cases.push((Row::new("list", what, "ms", Judge::Below(BAR_MS)), query, Vec::new()));
    }
    for repetition in 0..plan.repetitions {
        for (row, query, p50) in &mut cases {
            let millis = latencies(&daemon, &path(query))?;
            row.figures.push(quantile(&millis, 0.99));
            p50.push(median(&millis));
        }
        progress(&format!("listing {}/{}", repetition + 1, plan.repetitions));
    }
    daemon.stop()?;
    let noted = |(row, query, p50): (Row, String, Vec<f64>)| {
        row.note(format!("p50 {:.2} ms, `{query}`", median(&p50)))
    };
    Ok(cases.into_iter().map(noted).collect())
}

/// The conditions. Owner and word of a session go together, so that some pairs never occur.
fn queries(sessions: usize) -> Vec<(&'static str, String)> {
    let rare = format!("number{:06}", sessions / 2);
    vec![
        ("no condition", String::new()),
        ("owner", format!("&owner={}", owner(3))),
        ("state", "&state=completed".to_owned()),
        ("word in one of 200", format!("&text={}", word(3))),
        ("word in one", format!("&text={rare}")),
        ("several", format!("&owner={}&state=between_turn&text={}&archived=false", owner(4), word(4))),
        ("owner and workspace that never meet", format!("&owner={}&workspace={}", owner(1), workspace(2))),
        ("owner and word that never meet", format!("&owner={}&text={}", owner(1), word(2))),
        ("word in all, owner and workspace that never meet", {
            format!("&text=session&owner={}&workspace={}", owner(1), workspace(2))
        }),
        ("two letters in none", "&text=qq".to_owned()),
    ]
}

fn count(daemon: &Daemon, query: &str) -> Result<usize> {
    let page = Client::connect(daemon)?.ask(&Caller::of(daemon).get(&path(query)))?;
    let page: Value = serde_json::from_slice(&page)?;
    Ok(page["sessions"].as_array().context("a page without sessions")?.len())
}

/// Milliseconds of one request after another.
pub(crate) fn latencies(daemon: &Daemon, path: &str) -> Result<Vec<f64>> {
    let mut client = Client::connect(daemon)?;
    let request = Caller::of(daemon).get(path);
    let mut millis = Vec::with_capacity(PAGES);
    let start = Instant::now();
    while millis.len() < PAGES_MIN || (millis.len() < PAGES && start.elapsed() < LONG) {
        let began = Instant::now();
        client.ask(&request)?;
        millis.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(millis)
}

fn path(query: &str) -> String {
    format!("/sessions?limit=100{query}")
}
