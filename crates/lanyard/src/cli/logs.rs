//! `lanyard logs`: what happened in a session, and what happens in it right now.

use std::time::Duration;

use lanyard_core::session::{Envelope, MessageBreaks, SessionView};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::follow::{Follower, mark};
use super::target::Target;
use crate::client::{Client, Route};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::event::line;
use crate::seen::mark_seen;

/// Events asked for at a time.
const PAGE_EVENTS: u64 = 500;
/// How long a message that may go on is held back while following.
const HOLD: Duration = Duration::from_millis(300);
/// Text of a message that is held; a line shows less.
const HELD_BYTES_MAX: usize = 8_192;

const EXAMPLES: &str = "\
One line per event: its position, its time in UTC, what it is, and what it says in short. The
pieces of one message are one line, at the position of the first; --json has them as they are.
Following ends when the session does. A restart of the daemon is survived and nothing is missed; a
daemon that stays away for a minute (LANYARD_DAEMON_WAIT_MS) ends it with code 3.

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
        let mut printer = Printer::new(context, &view, after);
        read(&mut client, &id, after, view.last_seq, |event| printer.print(event)).await?;
        if self.follow {
            return printer.follow(&id).await;
        }
        printer.flush()?;
        printer.mark(&id).await;
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

/// Prints the events of one session, in order.
pub(super) struct Printer<'a> {
    context: &'a Context,
    /// The last position that was printed or is held.
    last: u64,
    ended: bool,
    /// The end of a turn that was shown and is not marked yet.
    turn_end: Option<u64>,
    breaks: MessageBreaks,
    /// A message that may go on with the next event.
    held: Option<Value>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(context: &'a Context, view: &SessionView, after: u64) -> Self {
        let (ended, breaks) = (view.state.is_ended(), MessageBreaks::default());
        Self { context, last: after, ended, turn_end: None, breaks, held: None }
    }

    /// Prints what comes until the session ends.
    pub(super) async fn follow(mut self, session: &str) -> Result<(), Failure> {
        let mut follower = Follower::after(self.context, session, self.last);
        while !self.ended {
            let next = match &self.held {
                Some(_) => tokio::time::timeout(HOLD, follower.next()).await.ok(),
                None => Some(follower.next().await),
            };
            match next {
                Some(Ok(event)) => self.print(&event)?,
                Some(Err(failure)) => return self.flush().and(Err(failure)),
                None => self.flush()?,
            }
            self.mark(session).await;
        }
        self.flush()
    }

    pub(super) fn print(&mut self, event: &str) -> Result<(), Failure> {
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
        let begins = Envelope::deserialize(&raw).is_ok_and(|envelope| self.breaks.begins(&envelope.event));
        let is_message = mark.kind == "message";
        if is_message && !begins && self.held.is_some() {
            self.append(raw["data"]["text"].as_str().unwrap_or_default());
            return Ok(());
        }
        self.flush()?;
        if is_message {
            self.held = Some(raw);
            return Ok(());
        }
        self.show(&raw)
    }

    fn append(&mut self, text: &str) {
        if let Some(Value::String(held)) = self.held.as_mut().map(|held| &mut held["data"]["text"])
            && held.len() < HELD_BYTES_MAX
        {
            held.push_str(text);
        }
    }

    /// Prints the message that is held.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.held.take().map_or(Ok(()), |held| self.show(&held))
    }

    fn show(&self, raw: &Value) -> Result<(), Failure> {
        let out = &self.context.out;
        out.data(&line(raw, out.columns))
    }

    /// Only a terminal shows anything to a person.
    async fn mark(&mut self, session: &str) {
        if let (Some(seq), Some(_)) = (self.turn_end.take(), self.context.out.columns) {
            mark_seen(self.context, session, seq).await;
        }
    }
}
