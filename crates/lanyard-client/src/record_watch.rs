//! Watching records: the stream says when to look again, over any restart of the daemon.

use std::time::Duration;

use lanyard_core::PlanId;
use serde::Deserialize;

use crate::daemon::DaemonAddress;
use crate::error::ClientError;
use crate::follower::{DaemonStream, FollowStep, StreamCursor, StreamFollower, Transport};
use crate::route::Route;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// Something may be different from the last look. The first comes as soon as the stream is open.
    Look,
    /// The daemon does not answer; it is tried again for this long.
    Lost(Option<Duration>),
    Back,
}

/// A stream of records that is opened again whenever it breaks.
#[derive(Debug)]
pub struct RecordWatch(StreamFollower<DaemonStream>);

/// What of a frame matters for watching.
#[derive(Debug, Deserialize)]
struct FrameKind {
    #[serde(rename = "type")]
    kind: String,
}

/// Which records are watched, and for how long a daemon that is away.
#[derive(Debug)]
pub struct WatchSettings {
    pub address: DaemonAddress,
    pub wait: Option<Duration>,
    /// The command that continues after a daemon that stayed away.
    pub again: String,
}

impl RecordWatch {
    /// Watches these records; their ids are separated by commas.
    #[must_use]
    pub fn of(settings: WatchSettings, records: &str) -> Self {
        Self::at(settings, Route::to(&["records", "stream"]).with("record", Some(records)))
    }

    /// Watches a plan and its tasks, also those that are added later.
    #[must_use]
    pub fn of_plan(settings: WatchSettings, plan: PlanId) -> Self {
        Self::at(settings, Route::to(&["records", "stream"]).with("plan", Some(plan)))
    }

    /// Watches what a route streams.
    #[must_use]
    pub fn at(settings: WatchSettings, route: Route) -> Self {
        let WatchSettings { address, wait, again } = settings;
        // A watcher looks again from the start: it has no position.
        let source = DaemonStream::new(address, Transport::ServerSentEvents, move |_| route.clone());
        Self(StreamFollower::new(source, StreamCursor::default(), wait, again))
    }

    /// The next reason to look. Nothing is lost when this is dropped before it is done.
    pub async fn next(&mut self) -> Result<Woken, ClientError> {
        loop {
            let woken = match self.0.next().await? {
                FollowStep::Open { back } => back.then_some(Woken::Back),
                FollowStep::Lost(bound) => Some(Woken::Lost(bound)),
                FollowStep::Frame(frame) => match serde_json::from_str::<FrameKind>(&frame) {
                    Ok(FrameKind { kind }) if kind == "ready" => None,
                    Ok(FrameKind { kind }) if kind != "goodbye" => {
                        // One look is enough for all that arrived.
                        self.0.skip_ready();
                        Some(Woken::Look)
                    }
                    Ok(_) | Err(_) => self.lost(),
                },
            };
            if let Some(woken) = woken {
                return Ok(woken);
            }
        }
    }

    /// Gives the stream up because the daemon did not answer elsewhere. Returns that it is lost, once for each absence.
    pub fn lost(&mut self) -> Option<Woken> {
        match self.0.lost()? {
            FollowStep::Lost(bound) => Some(Woken::Lost(bound)),
            FollowStep::Open { .. } | FollowStep::Frame(_) => None,
        }
    }
}
