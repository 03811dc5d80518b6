//! `lanyard logs`: what happened in a session, and what happens in it right now.

use lanyard_core::session::{Envelope, MessageBreaks, SessionView};
use serde::Deserialize;
use serde_json::Value;

use super::follow::Mark;
use super::printer::{EventSink, Printer};
use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::event::line;

/// Text of a message that is held; a line shows less.
const HELD_BYTES_MAX: usize = 8_192;

const EXAMPLES: &str = "\
One line per event: its position, its time in UTC, what it is, and what it says in short. The pieces
of one message are one line, at the position of the first; --json has them as they are. For a
transcript, use `lanyard log`.
Following ends when the session does. A restart of the daemon is survived and nothing is missed; a
daemon that stays away for a minute (LANYARD_DAEMON_WAIT_MS) ends it with code 3.

Examples:
  lanyard logs fix-login
  lanyard logs -f fix-login
  lanyard logs fix-login --after 120
  lanyard logs fix-login --after 0 --json > session.jsonl";

/// Show a session's events, or follow them
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
        let mut printer = Printer::new(context, &view, after, EventLines::new(context));
        printer.read(&mut client, &id, view.last_seq).await?;
        if self.follow { printer.follow(&id).await } else { printer.finish(&id).await }
    }
}

/// One line per event; the pieces of a message are one.
pub(super) struct EventLines<'a> {
    context: &'a Context,
    breaks: MessageBreaks,
    /// A message that may go on with the next event.
    held: Option<Value>,
}

impl<'a> EventLines<'a> {
    pub(super) fn new(context: &'a Context) -> Self {
        Self { context, breaks: MessageBreaks::default(), held: None }
    }

    fn append(&mut self, text: &str) {
        if let Some(Value::String(held)) = self.held.as_mut().map(|held| &mut held["data"]["text"])
            && held.len() < HELD_BYTES_MAX
        {
            held.push_str(text);
        }
    }

    fn show(&self, raw: &Value) -> Result<(), Failure> {
        let out = &self.context.out;
        out.data(&line(raw, out.columns))
    }
}

impl EventSink for EventLines<'_> {
    fn event(&mut self, event: &str, mark: &Mark) -> Result<(), Failure> {
        let raw: Value = serde_json::from_str(event).unwrap_or_default();
        let begins = Envelope::deserialize(&raw).is_ok_and(|envelope| self.breaks.begins(&envelope.event));
        let is_message = mark.kind == "message";
        if is_message && !begins && self.held.is_some() {
            self.append(raw["data"]["text"].as_str().unwrap_or_default());
            return Ok(());
        }
        self.pause()?;
        if is_message {
            self.held = Some(raw);
            return Ok(());
        }
        self.show(&raw)
    }

    fn holds(&self) -> bool {
        self.held.is_some()
    }

    fn pause(&mut self) -> Result<(), Failure> {
        self.held.take().map_or(Ok(()), |held| self.show(&held))
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.pause()
    }
}
