//! Following a session's log for as long as the editor stays: every event once, in order, whatever becomes of the
//! daemon meanwhile.

use std::time::Duration;

use lanyard_core::Backoff;
use lanyard_core::session::Envelope;
use serde::Deserialize;

use super::tell::Kind;
use crate::client::{Route, Stream};
use crate::context::Context;
use crate::failure::Failure;

/// Waiting for a daemon that went away starts quick and gets patient.
pub(super) const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// What comes of a session.
#[derive(Debug)]
pub(super) enum Told {
    Event(Box<Envelope>),
    /// Text that is not an event yet.
    Preview {
        kind: Kind,
        text: String,
        message_id: Option<String>,
    },
    /// The log cannot be read any more, and why. Nothing comes after this.
    Over(Failure),
}

/// How much is wanted of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// Everything, as somebody who is there: others see that.
    Attached,
    /// The log alone.
    Log,
}

pub(super) struct Follow {
    context: Context,
    id: String,
    want: Want,
    last: u64,
    stream: Option<Stream>,
    /// How long to wait before the next try; nothing before the first.
    wait: Option<Backoff>,
    over: bool,
}

/// What of a frame matters for following.
#[derive(Debug, Deserialize)]
struct Mark {
    seq: u64,
}

/// A frame beside the log.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Aside {
    Preview {
        kind: Kind,
        text: String,
        message_id: Option<String>,
    },
    #[serde(other)]
    Unknown,
}

impl Follow {
    /// By the session's id: an alias could come to mean another session meanwhile.
    pub(super) fn after(context: &Context, id: &str, last: u64, want: Want) -> Self {
        let (context, id) = (context.clone(), id.to_owned());
        Self { context, id, want, last, stream: None, wait: None, over: false }
    }

    /// The last event that was given out.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// What comes next. Nothing is lost when this is dropped before it is done.
    pub(super) async fn next(&mut self) -> Told {
        loop {
            if self.over {
                std::future::pending::<()>().await;
            }
            let Some(stream) = &mut self.stream else {
                if let Err(failure) = self.connect().await {
                    self.over = true;
                    return Told::Over(failure);
                }
                continue;
            };
            let Some(frame) = stream.next().await else {
                self.stream = None;
                self.wait.get_or_insert(BACKOFF);
                continue;
            };
            if let Some(told) = self.read(&frame.data) {
                return told;
            }
        }
    }

    fn read(&mut self, data: &str) -> Option<Told> {
        let Ok(mark) = serde_json::from_str::<Mark>(data) else {
            return match serde_json::from_str(data) {
                Ok(Aside::Preview { kind, text, message_id }) => {
                    Some(Told::Preview { kind, text, message_id })
                }
                Ok(Aside::Unknown) | Err(_) => None,
            };
        };
        if mark.seq <= self.last {
            return None;
        }
        self.last = mark.seq;
        self.wait = None;
        // An event this version does not know is nothing it could show.
        serde_json::from_str(data).ok().map(|envelope| Told::Event(Box::new(envelope)))
    }

    /// Opens the stream, or sees that it is to be tried again. An error is final.
    async fn connect(&mut self) -> Result<(), Failure> {
        match &mut self.wait {
            Some(backoff) => tokio::time::sleep(backoff.pause()).await,
            None => self.wait = Some(BACKOFF),
        }
        // Somebody ended the daemon on purpose, or it starts again by itself: either way not ours to start.
        let Ok(Some(client)) = self.context.client_if_running().await else { return Ok(()) };
        let route = match self.want {
            Want::Attached => Route::to(&["sessions", &self.id, "attach"]).with("client", Some("acp")),
            Want::Log => Route::to(&["sessions", &self.id, "events"]),
        };
        let route = route.with("after", Some(self.last));
        match client.stream(&route).await {
            Ok(stream) => self.stream = stream,
            Err(failure) if failure.is_passing() => {}
            Err(failure) => return Err(failure),
        }
        Ok(())
    }
}
