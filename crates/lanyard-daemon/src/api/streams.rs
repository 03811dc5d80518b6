//! The directory as a stream: what sessions there are, and what becomes of them. Rows are made when they are sent, so a
//! reader that is slow gets fewer and newer ones.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use lanyard_api::types::{DirectoryFrame, Glance};
use lanyard_core::SessionId;
use lanyard_core::journal::Row;
use lanyard_store::{Cursor, Filter};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::api::App;
use crate::api::attach::{Upgrade, event_stream, no_token, serve, upgrade};
use crate::api::context::{on_disk, query};
use crate::api::directory::{ListQuery, bounded, filter, with_runtime};
use crate::api::right::{Frames, Right};
use crate::problem::Problem;
use crate::server::ConnectionSlot;
use lanyard_engine::hub::{BEAT, Changes, HEARTBEAT, Of, Over, control};

/// Sessions shown at the beginning.
const LIMIT_DEFAULT: usize = 1_000;
pub(super) const LIMIT_MAX: usize = 10_000;
/// Rows read and sent at a time.
const ROWS_STEP: usize = 200;
/// Sessions that are shown with their activity at the beginning; the others get it when they change.
const GLANCES_FIRST: usize = 500;
/// How often changes are sent.
const SEND_EVERY: Duration = Duration::from_millis(200);

pub(super) async fn directory(
    State(app): State<Arc<App>>,
    Extension(right): Extension<Right>,
    place: Option<Extension<ConnectionSlot>>,
    headers: HeaderMap,
    uri: Uri,
    offered: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = upgrade(&headers, offered)?;
    no_token(&uri)?;
    let query: ListQuery = query(&uri)?;
    if query.cursor.is_some() {
        return Err(Problem::bad_request(
            "query_invalid",
            "a stream has no pages, so `cursor` means nothing",
            "leave it out; `limit` says how many sessions are shown at the beginning",
        ));
    }
    let limit = bounded("limit", query.limit, LIMIT_DEFAULT, LIMIT_MAX)?;
    let filter = filter(&app, query).await?;
    // Watched before it is listed: what changes in between is sent again, and never missed.
    let changes = app.hub.changes(Of::All);
    let feed = Feed::new(app, changes, filter, limit).stream();
    Ok(match upgrade {
        Upgrade::Socket(upgrade) => {
            serve(*upgrade, Frames::new(Box::pin(feed), right)?, None, place.map(|place| place.0))
        }
        Upgrade::Events => event_stream(Body::from_stream(feed.map(Ok::<_, std::convert::Infallible>))),
    })
}

/// One reader of the directory.
struct Feed {
    app: Arc<App>,
    changes: Changes,
    filter: Filter,
    /// Sessions the reader was shown and that were not taken back.
    shown: HashSet<SessionId>,
    stage: Stage,
    beat: Interval,
    sent_at: Instant,
}

enum Stage {
    Hello { limit: usize },
    Listing { from: Option<Cursor>, left: usize },
    Ready,
    Live,
    Over,
}

impl Feed {
    fn new(app: Arc<App>, changes: Changes, filter: Filter, limit: usize) -> Self {
        let now = Instant::now();
        let mut beat = interval_at(now + HEARTBEAT, HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (shown, stage) = (HashSet::new(), Stage::Hello { limit });
        Self { app, changes, filter, shown, stage, beat, sent_at: now }
    }

    fn stream(self) -> impl Stream<Item = Bytes> + Send {
        unfold(self, |mut feed| async move { feed.next().await.map(|piece| (piece, feed)) })
    }

    /// The next frames; none after the last.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let piece = match &mut self.stage {
                Stage::Hello { limit } => {
                    let limit = *limit;
                    self.stage = Stage::Listing { from: None, left: limit };
                    let heartbeat_ms = u64::try_from(HEARTBEAT.as_millis()).unwrap_or(u64::MAX);
                    frame(&DirectoryFrame::Connected { limit, heartbeat_ms })
                }
                Stage::Listing { .. } => self.list().await,
                Stage::Ready => {
                    self.stage = Stage::Live;
                    frame(&DirectoryFrame::Ready { rows: self.shown.len() })
                }
                Stage::Live => self.live().await,
                Stage::Over => return None,
            };
            if !piece.is_empty() {
                return Some(piece);
            }
        }
    }

    /// A page of what there is.
    async fn list(&mut self) -> Bytes {
        let Stage::Listing { from, left } = &mut self.stage else { return Bytes::new() };
        let (filter, cursor, step) = (self.filter.clone(), from.take(), (*left).min(ROWS_STEP));
        let left = *left - step;
        let (glances, first) = (self.app.glances.clone(), GLANCES_FIRST.saturating_sub(self.shown.len()));
        let listed = on_disk(&self.app, move |store| {
            let listing = store.list(&filter, cursor.as_ref(), step)?;
            let (newest, _) = listing.rows.split_at(first.min(listing.rows.len()));
            Ok((glances.of(store, newest)?, listing))
        });
        let Ok((glances, listing)) = listed.await else { return self.goodbye("storage_unavailable") };
        self.stage = match listing.next {
            Some(next) if left > 0 => Stage::Listing { from: Some(next), left },
            Some(_) | None => Stage::Ready,
        };
        let mut frames = BytesMut::new();
        self.show(listing.rows, glances, &mut frames);
        frames.freeze()
    }

    /// What changed, or a heartbeat.
    async fn live(&mut self) -> Bytes {
        loop {
            tokio::select! {
                changed = self.changes.wait() => {
                    if let Err(over) = changed {
                        return self.goodbye(match over {
                            Over::Closing => "closing",
                            Over::Behind => "behind",
                        });
                    }
                    tokio::time::sleep_until(self.sent_at + SEND_EVERY).await;
                    self.sent_at = Instant::now();
                    match self.changed().await {
                        Some(frames) if frames.is_empty() => {}
                        Some(frames) => return frames,
                        None => return self.goodbye("storage_unavailable"),
                    }
                }
                _ = self.beat.tick() => return BEAT,
            }
        }
    }

    /// What some of the sessions that changed are now.
    async fn changed(&mut self) -> Option<Bytes> {
        let ids = self.changes.take(ROWS_STEP);
        let (filter, asked, glances) = (self.filter.clone(), ids.clone(), self.app.glances.clone());
        let read = on_disk(&self.app, move |store| {
            let mut rows = store.rows(&asked, &filter)?;
            rows.sort_by_key(|row| row.id);
            Ok((glances.of(store, &rows)?, rows))
        });
        let (glances, rows) = read.await.ok()?;
        let matching: HashSet<SessionId> = rows.iter().map(|row| row.id).collect();
        let mut frames = BytesMut::new();
        self.show(rows, glances, &mut frames);
        for session in ids.into_iter().filter(|id| !matching.contains(id)) {
            if self.shown.remove(&session) {
                frames.extend_from_slice(&frame(&DirectoryFrame::Gone { session }));
            }
        }
        Some(frames.freeze())
    }

    /// Shows rows with their activity, as far as it is known.
    fn show(&mut self, rows: Vec<Row>, glances: Vec<Glance>, frames: &mut BytesMut) {
        let glances =
            glances.into_iter().map(|glance| Some(Box::new(glance))).chain(std::iter::repeat_with(|| None));
        for (mut row, glance) in with_runtime(&self.app, rows).into_iter().zip(glances) {
            row.glance = glance;
            self.shown.insert(row.row.id);
            frames.extend_from_slice(&frame(&DirectoryFrame::Row { row: Box::new(row) }));
        }
    }

    fn goodbye(&mut self, why: &str) -> Bytes {
        self.stage = Stage::Over;
        frame(&DirectoryFrame::Goodbye { why: why.to_owned() })
    }
}

fn frame(frame: &DirectoryFrame) -> Bytes {
    let name = match frame {
        DirectoryFrame::Connected { .. } => "connected",
        DirectoryFrame::Row { .. } => "row",
        DirectoryFrame::Gone { .. } => "gone",
        DirectoryFrame::Ready { .. } => "ready",
        DirectoryFrame::Error { .. } => "error",
        DirectoryFrame::Heartbeat => "heartbeat",
        DirectoryFrame::Goodbye { .. } => "goodbye",
    };
    control(name, frame)
}
