//! An event as words: what it adds to the transcript. Takes the event as it came over the wire, so that what this
//! version does not know is passed over and breaks nothing.

use lanyard_core::Timestamp;
use lanyard_core::session::{Envelope, Event, GateEvent, TranscriptEvent};
use serde::Deserialize;
use serde_json::Value;

use super::Kind;
use crate::render::text::{fit, harmless, one_line, quoted};
use crate::render::time::span;
use crate::render::turn::{Narrator, Piece, answer, called};
use crate::tui::face::who as who_at;

/// Columns for what a tool answered when it failed.
const ANSWER_COLUMNS: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    Entry(Kind, String),
    Words { text: String, message_id: Option<String> },
    Returned { call: String, outcome: String },
}

/// What has to be remembered from event to event.
#[derive(Debug, Default)]
pub(super) struct Narration {
    narrator: Narrator,
    began: Option<Timestamp>,
}

impl Narration {
    pub(super) fn tell(&mut self, raw: &Value) -> Vec<Told> {
        if let Some(text) = around_turns(raw) {
            return if text.is_empty() { Vec::new() } else { vec![Told::Entry(Kind::Line, text)] };
        }
        if let Some(told) = self.turn(raw) {
            return vec![told];
        }
        let Ok(envelope) = Envelope::deserialize(raw) else { return Vec::new() };
        if let Event::Transcript(TranscriptEvent::ToolCalled { call, tool, arguments }) = &envelope.event {
            let kind = Kind::Call { call: call.clone(), outcome: None };
            return vec![Told::Entry(kind, called(tool, arguments))];
        }
        if let Event::Transcript(TranscriptEvent::ToolReturned { call, is_error, content }) = &envelope.event
        {
            let said = fit(&answer(content), ANSWER_COLUMNS);
            let outcome = match (is_error, said.is_empty()) {
                (false, _) => "ok".to_owned(),
                (true, true) => "failed".to_owned(),
                (true, false) => format!("failed, {said}"),
            };
            return vec![Told::Returned { call: call.clone(), outcome }];
        }
        if let Event::Gate(event) = &envelope.event {
            return vec![gate(event, &envelope)];
        }
        let people = matches!(envelope.event, Event::Control(_));
        self.pieces(&envelope, if people { &Kind::Loud } else { &Kind::Line })
    }

    fn pieces(&mut self, envelope: &Envelope, line: &Kind) -> Vec<Told> {
        self.narrator
            .tell(envelope)
            .into_iter()
            .map(|piece| match piece {
                Piece::Words { text, message_id, .. } => Told::Words { text: harmless(&text), message_id },
                Piece::Thought(text) => Told::Entry(Kind::Thought, harmless(&text)),
                Piece::Line(text) => Told::Entry(line.clone(), text),
            })
            .collect()
    }

    /// The beginning and the end of a turn.
    fn turn(&mut self, raw: &Value) -> Option<Told> {
        let data = &raw["data"];
        let reason = data["reason"].as_str();
        let at = raw["at"].as_str().and_then(|at| at.parse().ok());
        match raw["type"].as_str()? {
            "turn.started" => {
                self.began = at;
                let prompt = data["prompt"].as_str().unwrap_or_default();
                Some(Told::Entry(Kind::Prompt, harmless(prompt.trim())))
            }
            "turn.finished" => {
                let outcome = one_line(data["outcome"].as_str().unwrap_or("ended"));
                Some(Told::Entry(Kind::End, self.ended(&outcome, reason, at)))
            }
            "turn.interrupted" => {
                let cause = one_line(data["cause"].as_str().unwrap_or("?"));
                let text = format!("interrupted ({cause})");
                Some(Told::Entry(Kind::End, self.ended(&text, reason, at)))
            }
            "turn.cancel_requested" => {
                let again = data["forced"].as_bool() == Some(true);
                let text =
                    if again { "cancelled again, not waiting for the agent" } else { "cancel requested" };
                Some(Told::Entry(Kind::Loud, text.to_owned()))
            }
            _ => None,
        }
    }

    fn ended(&mut self, how: &str, reason: Option<&str>, at: Option<Timestamp>) -> String {
        let took = match (self.began.take(), at) {
            (Some(began), Some(at)) => format!(" after {}", span(at.millis_since(began))),
            _ => String::new(),
        };
        let why = reason.map(|reason| format!(": {}", one_line(reason)));
        format!("{how}{took}{}", why.unwrap_or_default())
    }
}

fn gate(event: &GateEvent, envelope: &Envelope) -> Told {
    let who = one_line(&envelope.actor.name);
    match event {
        GateEvent::Opened { question, .. } => {
            Told::Entry(Kind::Loud, format!("asks: {}", one_line(&question.title)))
        }
        GateEvent::Answered { option, .. } => {
            Told::Entry(Kind::Line, format!("answered by {who}: {}", one_line(option)))
        }
        GateEvent::Withdrawn { why, .. } => {
            Told::Entry(Kind::Line, format!("no answer is needed: {}", one_line(why)))
        }
    }
}

/// What surrounds turns: the queue and the writer; an empty text for what needs no words.
fn around_turns(raw: &Value) -> Option<String> {
    let who = one_line(raw["actor"]["name"].as_str().unwrap_or("somebody"));
    let data = &raw["data"];
    let text = match raw["type"].as_str()? {
        "turn.queued" => {
            let prompt = fit(&quoted(data["prompt"].as_str().unwrap_or("")), ANSWER_COLUMNS);
            format!("queued by {who}: {prompt}")
        }
        "turn.edited" => format!("{who} changed a queued message"),
        "turn.withdrawn" => match data["reason"].as_str() {
            Some(reason) => format!("a queued message was withdrawn: {}", one_line(reason)),
            None => format!("{who} withdrew a queued message"),
        },
        "turn.promoted" => format!("{who} moved a queued message up"),
        "turn.steered" => "a message went into the running turn".to_owned(),
        "inbox.paused" => "the queue waits until somebody says go".to_owned(),
        "inbox.resumed" => format!("{who} let the queue go on"),
        "writer.granted" => format!("{} writes", who_at(&data["pen"])),
        "writer.asked" => format!("{} asks to write", who_at(&data["pen"])),
        "writer.denied" => format!("{who} keeps writing"),
        "writer.released" => match data["why"].as_str() {
            Some("taken") => String::new(),
            Some("lapsed") => "the writer was away for too long; anybody may write".to_owned(),
            _ => format!("{who} no longer writes; anybody may"),
        },
        "turn.delivered" | "inbox.reordered" => String::new(),
        _ => return None,
    };
    Some(text)
}
