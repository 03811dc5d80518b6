//! Following a session's log: every event once, in order, whatever happens to the daemon meanwhile.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use crate::client::{Route, Stream};
use crate::context::Context;
use crate::failure::Failure;

/// Waiting for a daemon that went away starts quick and gets patient.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(2);
/// How long a daemon that went away is waited for, unless `LANYARD_DAEMON_WAIT_MS` says otherwise.
const DAEMON_WAIT: Duration = Duration::from_mins(1);
/// The name of that setting.
const DAEMON_WAIT_ENV: &str = "LANYARD_DAEMON_WAIT_MS";

/// Waiting for a daemon that went away: said once, bounded, and ended with the command to go on with.
#[derive(Debug)]
pub(super) struct Absence {
    bound: Duration,
    until: Option<Instant>,
    wait: Duration,
}

impl Default for Absence {
    fn default() -> Self {
        let set = std::env::var(DAEMON_WAIT_ENV).ok().and_then(|text| text.parse().ok());
        let bound = set.map_or(DAEMON_WAIT, Duration::from_millis);
        Self { bound, until: None, wait: WAIT_MIN }
    }
}

impl Absence {
    /// The daemon is gone. Gives the sentence to say, once for each absence.
    pub(super) fn begins(&mut self) -> Option<String> {
        if self.until.is_some() {
            return None;
        }
        self.until = Some(Instant::now() + self.bound);
        let bound = self.bound.as_secs();
        Some(format!("the daemon is gone; start it with `lanyard up --detach` (waiting up to {bound} s)"))
    }

    /// Whether it is gone at the moment.
    pub(super) fn lasts(&self) -> bool {
        self.until.is_some()
    }

    /// The daemon is back.
    pub(super) fn ends(&mut self) {
        (self.until, self.wait) = (None, WAIT_MIN);
    }

    /// Waits before the next try. An error once the bound is over; `next` is the command to go on with.
    pub(super) async fn pause(&mut self, next: &str) -> Result<(), Failure> {
        let until = *self.until.get_or_insert_with(|| Instant::now() + self.bound);
        if Instant::now() >= until {
            let title = format!("the daemon did not come back within {} s", self.bound.as_secs());
            let advice = format!("start it with `lanyard up --detach`, then go on with `{next}`");
            return Err(Failure::unreachable("daemon_gone", title, advice));
        }
        tokio::time::sleep_until(until.min(Instant::now() + self.wait)).await;
        self.wait = (self.wait * 2).min(WAIT_MAX);
        Ok(())
    }
}

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
        Self { context, id: id.to_owned(), last, stream: None, absence: Absence::default(), aloud: true }
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
            self.absence.ends();
            self.say(&format!("the daemon is back; going on after event {}", self.last));
            client
        } else {
            self.context.client().await?
        };
        let route = Route::to(&["sessions", &self.id, "events"]).with("after", Some(self.last));
        self.stream = client.stream(&route).await?;
        if self.stream.is_none() {
            self.lost();
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
