//! `lanyard logs`: what happened in a session, and what happens in it right now.

use lanyard_core::session::SessionView;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::follow::{Follower, mark};
use super::seen::mark_seen;
use super::target::Target;
use crate::client::{Client, Route};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::event::line;

/// Events asked for at a time.
const PAGE_EVENTS: u64 = 500;

const EXAMPLES: &str = "\
One line per event: its position, its time in UTC, what it is, and what it says in short.
Following ends when the session does. It outlasts a restart of the daemon and misses nothing.

Examples:
  lanyard logs fix-login
  lanyard logs -f fix-login
  lanyard logs fix-login --after 120
  lanyard logs fix-login --after 0 --json > session.jsonl";

/// Show a session's log, or follow it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Logs {
    #[command(flatten)]
    target: Target,
    /// Go on with new events until the session ends
    #[arg(long, short)]
    follow: bool,
    /// Begin after this position; 0 is everything
    #[arg(long, value_name = "SEQ", conflicts_with = "tail")]
    after: Option<u64>,
    /// Begin with the last N events
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    tail: u64,
}

/// Events as the journal has them, byte for byte.
#[derive(Debug, Deserialize)]
pub(super) struct RawPage {
    pub(super) events: Vec<Box<RawValue>>,
    pub(super) head: u64,
}

impl Logs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let view: SessionView = client.get(&self.target.route(&[])).await?;
        // By its id from here on: an alias could come to mean another session while this one is followed.
        let id = view.id.to_string();
        let after = self.after.unwrap_or_else(|| view.last_seq.saturating_sub(self.tail));
        if after > view.last_seq {
            let title = format!("position {after} is past the end of the log, which is {}", view.last_seq);
            return Err(Failure::local("position_ahead_of_log", title, "begin at a position that exists"));
        }
        let mut printer = Printer { context, last: after, ended: view.state.is_ended(), turn_end: None };
        read(&mut client, &id, after, view.last_seq, |event| printer.print(event)).await?;
        printer.mark(&id).await;
        if !self.follow || printer.ended {
            return Ok(());
        }
        let mut follower = Follower::after(context, &id, printer.last);
        while !printer.ended {
            printer.print(&follower.next().await?)?;
            printer.mark(&id).await;
        }
        Ok(())
    }
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
        let route = Route::to(&["sessions", id, "events"])
            .with("after", Some(after))
            .with("limit", Some(PAGE_EVENTS));
        let page: RawPage = client.get(&route).await?;
        let Some(last) = page.events.last() else { break };
        let read = mark(last.get()).map_or(page.head, |mark| mark.seq);
        for event in &page.events {
            give(event.get())?;
        }
        after = read;
    }
    Ok(())
}

struct Printer<'a> {
    context: &'a Context,
    /// The last position that was shown.
    last: u64,
    ended: bool,
    /// The end of a turn that was shown and is not marked yet.
    turn_end: Option<u64>,
}

impl Printer<'_> {
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
        if out.is_json() {
            return out.data(event);
        }
        let raw: Value = serde_json::from_str(event).unwrap_or_default();
        out.data(&line(&raw, out.columns))
    }

    /// Only a terminal shows anything to a person.
    async fn mark(&mut self, session: &str) {
        if let (Some(seq), Some(_)) = (self.turn_end.take(), self.context.out.columns) {
            mark_seen(self.context, session, seq).await;
        }
    }
}
