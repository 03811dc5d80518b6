//! How well people got back to their sessions over time, and the alerts of that time.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use lanyard_api::types::{HealthAlert, HealthHistory, HealthStep};
use lanyard_core::Timestamp;
use lanyard_core::continuity::{AlertKind, Counter, Tally, rates};
use lanyard_core::notification::{Notification, NotificationKind};
use lanyard_store::{NotificationFilter, NotificationOrder};
use serde::Deserialize;

use crate::api::App;
use crate::api::context::{on_disk, query};
use crate::problem::Problem;
use lanyard_engine::continuity::HISTORY_MS;

type Shared = State<Arc<App>>;

const HOUR_MS: u64 = 3_600_000;
const HOURS_DEFAULT: u64 = 24;
pub(super) const HOURS_MAX: u64 = HISTORY_MS / HOUR_MS;
/// Steps of an answer.
const STEPS: u64 = 96;
/// Alerts of an answer.
const ALERTS_MAX: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Asked {
    hours: Option<u64>,
}

pub(super) async fn history(State(app): Shared, uri: Uri) -> Result<Json<HealthHistory>, Problem> {
    let Asked { hours } = query(&uri)?;
    let hours = hours.unwrap_or(HOURS_DEFAULT);
    if !(1..=HOURS_MAX).contains(&hours) {
        let title = format!("`hours` is {hours}");
        return Err(Problem::bad_request("query_invalid", title, format!("use 1 to {HOURS_MAX}")));
    }
    let (to, span_ms) = (app.clock.now(), hours * HOUR_MS);
    let (from, step_ms) = (to.minus_millis(span_ms), (span_ms / STEPS).max(60_000));
    let series = app.continuity.series(from, to, step_ms);
    let alerts = on_disk(&app, move |store| {
        let kind = Some(NotificationKind::ContinuityAlert);
        let filter = NotificationFilter { kind, ..NotificationFilter::default() };
        store.notifications(&filter, NotificationOrder::Newest { before: None }, ALERTS_MAX)
    })
    .await?;
    let mut alerts: Vec<HealthAlert> = alerts.iter().filter_map(|held| alert(held, from)).collect();
    alerts.reverse();
    let steps = series.into_iter().map(|(at, tally)| step(at, &tally)).collect();
    Ok(Json(HealthHistory { from, to, step_ms, steps, alerts }))
}

fn alert(held: &Notification, from: Timestamp) -> Option<HealthAlert> {
    let code = AlertKind::ALL.into_iter().find(|kind| Some(kind.as_str()) == held.subject.as_deref())?;
    let lasted = held.over_at.is_none_or(|over| over >= from);
    let (title, began_at, ended_at) = (held.title.clone(), held.raised_at, held.over_at);
    lasted.then_some(HealthAlert { code, title, began_at, ended_at })
}

fn step(at: Timestamp, tally: &Tally) -> HealthStep {
    let of = |counter| tally.get(counter);
    let (attach_failed, resume_failed) = (of(Counter::AttachFailed), of(Counter::ResumeFailed));
    HealthStep {
        at,
        rates: rates(tally),
        attach_attempts: of(Counter::AttachSucceeded) + attach_failed,
        attach_failed,
        resume_attempts: of(Counter::ResumeSucceeded) + resume_failed,
        resume_failed,
        sessions_created: of(Counter::SessionsCreated),
        busy_rejections: of(Counter::BusyRejections),
    }
}
