//! A name looked up among all sessions, over HTTP: `last`, parts of an id, a title, and a name that nothing has.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::http::{Caller, Client};
use crate::listing::latencies;
use crate::process::Daemon;
use crate::report::{Judge, Row, median, quantile};
use crate::{Plan, progress};

/// Milliseconds a look-up may take.
const BAR_MS: f64 = 100.0;
/// Characters of an id that listings show.
const SHORT: usize = 6;

/// `full` is the data folder with the catalogue of sessions.
pub(crate) fn run(plan: &Plan, full: &Path) -> Result<Vec<Row>> {
    let daemon = Daemon::start(full)?;
    let page = Client::connect(&daemon)?.ask(&Caller::of(&daemon).get("/sessions?limit=1"))?;
    let page: Value = serde_json::from_slice(&page)?;
    let session = page["sessions"].get(0).context("no session")?;
    let id = session["id"].as_str().context("a session without an id")?;
    let title = session["title"].as_str().context("a session without a title")?;
    let names = [
        ("`last`", "last"),
        ("the end of an id", &id[id.len() - SHORT..]),
        ("the beginning of an id", &id[..id.len() - 2]),
        ("a title", title),
        ("a name that nothing has", "nothing-is-called-this"),
    ];
    let mut cases = Vec::new();
    for (what, name) in names {
        let path = format!("/ids?kind=session&name={}", name.replace(' ', "%20"));
        let what = format!("name among {} sessions, {what}: p99", plan.sessions);
        cases.push((Row::new("names", what, "ms", Judge::Below(BAR_MS)), path, Vec::new()));
    }
    for repetition in 0..plan.repetitions {
        for (row, path, p50) in &mut cases {
            let millis = latencies(&daemon, path)?;
            row.figures.push(quantile(&millis, 0.99));
            p50.push(median(&millis));
        }
        progress(&format!("names {}/{}", repetition + 1, plan.repetitions));
    }
    daemon.stop()?;
    let noted = |(row, _, p50): (Row, String, Vec<f64>)| row.note(format!("p50 {:.2} ms", median(&p50)));
    Ok(cases.into_iter().map(noted).collect())
}
