//! Following a session's log: every event once, in order, whatever happens to the daemon meanwhile.

use lanyard_client::{DaemonStream, FollowStep, Route, StreamCursor, StreamFollower, Transport};
use serde::Deserialize;

use crate::context::Context;
use crate::failure::{Failure, daemon_gone};

/// What of an event matters for following.
#[derive(Debug, Deserialize)]
pub(super) struct Mark {
    pub(super) seq: u64,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

pub(super) fn mark(event: &str) -> Option<Mark> {
    serde_json::from_str(event).ok()
}

/// Events of one session as they come. A stream that breaks is resumed after the last event that was given out.
pub(super) struct Follower<'a> {
    context: &'a Context,
    id: String,
    last: u64,
    /// Nothing before the first event is asked for.
    stream: Option<StreamFollower<DaemonStream>>,
    /// Says what it waits for.
    aloud: bool,
}

impl<'a> Follower<'a> {
    /// By the session's id: an alias could come to mean another session meanwhile.
    pub(super) fn after(context: &'a Context, id: &str, last: u64) -> Self {
        Self { context, id: id.to_owned(), last, stream: None, aloud: true }
    }

    pub(super) fn silently(self) -> Self {
        Self { aloud: false, ..self }
    }

    /// The next event. Nothing is lost when this is dropped before it is done.
    pub(super) async fn next(&mut self) -> Result<String, Failure> {
        loop {
            let Some(stream) = &mut self.stream else {
                // Starts a daemon where none runs; one that goes away later is waited for.
                drop(self.context.client().await?);
                self.stream = Some(self.open()?);
                continue;
            };
            let again = || format!("lanyard logs -f {} --after {}", self.id, self.last);
            let step = match stream.next().await {
                Ok(step) => step,
                Err(error) => return Err(Failure::from(error.continued_by(again()))),
            };
            match step {
                FollowStep::Frame(event) => match mark(&event) {
                    Some(mark) if mark.seq > self.last => {
                        self.last = mark.seq;
                        return Ok(event);
                    }
                    Some(_) => {}
                    None => {
                        let last = self.last;
                        let out = &self.context.out;
                        out.warn(&format!("something that is not an event came after event {last}"));
                    }
                },
                FollowStep::Lost(bound) => self.say(&daemon_gone(bound)),
                FollowStep::Open { back: true } => {
                    self.say(&format!("the daemon is back; going on after event {}", self.last));
                }
                FollowStep::Open { back: false } => {}
            }
        }
    }

    fn open(&self) -> Result<StreamFollower<DaemonStream>, Failure> {
        let id = self.id.clone();
        let source = DaemonStream::new(self.context.address()?, Transport::ServerSentEvents, move |cursor| {
            Route::to(&["sessions", &id, "events"]).with("after", cursor.seq)
        });
        let wait = Some(self.context.daemon_wait);
        Ok(StreamFollower::new(source, StreamCursor::after(self.last), wait, String::new()))
    }

    fn say(&self, text: &str) {
        if self.aloud {
            self.context.out.note(text);
        }
    }
}
