//! Following a session's log for as long as the editor stays: every event once, in order, whatever becomes of the
//! daemon meanwhile.

use lanyard_client::{DaemonStream, FollowStep, Route, StreamCursor, StreamFollower, Transport};
use lanyard_core::session::Envelope;
use serde::Deserialize;

use super::tell::Kind;
use crate::context::Context;
use crate::failure::Failure;

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
pub(super) enum FollowDepth {
    /// Everything, as a client that is attached: others see that.
    Attached,
    /// The log alone.
    Log,
}

pub(super) struct Follow {
    context: Context,
    id: String,
    want: FollowDepth,
    last: u64,
    /// Nothing before the first event is asked for.
    stream: Option<StreamFollower<DaemonStream>>,
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
enum FrameAside {
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
    pub(super) fn after(context: &Context, id: &str, last: u64, want: FollowDepth) -> Self {
        let (context, id) = (context.clone(), id.to_owned());
        Self { context, id, want, last, stream: None, over: false }
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
                match self.open() {
                    Ok(stream) => self.stream = Some(stream),
                    Err(failure) => return self.ended(failure),
                }
                continue;
            };
            match stream.next().await {
                Ok(FollowStep::Frame(frame)) => {
                    if let Some(told) = self.read(&frame) {
                        return told;
                    }
                }
                Ok(FollowStep::Open { .. } | FollowStep::Lost(_)) => {}
                Err(error) => return self.ended(error.into()),
            }
        }
    }

    fn ended(&mut self, failure: Failure) -> Told {
        self.over = true;
        Told::Over(failure)
    }

    fn read(&mut self, data: &str) -> Option<Told> {
        let Ok(mark) = serde_json::from_str::<Mark>(data) else {
            return match serde_json::from_str(data) {
                Ok(FrameAside::Preview { kind, text, message_id }) => {
                    Some(Told::Preview { kind, text, message_id })
                }
                Ok(FrameAside::Unknown) | Err(_) => None,
            };
        };
        if mark.seq <= self.last {
            return None;
        }
        self.last = mark.seq;
        // An event this version does not know is nothing it could show.
        serde_json::from_str(data).ok().map(|envelope| Told::Event(Box::new(envelope)))
    }

    /// The stream from here on, without a bound for a daemon that is away: the editor may stay for days.
    fn open(&self) -> Result<StreamFollower<DaemonStream>, Failure> {
        let (id, want) = (self.id.clone(), self.want);
        let source = DaemonStream::new(self.context.address()?, Transport::ServerSentEvents, move |cursor| {
            let route = match want {
                FollowDepth::Attached => Route::to(&["sessions", &id, "attach"]).with("client", Some("acp")),
                FollowDepth::Log => Route::to(&["sessions", &id, "events"]),
            };
            route.with("after", cursor.seq)
        });
        Ok(StreamFollower::new(source, StreamCursor::after(self.last), None, String::new()))
    }
}
