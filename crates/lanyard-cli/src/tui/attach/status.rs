//! The line that says how the session is, in words; the most urgent first.

use super::{Mode, Model, TypedDelivery};
use crate::render::text::{count, fit};
use crate::tui::face::{Face, lasting};
use crate::tui::message::Link;

/// Names of others that are told; more are counted.
const NAMES_MAX: usize = 3;
const TOOL_COLUMNS: usize = 40;

impl Model {
    /// Parts of the status, each whole: a line breaks between them only.
    pub(super) fn status(&self) -> Vec<String> {
        let mut parts = Vec::new();
        match self.link {
            Link::Up => {}
            Link::Connecting => parts.push("connecting".to_owned()),
            Link::Down => parts.push("no daemon: `lanyard up` starts it".to_owned()),
        }
        let Some(face) = &self.face else { return parts };
        let elapsed = face.turn.as_ref().and_then(|turn| turn.started_at).or(face.since);
        let elapsed = elapsed.map(|since| format!(" {}", lasting(self.now.millis_since(since))));
        let cancelling = face.turn.as_ref().is_some_and(|turn| turn.cancelling);
        let cancelling = if cancelling { ", cancelling" } else { "" };
        parts.push(format!("{}{cancelling}{}", face.state_words(), elapsed.unwrap_or_default()));
        if let Some(level) = face.stop_level {
            parts.push(format!("stop level {level}"));
        }
        if face.gates > 0 {
            parts.push(count(face.gates, "approval"));
        }
        parts.extend(self.tool_words(face));
        let queued = self.inbox.waiting.len();
        if queued > 0 {
            let paused = self.inbox.paused.as_deref().map(|why| format!(", waits ({why})"));
            parts.push(format!("{queued} queued{}", paused.unwrap_or_default()));
        }
        if face.notes > 0 {
            parts.push(format!("{} waits", count(face.notes, "note")));
        }
        let unsent = self.sent.iter().filter(|sent| sent.unheard).count();
        if unsent > 0 {
            parts.push(format!("{} unsent", count(unsent, "message")));
        }
        parts.push(self.writer_words());
        parts.extend(self.others());
        if self.transcript.scroll.below > 0 {
            parts.push(format!("{} below", count(self.transcript.scroll.below, "row")));
        }
        parts
    }

    fn tool_words(&self, face: &Face) -> Option<String> {
        match self.transcript.last_call() {
            Some((call, false)) if self.is_busy() => Some(format!("tool {}", fit(call, TOOL_COLUMNS))),
            Some((call, _)) => Some(format!("last tool {}", fit(call, TOOL_COLUMNS))),
            None => face.last_tool.as_ref().map(|tool| {
                let ago = tool.at.map(|at| format!(" {} ago", lasting(self.now.millis_since(at))));
                format!("last tool {}{}", tool.name, ago.unwrap_or_default())
            }),
        }
    }

    pub(super) fn writer_words(&self) -> String {
        match self.writer() {
            None if self.mode == Mode::ReadOnly => "read-only".to_owned(),
            None => "writer: free".to_owned(),
            Some(writer) if self.is_own(writer) => "writer: you".to_owned(),
            Some(writer) => {
                let away = if writer.present { "" } else { ", away" };
                let asked = match self.asked_until {
                    Some(until) => format!(", asked ({} left)", lasting(until.millis_since(self.now))),
                    None => String::new(),
                };
                format!("writer: {}{away}{asked}", writer.name)
            }
        }
    }

    fn others(&self) -> Option<String> {
        let others: Vec<&str> = self
            .present
            .iter()
            .filter(|one| Some(one.connection.as_str()) != self.connection.as_deref())
            .map(|one| one.name.as_str())
            .collect();
        if others.is_empty() {
            return None;
        }
        let named = others.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
        let more = others.len().saturating_sub(NAMES_MAX);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        Some(format!("also here: {named}{more}"))
    }

    /// What stands before the line that is typed in.
    pub(super) fn label(&self) -> String {
        match &self.aim {
            super::Aim::Guidance => "guide> ".to_owned(),
            super::Aim::Edit(_) => "edit> ".to_owned(),
            super::Aim::File(_) => "file> ".to_owned(),
            super::Aim::Turn if !self.is_busy() => "send> ".to_owned(),
            super::Aim::Turn => match self.delivery {
                TypedDelivery::Reject => "send if free> ".to_owned(),
                TypedDelivery::Queue | TypedDelivery::Steer | TypedDelivery::Interrupt => {
                    format!("{}> ", when(self.delivery.as_str()))
                }
            },
        }
    }
}

/// The value of `send --when` for a delivery on the wire.
pub(super) fn when(delivery: &str) -> &str {
    match delivery {
        "steer" => "now",
        "queue" => "next",
        other => other,
    }
}
