//! `lanyard metrics`: how well people get back to their sessions.

use lanyard_api::types::{ContinuityCounts, ContinuityReport};
use lanyard_client::Route;
use lanyard_core::continuity::ContinuityStatus;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::time::span;

const EXAMPLES: &str = "\
Every attach and every resume that succeeds or fails is counted. Rates are taken over a window and
need a minimum of attempts; a rate beyond its limit is an alert, and a notification, until it is
back by a margin. What names no session is no failure. All numbers are at /metrics for Prometheus.

Examples:
  lanyard metrics
  lanyard metrics --json
  lanyard token new --role observer prometheus";

/// Show how well people get back to their sessions
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Metrics {}

impl Metrics {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let mut client = context.client().await?;
        let report: ContinuityReport = client.get(&Route::to(&["metrics", "continuity"])).await?;
        if context.out.is_json() {
            return context.out.json(&report);
        }
        context.out.data(&told(&report))
    }
}

fn told(report: &ContinuityReport) -> String {
    let status = match report.continuity_status {
        ContinuityStatus::Ok => "ok",
        ContinuityStatus::Degraded => "degraded",
    };
    let rate =
        |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.1} %", rate * 100.0));
    let window = span(report.rules.window_ms);
    let mut lines = vec![format!("continuity       {status}")];
    for alert in &report.alerts {
        let name = alert.code.as_str();
        lines.push(format!(
            "  alert          {name}: {:.3}, the limit is {:.3}",
            alert.actual, alert.threshold
        ));
        lines.push(format!("                 {}; it ends at {:.3}", alert.text, alert.clears_at));
    }
    let rates = &report.rates;
    lines.push(format!("attach success   {} in the last {window}", rate(rates.attach_success_rate)));
    lines.push(format!("resume success   {} in the last {window}", rate(rates.resume_success_rate)));
    lines.push(format!("accidental new   {} in the last {window}", rate(rates.accidental_new_session_rate)));
    lines.push(String::new());
    lines.push(format!("{:<26}{:>10}{:>12}", "", format!("last {window}"), "since ever"));
    for (name, of) in ROWS {
        lines.push(format!("{name:<26}{:>10}{:>12}", of(&report.window), of(&report.totals)));
    }
    lines.join("\n")
}

type Row = (&'static str, fn(&ContinuityCounts) -> u64);

const ROWS: [Row; 14] = [
    ("sessions created", |counts| counts.sessions_created),
    ("  by accident", |counts| counts.accidental_new_sessions),
    ("attaches", |counts| counts.attach_attempts),
    ("  failed", |counts| counts.attach_failed),
    ("resumes", |counts| counts.resume_attempts),
    ("  failed", |counts| counts.resume_failed),
    ("  exact", |counts| counts.continuity.exact),
    ("  native", |counts| counts.continuity.native),
    ("  replayed", |counts| counts.continuity.replayed),
    ("  preamble", |counts| counts.continuity.preamble),
    ("  lost", |counts| counts.continuity.lost),
    ("refused as busy", |counts| counts.busy_rejections),
    ("duplicates suppressed", |counts| counts.duplicate_suppressions),
    ("  of turns", |counts| counts.duplicate_turns),
];
