//! Notifications over HTTP: list, wait for changes, change one or many, take away.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use lanyard_api::types::{
    NotificationBulk, NotificationBulkAnswer, NotificationCount, NotificationDetail, NotificationEdit,
    NotificationPage, NotificationPurge, NotificationWhich, NotificationsPurged, Reason, RefusedNotification,
};
use lanyard_core::notification::{
    Notification, NotificationChange, NotificationKind, NotificationStatus, Severity,
};
use lanyard_core::{NotificationId, SessionId, Timestamp};
use lanyard_store::{NotificationFilter, NotificationOrder};
use serde::Deserialize;

use crate::api::App;
use crate::api::context::{Change, on_disk, query};
use crate::notifications::{BULK_MAX, NotificationError};
use crate::problem::Problem;

type Shared = State<Arc<App>>;

const PAGE_DEFAULT: usize = 100;
pub(super) const PAGE_MAX: usize = 500;
/// The longest a request may wait for a change.
pub(super) const WAIT_MS_MAX: u64 = 60_000;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Listed {
    status: Option<NotificationStatus>,
    kind: Option<NotificationKind>,
    severity: Option<Severity>,
    session: Option<SessionId>,
    open: Option<bool>,
    lasting: Option<bool>,
    cursor: Option<String>,
    limit: Option<usize>,
    after: Option<u64>,
    wait_ms: Option<u64>,
}

pub(super) async fn list(State(app): Shared, uri: Uri) -> Result<Json<NotificationPage>, Problem> {
    let asked: Listed = query(&uri)?;
    let limit = asked.limit.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&limit) {
        let title = format!("`limit` is {limit}");
        return Err(Problem::bad_request("query_invalid", title, format!("use 1 to {PAGE_MAX}")));
    }
    let order = match (asked.after, &asked.cursor) {
        (Some(_), Some(_)) => {
            let title = "`after` and `cursor` exclude each other";
            return Err(Problem::bad_request("query_invalid", title, "send one"));
        }
        (Some(after), None) => NotificationOrder::Changed { after },
        (None, cursor) => {
            let before = cursor.as_deref().map(str::parse).transpose().map_err(|_| {
                Problem::bad_request("cursor_bad", "the cursor cannot be read", "begin again without one")
            })?;
            NotificationOrder::Newest { before }
        }
    };
    if let (Some(after), Some(wait_ms)) = (asked.after, asked.wait_ms) {
        changed(&app, after, wait_ms).await;
    }
    let filter = filter_of(&asked);
    let (mut found, counts, last) = on_disk(&app, move |store| {
        let last = store.last_notification_change()?;
        Ok((store.notifications(&filter, order, limit + 1)?, store.notification_counts()?, last))
    })
    .await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let after = match order {
        // Whoever asks for what is after this one misses nothing, also where there is more than fits.
        NotificationOrder::Changed { .. } if more => found.last().map_or(last, |held| held.change),
        NotificationOrder::Changed { .. } | NotificationOrder::Newest { .. } => last,
    };
    let newest = matches!(order, NotificationOrder::Newest { .. });
    let next = found.last().filter(|_| more && newest).map(|held| held.id.to_string());
    let count = |(status, notifications)| NotificationCount { status, notifications };
    Ok(Json(NotificationPage {
        notifications: found,
        next,
        after,
        counts: counts.into_iter().map(count).collect(),
    }))
}

fn filter_of(asked: &Listed) -> NotificationFilter {
    NotificationFilter {
        status: asked.status,
        kind: asked.kind,
        severity: asked.severity,
        session: asked.session,
        open: asked.open,
        lasting: asked.lasting,
        ..NotificationFilter::default()
    }
}

/// Waits until something has changed after this, or for as long as asked.
async fn changed(app: &App, after: u64, wait_ms: u64) {
    let mut changes = app.notifications.changes();
    let waited = async { changes.wait_for(|last| *last > after).await.is_ok() };
    let _ = tokio::time::timeout(Duration::from_millis(wait_ms.min(WAIT_MS_MAX)), waited).await;
}

fn id_of(text: &str) -> Result<NotificationId, Problem> {
    text.parse().map_err(|error| {
        Problem::bad_request(
            "notification_id_bad",
            format!("`{text}` is not a notification's id: {error}"),
            "list them with `lanyard notifications`",
        )
    })
}

pub(super) async fn get(
    State(app): Shared,
    Path(id): Path<String>,
) -> Result<Json<NotificationDetail>, Problem> {
    let id = id_of(&id)?;
    let found = on_disk(&app, move |store| store.notification(id)).await?;
    let notification = found.ok_or(NotificationError::Unknown(id))?;
    let deliveries = app.notifications.aside(move |all| all.deliveries(id)).await?;
    Ok(Json(NotificationDetail { notification, deliveries }))
}

pub(super) async fn edit(
    State(app): Shared,
    Path(id): Path<String>,
    change: Change<NotificationEdit>,
) -> Result<Json<Notification>, Problem> {
    let id = id_of(&id)?;
    let NotificationEdit { status, until, snooze_ms, note } = change.body;
    let wish = wish(status, until, snooze_ms, app.clock.now())?;
    let by = change.actor;
    let changed = app.notifications.aside(move |all| all.change(id, &wish, note.as_deref(), &by));
    Ok(Json(changed.await?))
}

/// What a body asks for. A snooze needs a time, and only one.
fn wish(
    status: NotificationStatus,
    until: Option<Timestamp>,
    snooze_ms: Option<u64>,
    now: Timestamp,
) -> Result<NotificationChange, Problem> {
    let wrong = |title: &str| {
        let advice = "send `until` (a time) or `snooze_ms` with `snoozed`, and neither with anything else";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "snooze_invalid", title, advice)
    };
    let until = match (until, snooze_ms) {
        (Some(_), Some(_)) => return Err(wrong("a snooze has both `until` and `snooze_ms`")),
        (until, None) => until,
        (None, Some(ms)) => Some(now.plus_millis(ms)),
    };
    match (status, until) {
        (NotificationStatus::Snoozed, Some(until)) => Ok(NotificationChange::Snooze { until }),
        (NotificationStatus::Snoozed, None) => Err(wrong("a snooze has no time at which it ends")),
        (_, Some(_)) => Err(wrong("only a snooze has a time at which it ends")),
        (NotificationStatus::New, None) => Ok(NotificationChange::Renew),
        (NotificationStatus::Read, None) => Ok(NotificationChange::Read),
        (NotificationStatus::Acknowledged, None) => Ok(NotificationChange::Acknowledge),
        (NotificationStatus::Dismissed, None) => Ok(NotificationChange::Dismiss),
    }
}

pub(super) async fn bulk(
    State(app): Shared,
    change: Change<NotificationBulk>,
) -> Result<Json<NotificationBulkAnswer>, Problem> {
    let NotificationBulk { filter: which, status, until, snooze_ms, note, limit } = change.body;
    if which == NotificationWhich::default() {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "bulk_without_filter",
            "the filter has no condition",
            "name `ids`, `status`, `kind`, `severity` or `session`, or say `\"all\": true`",
        ));
    }
    let limit = limit.unwrap_or(PAGE_DEFAULT);
    if !(1..=BULK_MAX).contains(&limit) {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "bulk_limit_bad",
            format!("`limit` is {limit}"),
            format!("use 1 to {BULK_MAX}"),
        ));
    }
    let wish = wish(status, until, snooze_ms, app.clock.now())?;
    let by = change.actor;
    let filter = NotificationFilter {
        status: which.status,
        kind: which.kind,
        severity: which.severity,
        session: which.session,
        ids: which.ids,
        open: which.all.then_some(true),
        ..NotificationFilter::default()
    };
    let bulked = app.notifications.aside(move |all| all.bulk(&filter, (&wish, note.as_deref()), &by, limit));
    let bulked = bulked.await?;
    let refused = bulked.refused.into_iter().map(|(id, refusal)| RefusedNotification {
        id,
        code: refusal.code().to_owned(),
        title: refusal.to_string(),
    });
    Ok(Json(NotificationBulkAnswer {
        changed: bulked.changed,
        unchanged: bulked.unchanged,
        refused: refused.collect(),
        more: bulked.more,
    }))
}

pub(super) async fn remove(
    State(app): Shared,
    Path(id): Path<String>,
    _: Change<Reason>,
) -> Result<StatusCode, Problem> {
    let id = id_of(&id)?;
    app.notifications.aside(move |all| all.remove(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn purge(
    State(app): Shared,
    change: Change<NotificationPurge>,
) -> Result<Json<NotificationsPurged>, Problem> {
    let before = change.body.older_than_ms.map(|ms| app.clock.now().minus_millis(ms));
    let mut removed = 0;
    loop {
        // Page by page, so that nobody else waits for all of it.
        match app.notifications.aside(move |all| all.purge(before)).await? {
            0 => break,
            some => removed += some as u64,
        }
    }
    Ok(Json(NotificationsPurged { removed }))
}
