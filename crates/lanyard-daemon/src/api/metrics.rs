//! Numbers for machines: how continuity does, as JSON, and all of it as Prometheus reads it. Nothing here counts
//! anything: every number is kept where it changes.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{ContinuityCounts, ContinuityLabels, ContinuityReport};
use lanyard_core::continuity::{Counter, Tally, rates, status};

use crate::api::App;
use crate::api::context::on_disk;
use crate::problem::Problem;

type Shared = State<Arc<App>>;

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) async fn continuity(State(app): Shared) -> Json<ContinuityReport> {
    Json(report(&app))
}

fn report(app: &App) -> ContinuityReport {
    let now = app.clock.now();
    let (totals, window) = app.continuity.sums(now);
    let (alerts, _) = app.continuity.alerts(now);
    ContinuityReport {
        continuity_status: status(&alerts),
        now,
        rates: rates(&window),
        alerts,
        window: counts(&window),
        totals: counts(&totals),
        rules: app.continuity.rules,
    }
}

fn counts(tally: &Tally) -> ContinuityCounts {
    let of = |counter| tally.get(counter);
    let (attached, not_attached) = (of(Counter::AttachSucceeded), of(Counter::AttachFailed));
    let (resumed, not_resumed) = (of(Counter::ResumeSucceeded), of(Counter::ResumeFailed));
    ContinuityCounts {
        sessions_created: of(Counter::SessionsCreated),
        accidental_new_sessions: of(Counter::AccidentalNewSessions),
        attach_attempts: attached + not_attached,
        attach_succeeded: attached,
        attach_failed: not_attached,
        resume_attempts: resumed + not_resumed,
        resume_succeeded: resumed,
        resume_failed: not_resumed,
        busy_rejections: of(Counter::BusyRejections),
        duplicate_suppressions: of(Counter::DuplicateTurns) + of(Counter::DuplicateRequests),
        duplicate_turns: of(Counter::DuplicateTurns),
        continuity: ContinuityLabels {
            exact: of(Counter::ResumedExact),
            native: of(Counter::ResumedNative),
            replayed: of(Counter::ResumedReplayed),
            preamble: of(Counter::ResumedPreamble),
            lost: of(Counter::ResumedLost),
        },
    }
}

pub(super) async fn prometheus(State(app): Shared) -> Result<Response, Problem> {
    let (states, notifications, deliveries) =
        on_disk(&app, |store| Ok((store.states()?, store.notification_counts()?, store.delivery_counts()?)))
            .await?;
    let mut page = Page::default();
    let of_state = |(state, count): &(lanyard_core::session::StateName, u64)| (state.as_str(), *count);
    page.labelled("sessions", GAUGE, "Sessions, by state.", "state", states.iter().map(of_state));
    about_continuity(&mut page, &report(&app));
    about_the_daemon(&mut page, &app);
    let of_status =
        |(status, count): &(lanyard_core::notification::NotificationStatus, u64)| (status.as_str(), *count);
    let notifications = notifications.iter().map(of_status);
    page.labelled("notifications", GAUGE, "Notifications, by status.", "status", notifications);
    let waiting = [("pending", deliveries.0), ("dead", deliveries.1)];
    let help = "Deliveries of notifications that wait, and that were given up.";
    page.labelled("notification_deliveries", GAUGE, help, "state", waiting);
    Ok(([(header::CONTENT_TYPE, PROMETHEUS)], page.0).into_response())
}

fn about_continuity(page: &mut Page, report: &ContinuityReport) {
    let totals = &report.totals;
    page.one("sessions_created_total", COUNTER, "Sessions that were made.", totals.sessions_created);
    let help = "Sessions that were made right after a failure to get back to an old one.";
    page.one("accidental_new_sessions_total", COUNTER, help, totals.accidental_new_sessions);
    let attaches = [("succeeded", totals.attach_succeeded), ("failed", totals.attach_failed)];
    page.labelled("attach_total", COUNTER, "Attempts to attach, by result.", "result", attaches);
    let resumes = [("succeeded", totals.resume_succeeded), ("failed", totals.resume_failed)];
    let help = "Attempts to go on with a conversation, by result.";
    page.labelled("resume_total", COUNTER, help, "result", resumes);
    let labels = &totals.continuity;
    let labels = [
        ("exact", labels.exact),
        ("native", labels.native),
        ("replayed", labels.replayed),
        ("preamble", labels.preamble),
        ("lost", labels.lost),
    ];
    page.labelled("resumed_total", COUNTER, "How conversations went on.", "continuity", labels);
    let help = "Requests that were refused because another turn or writer was active.";
    page.one("busy_rejections_total", COUNTER, help, totals.busy_rejections);
    let others = totals.duplicate_suppressions - totals.duplicate_turns;
    let duplicates = [("turn", totals.duplicate_turns), ("request", others)];
    let help = "Repeats that were not carried out again.";
    page.labelled("duplicates_suppressed_total", COUNTER, help, "of", duplicates);
    let degraded = u64::from(!report.alerts.is_empty());
    page.one("continuity_degraded", GAUGE, "Whether any continuity alert holds.", degraded);
    let rates = [
        ("attach_success", report.rates.attach_success_rate),
        ("resume_success", report.rates.resume_success_rate),
        ("accidental_new_session", report.rates.accidental_new_session_rate),
    ];
    let known = rates.into_iter().filter_map(|(name, rate)| Some((name, rate?)));
    let help = "Rates over the window; one without attempts is absent.";
    page.labelled("continuity_rate", GAUGE, help, "rate", known);
}

fn about_the_daemon(page: &mut Page, app: &App) {
    let stats = &app.engine.stats;
    let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let version = [(env!("CARGO_PKG_VERSION"), 1_u64)];
    page.labelled("build_info", GAUGE, "The daemon's version.", "version", version);
    let started = app.started_at.as_millis().div_euclid(1_000);
    page.one("start_time_seconds", GAUGE, "When the daemon started, in seconds since 1970.", started);
    page.one("commits_total", COUNTER, "Commits since the daemon started.", of(&stats.commits));
    page.one("events_total", COUNTER, "Events written since the daemon started.", of(&stats.events));
    page.one("sessions_in_memory", GAUGE, "Sessions the engine holds in memory.", of(&stats.residents));
    page.one("readers", GAUGE, "Live readers of logs.", app.hub.readers());
    let help = "Tool calls that passed and could not be written down, since the daemon started.";
    page.one("calls_unrecorded_total", COUNTER, help, of(&stats.unrecorded));
    let help = "Secrets taken out of what was written, since the daemon started.";
    page.one("redactions_total", COUNTER, help, stats.redaction.taken());
    let up = u64::from(stats.storage_error().is_none());
    page.one("storage_up", GAUGE, "Whether the journal can be written.", up);
}

const COUNTER: &str = "counter";
const GAUGE: &str = "gauge";

/// Text in the exposition format of Prometheus. Labels are words of our own, so nothing has to be escaped.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP lanyard_{name} {help}\n# TYPE lanyard_{name} {kind}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, kind, help);
        let _ = writeln!(self.0, "lanyard_{name} {value}");
    }

    fn labelled<'a, T: std::fmt::Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, T)>,
    ) {
        self.head(name, kind, help);
        for (of, value) in values {
            let _ = writeln!(self.0, "lanyard_{name}{{{label}=\"{of}\"}} {value}");
        }
    }
}
