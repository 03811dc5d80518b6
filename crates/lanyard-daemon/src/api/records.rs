//! The stream of records: what changes in tasks, plans, flows, notifications and mail, after a position.
//!
//! A reader is a position. It is woken after a commit and reads the store from there, so a slow one delays no other and a
//! daemon that comes back goes on where the client was.

mod beside;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use lanyard_api::types::RecordFrame;
use lanyard_core::FollowedKind;
use lanyard_store::{ChangeFilter, ChangedBody, FollowedRef, RecordChange};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::api::App;
use crate::api::attach::{Begin, Upgrade, event_stream, no_token, serve, upgrade};
use crate::api::context::{on_disk, query};
use crate::api::directory::last_event_id;
use crate::api::plans::on_families_disk;
use crate::api::right::{Frames, Right};
use crate::api::tasks::plan_id;
use crate::problem::Problem;

use crate::server::ConnectionSlot;
use lanyard_engine::hub::{BEAT, HEARTBEAT, RecordsHead, control, frame};

use beside::OpenGates;

/// Records that one stream may name.
pub(super) const RECORDS_MAX: usize = 100;
/// Changes read and sent at a time.
const PAGE: usize = 200;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Asked {
    after: Option<u64>,
    kind: Option<String>,
    plan: Option<String>,
    record: Option<String>,
}

pub(super) async fn stream(
    State(app): State<Arc<App>>,
    Extension(right): Extension<Right>,
    place: Option<Extension<ConnectionSlot>>,
    headers: HeaderMap,
    uri: Uri,
    offered: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = upgrade(&headers, offered)?;
    no_token(&uri)?;
    let asked: Asked = query(&uri)?;
    let filter = filter(&app, &asked).await?;
    let last = on_disk(&app, |store| store.last_change()).await?;
    let after = last_event_id(&headers)?.or(asked.after);
    let after = after.map_or(Begin::Tail, Begin::After).after(last)?;
    let feed = RecordFeed::new(app, filter, after, last).stream();
    Ok(match upgrade {
        Upgrade::Socket(upgrade) => {
            serve(*upgrade, Frames::new(Box::pin(feed), right)?, None, place.map(|place| place.0))
        }
        Upgrade::Events => event_stream(Body::from_stream(feed.map(Ok::<_, std::convert::Infallible>))),
    })
}

async fn filter(app: &Arc<App>, asked: &Asked) -> Result<ChangeFilter, Problem> {
    let kinds = asked.kind.as_deref().map(kinds).transpose()?;
    let records = asked.record.as_deref().map(records).transpose()?.unwrap_or_default();
    let Some(plan) = asked.plan.clone() else {
        return Ok(ChangeFilter { kinds: kinds.unwrap_or_default(), records, plan: None });
    };
    let of_plans = [FollowedKind::Plan, FollowedKind::Task];
    if kinds.as_ref().is_some_and(|kinds| kinds.iter().any(|kind| !of_plans.contains(kind))) {
        return Err(Problem::bad_request(
            "query_conflict",
            "`plan` selects a plan and its tasks, and `kind` names another kind",
            "leave `kind` out, or send `kind=plan`, `kind=task` or both",
        ));
    }
    let plan = on_families_disk(app, move |store| plan_id(store, &plan)).await?;
    Ok(ChangeFilter { kinds: kinds.unwrap_or_default(), records, plan: Some(plan) })
}

fn kinds(text: &str) -> Result<Vec<FollowedKind>, Problem> {
    let kind = |name: &str| {
        FollowedKind::named(name).ok_or_else(|| {
            Problem::bad_request(
                "record_kind_unknown",
                format!("`{name}` is not a kind of record that can be followed"),
                "use task, plan, flow, notification or mail, separated by commas; a session is followed with \
                 /sessions/{id}/attach",
            )
        })
    };
    text.split(',').map(|name| kind(name.trim())).collect()
}

fn records(text: &str) -> Result<Vec<FollowedRef>, Problem> {
    let record = |name: &str| {
        FollowedRef::parse(name).ok_or_else(|| {
            Problem::bad_request(
                "record_id_bad",
                format!("`{name}` is not the id of a task, plan, flow, notification or mail"),
                "send ids as the listings show them, separated by commas",
            )
        })
    };
    let records: Vec<FollowedRef> =
        text.split(',').map(|name| record(name.trim())).collect::<Result<_, _>>()?;
    if records.len() > RECORDS_MAX {
        let title = format!("`record` names {} records", records.len());
        let advice = format!("name at most {RECORDS_MAX}, or follow all records of a kind");
        return Err(Problem::bad_request("query_invalid", title, advice));
    }
    Ok(records)
}

/// One reader of records.
struct RecordFeed {
    app: Arc<App>,
    filter: Arc<ChangeFilter>,
    /// Everything that matches up to here was sent.
    after: u64,
    head: watch::Receiver<RecordsHead>,
    gates: OpenGates,
    stage: Stage,
    beat: Interval,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Hello { last: u64 },
    CatchingUp,
    Live,
    Over,
}

impl RecordFeed {
    fn new(app: Arc<App>, filter: ChangeFilter, after: u64, last: u64) -> Self {
        let mut beat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (head, gates) = (app.hub.records(), OpenGates::of(&app, &filter));
        Self { app, filter: Arc::new(filter), after, head, gates, stage: Stage::Hello { last }, beat }
    }

    fn stream(self) -> impl Stream<Item = Bytes> + Send {
        unfold(self, |mut feed| async move { feed.next().await.map(|piece| (piece, feed)) })
    }

    /// The next frames; none after the last.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let piece = match self.stage {
                Stage::Hello { last } => {
                    self.stage = Stage::CatchingUp;
                    let heartbeat_ms = u64::try_from(HEARTBEAT.as_millis()).unwrap_or(u64::MAX);
                    let hello = RecordFrame::Connected { after: self.after, last, heartbeat_ms };
                    control("connected", &hello)
                }
                Stage::CatchingUp | Stage::Live => self.read().await,
                Stage::Over => return None,
            };
            if !piece.is_empty() {
                return Some(piece);
            }
        }
    }

    /// What changed, or what a reader that has everything gets. Nothing when there may be more to read.
    async fn read(&mut self) -> Bytes {
        // Looked at before the store is: what is committed in between wakes this reader again.
        if self.head.borrow_and_update().closing {
            return self.goodbye("closing");
        }
        let (filter, after) = (self.filter.clone(), self.after);
        let page = on_disk(&self.app, move |store| store.record_changes(&filter, after, PAGE)).await;
        let Ok(page) = page else { return self.goodbye("storage_unavailable") };
        self.after = page.through;
        if !page.changes.is_empty() {
            self.gates.stale = true;
            return framed(&page.changes);
        }
        if page.more {
            return Bytes::new();
        }
        if self.stage == Stage::CatchingUp {
            self.stage = Stage::Live;
            return positioned(self.after, &RecordFrame::Ready { position: self.after });
        }
        match self.gates.changed(&self.app).await {
            Ok(Some(gates)) => control("approvals", &RecordFrame::Approvals { gates }),
            Ok(None) => self.wait().await,
            Err(_) => self.goodbye("storage_unavailable"),
        }
    }

    /// Waits for a change, and keeps a quiet stream alive.
    async fn wait(&mut self) -> Bytes {
        tokio::select! {
            changed = self.head.changed() => match changed {
                Ok(()) => Bytes::new(),
                Err(_) => self.goodbye("closing"),
            },
            () = self.gates.stir() => Bytes::new(),
            _ = self.beat.tick() => BEAT,
        }
    }

    fn goodbye(&mut self, why: &str) -> Bytes {
        self.stage = Stage::Over;
        control("goodbye", &RecordFrame::Goodbye { why: why.to_owned() })
    }
}

fn framed(changes: &[RecordChange]) -> Bytes {
    let mut frames = BytesMut::new();
    for change in changes {
        frame(&mut frames, change.position, &data(change));
    }
    frames.freeze()
}

fn positioned(position: u64, data: &RecordFrame) -> Bytes {
    let mut frames = BytesMut::new();
    frame(&mut frames, position, &encoded(data));
    frames.freeze()
}

fn encoded(data: &RecordFrame) -> Bytes {
    // A frame has no map whose keys are no text, so it can be written.
    serde_json::to_vec(data).unwrap_or_default().into()
}

/// The stored entry of a log is sent as it is, with its place before it.
fn data(change: &RecordChange) -> Bytes {
    let RecordChange { position, of, seq, body } = change;
    let (position, kind, record) = (*position, of.kind, of.to_string());
    let whole = match body {
        ChangedBody::Removed => return encoded(&RecordFrame::Removed { position, kind, record }),
        ChangedBody::Damaged => None,
        ChangedBody::Whole(body) if kind.has_log() => body.strip_prefix(b"{").map(|rest| {
            let place = format!(r#"{{"position":{position},"kind":"{}","record":"{record}","#, kind.as_str());
            [place.as_bytes(), rest].concat().into()
        }),
        ChangedBody::Whole(body) => serde_json::from_slice(body)
            .ok()
            .map(|state| encoded(&RecordFrame::State { position, kind, record: record.clone(), state })),
    };
    whole.unwrap_or_else(|| encoded(&RecordFrame::Damaged { position, kind, record, seq: *seq }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_a_log_keeps_its_bytes_and_gets_its_place() {
        let of = FollowedRef { kind: FollowedKind::Task, id: 7 };
        let body = ChangedBody::Whole(br#"{"task":"t","seq":2,"type":"task.started","data":{}}"#.to_vec());
        let change = RecordChange { position: 9, of, seq: 2, body };
        let expected = format!(
            r#"{{"position":9,"kind":"task","record":"{of}","task":"t","seq":2,"type":"task.started","data":{{}}}}"#
        );
        assert_eq!(data(&change), expected.as_bytes());
    }

    #[test]
    fn what_cannot_be_shown_says_so() {
        let of = FollowedRef { kind: FollowedKind::Mail, id: 7 };
        let shown = |body| {
            let change = RecordChange { position: 9, of, seq: 0, body };
            serde_json::from_slice::<RecordFrame>(&data(&change)).unwrap()
        };
        let (kind, record) = (of.kind, of.to_string());
        let removed = RecordFrame::Removed { position: 9, kind, record: record.clone() };
        assert_eq!(shown(ChangedBody::Removed), removed);
        let damaged = RecordFrame::Damaged { position: 9, kind, record, seq: 0 };
        assert_eq!(shown(ChangedBody::Damaged), damaged);
        assert_eq!(shown(ChangedBody::Whole(b"no json".to_vec())), damaged);
    }

    #[test]
    fn kinds_and_ids_are_read_or_refused() {
        assert_eq!(kinds("task, mail").unwrap(), [FollowedKind::Task, FollowedKind::Mail]);
        assert_eq!(kinds("session").unwrap_err().code, "record_kind_unknown");
        let of = FollowedRef { kind: FollowedKind::Plan, id: 3 };
        assert_eq!(records(&of.to_string()).unwrap(), [of]);
        assert_eq!(records("sess_x").unwrap_err().code, "record_id_bad");
        let many = vec![of.to_string(); RECORDS_MAX + 1].join(",");
        assert_eq!(records(&many).unwrap_err().code, "query_invalid");
    }
}
