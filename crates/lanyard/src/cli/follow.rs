//! Following a session's log: every event once, in order, whatever happens to the daemon meanwhile.

use serde::Deserialize;

use crate::client::{Absence, Route, Stream};
use crate::context::Context;
use crate::failure::Failure;

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
    stream: Option<Stream>,
    absence: Absence,
    /// Says what it waits for.
    aloud: bool,
}

impl<'a> Follower<'a> {
    /// By the session's id: an alias could come to mean another session meanwhile.
    pub(super) fn after(context: &'a Context, id: &str, last: u64) -> Self {
        Self { context, id: id.to_owned(), last, stream: None, absence: Absence::new(context), aloud: true }
    }

    pub(super) fn silently(self) -> Self {
        Self { aloud: false, ..self }
    }

    /// The next event. Nothing is lost when this is dropped before it is done.
    pub(super) async fn next(&mut self) -> Result<String, Failure> {
        loop {
            let Some(stream) = &mut self.stream else {
                self.connect().await?;
                continue;
            };
            let Some(frame) = stream.next().await else {
                self.lost();
                continue;
            };
            let Some(mark) = mark(&frame.data) else {
                let last = self.last;
                self.context.out.warn(&format!("something that is not an event came after event {last}"));
                continue;
            };
            if mark.seq > self.last {
                self.last = mark.seq;
                return Ok(frame.data);
            }
        }
    }

    async fn connect(&mut self) -> Result<(), Failure> {
        let client = if self.absence.lasts() {
            self.absence.pause(&format!("lanyard logs -f {} --after {}", self.id, self.last)).await?;
            // Somebody ended the daemon on purpose, or it starts again by itself: either way not ours to start.
            let Some(client) = self.context.client_if_running().await? else { return Ok(()) };
            client
        } else {
            self.context.client().await?
        };
        let route = Route::to(&["sessions", &self.id, "events"]).with("after", Some(self.last));
        self.stream = match client.stream(&route).await {
            Err(failure) if failure.is_passing() => None,
            opened => opened?,
        };
        if self.stream.is_none() {
            self.lost();
        } else if self.absence.lasts() {
            self.absence.ends();
            self.say(&format!("the daemon is back; going on after event {}", self.last));
        }
        Ok(())
    }

    fn lost(&mut self) {
        self.stream = None;
        if let Some(sentence) = self.absence.begins() {
            self.say(&sentence);
        }
    }

    fn say(&self, text: &str) {
        if self.aloud {
            self.context.out.note(text);
        }
    }
}
