//! Printing the events of one session, in order, for `log`, `logs` and `attach` without a terminal.

use std::time::Duration;

use lanyard_client::Route;
use lanyard_core::session::SessionView;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::follow::{Follower, Mark, mark};
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::seen::mark_seen;

/// Events asked for at a time.
const PAGE_EVENTS: u64 = 500;
/// How long words that may go on are held back while following.
const HOLD: Duration = Duration::from_millis(300);

/// The form in which events are printed.
pub(super) trait EventSink {
    fn event(&mut self, event: &str, mark: &Mark) -> Result<(), Failure>;
    /// Whether words are held back that may go on with the next event.
    fn holds(&self) -> bool;
    /// Prints what is held back.
    fn pause(&mut self) -> Result<(), Failure>;
    /// Nothing more comes.
    fn end(&mut self) -> Result<(), Failure>;
}

/// Events as the journal has them, byte for byte.
#[derive(Debug, Deserialize)]
pub(super) struct RawPage {
    pub(super) events: Vec<Box<RawValue>>,
    pub(super) head: u64,
}

/// Gives out the events after a position, up to `until` and what comes in the same page with it.
pub(super) async fn read(
    client: &mut Client<'_>,
    id: &str,
    mut after: u64,
    until: u64,
    mut give: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    while after < until {
        let page = page(client, id, after, PAGE_EVENTS).await?;
        let Some(last) = page.events.last() else { break };
        let read = mark(last.get()).map_or(page.head, |mark| mark.seq);
        for event in &page.events {
            give(event.get())?;
        }
        after = read;
    }
    Ok(())
}

/// The first events after a position.
pub(super) async fn page(
    client: &mut Client<'_>,
    id: &str,
    after: u64,
    limit: u64,
) -> Result<RawPage, Failure> {
    let route = Route::to(&["sessions", id, "events"]);
    client.get(&route.with("after", Some(after)).with("limit", Some(limit))).await
}

pub(super) struct Printer<'a, S> {
    context: &'a Context,
    /// The last position that was given to the sink.
    last: u64,
    ended: bool,
    /// The end of a turn that was shown and is not marked yet.
    turn_end: Option<u64>,
    sink: S,
}

impl<'a, S: EventSink> Printer<'a, S> {
    pub(super) fn new(context: &'a Context, view: &SessionView, after: u64, sink: S) -> Self {
        Self { context, last: after, ended: view.state.is_ended(), turn_end: None, sink }
    }

    /// Prints the log up to `until`, page by page.
    pub(super) async fn read(
        &mut self,
        client: &mut Client<'_>,
        session: &str,
        until: u64,
    ) -> Result<(), Failure> {
        read(client, session, self.last, until, |event| self.print(event)).await
    }

    /// Prints what comes until the session ends.
    pub(super) async fn follow(mut self, session: &str) -> Result<(), Failure> {
        let mut follower = Follower::after(self.context, session, self.last);
        self.sink.pause()?;
        while !self.ended {
            let next = if self.sink.holds() {
                tokio::time::timeout(HOLD, follower.next()).await.ok()
            } else {
                Some(follower.next().await)
            };
            match next {
                Some(Ok(event)) => self.print(&event)?,
                Some(Err(failure)) => return self.sink.end().and(Err(failure)),
                None => self.sink.pause()?,
            }
            self.mark(session).await;
        }
        self.sink.end()
    }

    /// Nothing more is printed.
    pub(super) async fn finish(mut self, session: &str) -> Result<(), Failure> {
        self.sink.end()?;
        self.mark(session).await;
        Ok(())
    }

    fn print(&mut self, event: &str) -> Result<(), Failure> {
        let out = &self.context.out;
        let Some(mark) = mark(event) else {
            out.warn(&format!("something that is not an event came after event {}", self.last));
            return Ok(());
        };
        if mark.seq <= self.last {
            return Ok(());
        }
        if mark.seq > self.last + 1 {
            out.warn(&format!("events {} to {} did not arrive", self.last + 1, mark.seq - 1));
        }
        self.last = mark.seq;
        match mark.kind.as_str() {
            "turn.finished" | "turn.interrupted" => self.turn_end = Some(mark.seq),
            "session.ended" | "session.deleted" => self.ended = true,
            "session.resumed" => self.ended = false,
            _ => {}
        }
        if out.is_json() { out.data(event) } else { self.sink.event(event, &mark) }
    }

    /// Only a terminal shows anything to a person.
    async fn mark(&mut self, session: &str) {
        if let (Some(seq), Some(_)) = (self.turn_end.take(), self.context.out.columns) {
            mark_seen(self.context, session, seq).await;
        }
    }
}
