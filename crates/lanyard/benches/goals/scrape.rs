//! `/metrics` as Prometheus asks for it, with all sessions there are.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::http::{Caller, Client};
use crate::process::Daemon;
use crate::report::{Judge, Row, median, quantile};
use crate::{Plan, progress};

/// Scrapes of one repetition.
const SCRAPES: usize = 200;
/// Milliseconds a scrape may take.
const BAR_MS: f64 = 50.0;

/// `full` is the data folder with the catalogue of sessions.
pub(crate) fn run(plan: &Plan, full: &Path) -> Result<Vec<Row>> {
    let daemon = Daemon::start(full)?;
    let request = Caller::of(&daemon).get_plain("/metrics");
    let mut client = Client::connect(&daemon)?;
    let page = String::from_utf8(client.ask(&request)?)?;
    ensure!(page.contains("lanyard_sessions{state="), "no metrics: {page}");
    let what = format!("/metrics with {} sessions: p99", plan.sessions);
    let mut row = Row::new("scrape", what, "ms", Judge::Below(BAR_MS));
    let mut p50 = Vec::new();
    for repetition in 0..plan.repetitions {
        let mut millis = Vec::with_capacity(SCRAPES);
        for _ in 0..SCRAPES {
            let began = Instant::now();
            client.ask(&request)?;
            millis.push(began.elapsed().as_secs_f64() * 1e3);
        }
        row.figures.push(quantile(&millis, 0.99));
        p50.push(median(&millis));
        progress(&format!("scraping {}/{}", repetition + 1, plan.repetitions));
    }
    daemon.stop()?;
    Ok(vec![row.note(format!("p50 {:.2} ms, {} bytes", median(&p50), page.len()))])
}
