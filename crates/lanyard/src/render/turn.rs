//! A turn as one reads it while it runs: the agent's words, and beside them one line for each thing it does.

use std::collections::BTreeMap;

use lanyard_core::GateId;
use lanyard_core::session::{
    ChangeEvent, ContextEvent, ControlEvent, Envelope, Event, GateEvent, InboxEvent, MessageBreaks,
    PlanStatus, Role, RunEnd, RunEvent, TranscriptEvent, TurnEvent,
};
use serde_json::Value;

use crate::render::event::stop_level;
use crate::render::text::{count, fit, one_line};

/// Columns for what a tool was called with, and for what it answered.
const ARGUMENTS_COLUMNS: usize = 80;
const ANSWER_COLUMNS: usize = 120;
/// Calls kept in mind until they return.
const CALLS_MAX: usize = 1_024;

/// Something to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The agent's own words, which may go on in the next piece.
    Words {
        text: String,
        message_id: Option<String>,
        /// They begin a message.
        begins: bool,
    },
    /// One line about what happens.
    Line(String),
    /// What the agent thinks, line by line.
    Thought(String),
}

/// Turns events into pieces. Keeps what is needed to put a call and its result on one line.
#[derive(Debug, Default)]
pub(crate) struct Narrator {
    calls: BTreeMap<String, String>,
    plan: String,
    breaks: MessageBreaks,
}

impl Narrator {
    pub(crate) fn tell(&mut self, envelope: &Envelope) -> Vec<Piece> {
        let begins = self.breaks.begins(&envelope.event);
        let line = match &envelope.event {
            Event::Transcript(event) => return self.transcript(event, begins),
            Event::Run(event) => run(event),
            Event::Gate(event) => return gate(event),
            Event::Turn(event) => turn(event),
            Event::Inbox(event) => inbox(event),
            Event::Context(event) => context(event),
            Event::Control(event) => control(event),
            Event::Change(event) => change(event),
            Event::Writer(_) => None,
        };
        line.map(Piece::Line).into_iter().collect()
    }

    /// Calls that have not returned.
    pub(crate) fn open_calls(&mut self) -> Vec<Piece> {
        let open = std::mem::take(&mut self.calls);
        open.into_values().map(|call| Piece::Line(format!("tool {call}: no result"))).collect()
    }

    fn transcript(&mut self, event: &TranscriptEvent, begins: bool) -> Vec<Piece> {
        let line = match event {
            TranscriptEvent::Message { role: Role::Agent, text, message_id } => {
                let (text, message_id) = (text.clone(), message_id.clone());
                return vec![Piece::Words { text, message_id, begins }];
            }
            TranscriptEvent::Message { role: Role::User, .. } => return Vec::new(),
            TranscriptEvent::Thought { text } => return vec![Piece::Thought(text.clone())],
            TranscriptEvent::ToolCalled { call, tool, arguments } => {
                if self.calls.len() < CALLS_MAX {
                    self.calls.insert(call.clone(), called(tool, arguments));
                }
                return Vec::new();
            }
            TranscriptEvent::ToolReturned { call, is_error, content } => {
                let what = self.calls.remove(call).unwrap_or_else(|| one_line(call));
                let answer = fit(&answer(content), ANSWER_COLUMNS);
                match (is_error, answer.is_empty()) {
                    (false, _) => format!("tool {what}: ok"),
                    (true, true) => format!("tool {what}: failed"),
                    (true, false) => format!("tool {what}: failed, {answer}"),
                }
            }
            TranscriptEvent::FileChanged { path, added, removed } => match (added, removed) {
                (None, None) => format!("file {}", one_line(path)),
                _ => {
                    format!("file {} +{} -{}", one_line(path), added.unwrap_or(0), removed.unwrap_or(0))
                }
            },
            TranscriptEvent::Planned { entries } => {
                let done = entries.iter().filter(|entry| entry.status == PlanStatus::Completed).count();
                let now = entries.iter().find(|entry| entry.status == PlanStatus::InProgress);
                let now = now.map(|entry| format!(", now: {}", one_line(&entry.text))).unwrap_or_default();
                let plan = format!("plan: {done} of {} done{now}", count(entries.len(), "step"));
                if plan == self.plan {
                    return Vec::new();
                }
                self.plan.clone_from(&plan);
                plan
            }
            // Told at the end, once; and by the agent itself.
            TranscriptEvent::UsageReported { .. }
            | TranscriptEvent::ToolRelayed { .. }
            | TranscriptEvent::InFlight { .. } => return Vec::new(),
        };
        vec![Piece::Line(line)]
    }
}

/// A tool with what says most of its arguments.
pub(crate) fn called(tool: &str, arguments: &Value) -> String {
    const TELLING: [&str; 8] = ["command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url"];
    let telling = TELLING.iter().find_map(|name| match &arguments[*name] {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(words.join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    });
    let shown = match (telling, arguments) {
        (Some(text), _) => text,
        (None, Value::Null) => String::new(),
        (None, Value::Object(fields)) if fields.is_empty() => String::new(),
        (None, other) => other.to_string(),
    };
    let shown = fit(&one_line(&shown), ARGUMENTS_COLUMNS);
    if shown.is_empty() { one_line(tool) } else { format!("{} {shown}", one_line(tool)) }
}

/// The text of a result, wherever it lies in it.
pub(crate) fn answer(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => one_line(text),
        Value::Array(parts) => {
            let parts: Vec<String> = parts.iter().map(answer).filter(|part| !part.is_empty()).collect();
            parts.join(" ")
        }
        Value::Object(fields) => {
            let inner =
                ["text", "content", "message", "error", "output"].iter().find_map(|name| fields.get(*name));
            inner.map_or_else(|| one_line(&content.to_string()), answer)
        }
        Value::Bool(_) | Value::Number(_) => content.to_string(),
    }
}

/// How one answers a gate from anywhere.
pub(crate) fn how_to_answer(gate: GateId) -> String {
    format!("answer with `lanyard answer {gate} allow` or `… deny`")
}

fn gate(event: &GateEvent) -> Vec<Piece> {
    let lines = match event {
        GateEvent::Opened { gate, question, .. } => {
            vec![format!("asks: {}", one_line(&question.title)), how_to_answer(*gate)]
        }
        GateEvent::Answered { option, .. } => vec![format!("answered: {}", one_line(option))],
        GateEvent::Withdrawn { why, .. } => vec![format!("no answer is needed: {}", one_line(why))],
    };
    lines.into_iter().map(Piece::Line).collect()
}

fn run(event: &RunEvent) -> Option<String> {
    Some(match event {
        RunEvent::Started { mirrored: true, .. } | RunEvent::Wanted { .. } => return None,
        RunEvent::Started { agent, .. } => format!("starting {}", one_line(agent)),
        RunEvent::Ready(ready) => {
            let version = ready.info.version.as_deref().map(|text| format!(" {}", one_line(text)));
            let how = ready.continuity.map(|how| format!(", continuity {}", how.as_str()));
            let name = one_line(&ready.info.name);
            format!("{name}{} is ready{}", version.unwrap_or_default(), how.unwrap_or_default())
        }
        RunEvent::Adopted { .. } => "the daemon was started again; the same process goes on".to_owned(),
        RunEvent::ToolsMissing { servers, .. } if servers.is_empty() => {
            "the agent has reached all its MCP servers".to_owned()
        }
        RunEvent::ToolsMissing { servers, .. } => {
            format!("the agent works without MCP servers it was offered: {}", one_line(&servers.join(", ")))
        }
        RunEvent::Ended { how, reason, .. } => {
            let how = match how {
                RunEnd::Exited { code } => format!("exited with {code}"),
                RunEnd::Signalled { signal } => format!("was ended by signal {signal}"),
                RunEnd::Lost => "was lost".to_owned(),
                RunEnd::HostLost => "was lost with its machine".to_owned(),
                RunEnd::NotStarted { .. } => "did not come to work".to_owned(),
            };
            let reason = reason.as_deref().map(|reason| format!(": {}", one_line(reason)));
            format!("the agent {how}{}", reason.unwrap_or_default())
        }
    })
}

fn turn(event: &TurnEvent) -> Option<String> {
    match event {
        TurnEvent::CancelRequested { forced, .. } => Some(
            if *forced { "cancelled again, not waiting for the agent" } else { "cancel requested" }
                .to_owned(),
        ),
        // Whoever watches began it, and is told of its end in words of its own.
        TurnEvent::Started { .. } | TurnEvent::Finished { .. } | TurnEvent::Interrupted { .. } => None,
    }
}

fn inbox(event: &InboxEvent) -> Option<String> {
    match event {
        InboxEvent::Queued { prompt, delivery, .. } => {
            Some(format!("{}: {}", delivery.as_str(), one_line(prompt)))
        }
        InboxEvent::Steered { channel, .. } => Some(format!("a message went in by {}", one_line(channel))),
        InboxEvent::Paused { reason } => Some(format!("the inbox is paused ({})", reason.as_str())),
        InboxEvent::Resumed {} => Some("the inbox goes on".to_owned()),
        InboxEvent::Edited { .. }
        | InboxEvent::Withdrawn { .. }
        | InboxEvent::Promoted { .. }
        | InboxEvent::Delivered { .. }
        | InboxEvent::Reordered { .. } => None,
    }
}

fn context(event: &ContextEvent) -> Option<String> {
    match event {
        ContextEvent::Compacted { size_before, size_after, .. } => {
            Some(format!("context compacted: {size_before} → {size_after}"))
        }
        ContextEvent::SnapshotSkipped { why, .. } => Some(format!("no checkpoint: {}", one_line(why))),
        ContextEvent::RolledBack { to, .. } => Some(format!("workspace rolled back to {}", one_line(to))),
        ContextEvent::ErrorSeen { text: Some(text), .. } => Some(format!("error: {}", one_line(text))),
        ContextEvent::Stalled { repeats, .. } => Some(format!("stalled: the same {repeats} times")),
        ContextEvent::AnchorsSet { .. }
        | ContextEvent::Checkpoint { .. }
        | ContextEvent::Snapshot { .. }
        | ContextEvent::IssueSeen { .. }
        | ContextEvent::ErrorSeen { text: None, .. } => None,
    }
}

fn control(event: &ControlEvent) -> Option<String> {
    match event {
        ControlEvent::StopRequested { level, .. } => Some(format!("stop requested, {}", stop_level(*level))),
        ControlEvent::StopRaised { to, .. } => Some(format!("stop raised to {}", stop_level(*to))),
        ControlEvent::StopWithdrawn { .. } => Some("the stop was taken back".to_owned()),
        ControlEvent::GuidanceQueued { text, .. } => Some(format!("guidance: {}", one_line(text))),
        ControlEvent::StopApplied { level, channel, .. } => {
            Some(format!("the agent was told to stop through {}, {}", channel.as_str(), stop_level(*level)))
        }
        ControlEvent::EndBlocked { why } => Some(one_line(why)),
        ControlEvent::StopComplied { .. } => Some("the agent does what the stop asks for".to_owned()),
        ControlEvent::GuidanceDelivered { channel, .. } => {
            Some(format!("guidance delivered through {}", one_line(channel)))
        }
        ControlEvent::StopSettled {}
        | ControlEvent::NoticeSent { .. }
        | ControlEvent::Introduced { .. }
        | ControlEvent::HandedOff { .. }
        | ControlEvent::GuidanceReturned { .. }
        | ControlEvent::GuidanceSettled { .. }
        | ControlEvent::CommandRefused { .. }
        | ControlEvent::SignalUnexpected { .. } => None,
    }
}

fn change(event: &ChangeEvent) -> Option<String> {
    match event {
        ChangeEvent::ChildLinked { child, agent } => {
            let agent = agent.as_deref().map(|agent| format!(" ({})", one_line(agent))).unwrap_or_default();
            Some(format!("child {child}{agent}"))
        }
        ChangeEvent::Migrated { .. } => Some("the session was handed over".to_owned()),
        ChangeEvent::Resumed { .. } => Some("the session was resumed after a stop".to_owned()),
        ChangeEvent::Created(_)
        | ChangeEvent::Linked { .. }
        | ChangeEvent::ChildUnlinked { .. }
        | ChangeEvent::Driven { .. }
        | ChangeEvent::AliasAdded { .. }
        | ChangeEvent::PlanJoined { .. }
        | ChangeEvent::MemorySet { .. }
        | ChangeEvent::Archived {}
        | ChangeEvent::Seen { .. }
        | ChangeEvent::Unarchived {}
        | ChangeEvent::Reset { .. }
        | ChangeEvent::Deleted { .. }
        | ChangeEvent::WentIdle { .. }
        | ChangeEvent::WentStale { .. }
        | ChangeEvent::Ended { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn told(events: &[(&str, Value)]) -> String {
        let mut narrator = Narrator::default();
        let mut pieces = Vec::new();
        for (seq, (kind, data)) in events.iter().enumerate() {
            let envelope: Envelope = serde_json::from_value(json!({
                "seq": seq + 1, "session": "sess_01m7n5djg0fayvh8t5cxyjkdnf", "at": "2026-11-15T08:00:00Z",
                "actor": {"kind": "system", "name": "agents"}, "type": kind, "data": data,
            }))
            .unwrap();
            pieces.extend(narrator.tell(&envelope));
        }
        pieces.extend(narrator.open_calls());
        pieces.iter().fold(String::new(), |text, piece| text + &format!("{piece:?}\n"))
    }

    #[test]
    fn a_turn_reads_as_words_and_lines() {
        let events = [
            ("thought", json!({"text": "hm"})),
            ("message", json!({"role": "agent", "text": "Looking.\nThen "})),
            ("message", json!({"role": "user", "text": "not shown"})),
            ("tool.called", json!({"call": "1", "tool": "bash", "arguments": {"command": "cargo test\n-q"}})),
            ("tool.returned", json!({"call": "1", "is_error": false, "content": [{"text": "fine"}]})),
            ("tool.called", json!({"call": "2", "tool": "edit"})),
            (
                "tool.returned",
                json!({"call": "2", "is_error": true, "content": [{"content": {"text": "no\nfile"}}]}),
            ),
            ("file.changed", json!({"path": "src/a.rs", "added": 3})),
            (
                "plan.updated",
                json!({"entries": [{"text": "look", "status": "completed"}, {"text": "do", "status": "in_progress"}]}),
            ),
            (
                "plan.updated",
                json!({"entries": [{"text": "look", "status": "completed"}, {"text": "do", "status": "in_progress"}]}),
            ),
            ("usage.reported", json!({"input_tokens": 1, "output_tokens": 2})),
            ("tool.called", json!({"call": "3", "tool": "wait", "arguments": {"for": 1}})),
        ];
        expect![[r#"
            Thought("hm")
            Words { text: "Looking.\nThen ", message_id: None, begins: true }
            Line("tool bash cargo test -q: ok")
            Line("tool edit: failed, no file")
            Line("file src/a.rs +3 -0")
            Line("plan: 1 of 2 steps done, now: do")
            Line("tool wait {\"for\":1}: no result")
        "#]]
        .assert_eq(&told(&events));
    }
}
