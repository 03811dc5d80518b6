//! A session's log as a conversation: who said what, which tools were used and what came of it, and what happened around
//! it. The one wording of events for people: `lanyard log`, `run`, `attach` and their like take it from here.

mod around;

use std::collections::BTreeMap;

use lanyard_core::session::{
    ChangeEvent, Ending, Envelope, Event, GateEvent, InboxEvent, InterruptCause, MessageBreaks,
    PlanEntryState, Role, RunEvent, TranscriptEvent, TurnEvent, TurnOutcome, with_labels,
};
use lanyard_core::{GateId, Timestamp, TurnId};
use serde::Deserialize;
use serde_json::Value;

use crate::render::event::{DAMAGED, limit_wait};
use crate::render::text::{count, fit, one_line, quoted};
use crate::render::time::span;
use crate::render::tool::{ToolReturn, ToolUse};

/// Calls held until they return; a further one is shown when it is made.
const CALLS_MAX: usize = 1_024;
/// Messages held until they run or go into a running turn.
const QUEUED_MAX: usize = 256;
/// Columns of a queued message.
const QUEUED_COLUMNS: usize = 120;

/// A part of the conversation, as an event tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TranscriptItem {
    /// A message to the agent.
    Prompt {
        from: String,
        text: String,
        /// It went into a turn that was running.
        steered: bool,
    },
    /// The agent's own words, which may go on in the next item.
    Words {
        who: String,
        text: String,
        message_id: Option<String>,
        begins: bool,
    },
    Thought(String),
    /// A tool call. Its result follows, or is in it already.
    Tool(Box<ToolUse>),
    Returned(Box<ToolReturn>),
    /// Something that happened.
    Note(String),
    /// Something done to the agent, or that needs a person.
    Loud(String),
    /// An approval.
    Asks {
        /// Nothing where it is known to be no longer open.
        gate: Option<GateId>,
        title: String,
    },
    /// The end of a turn, or of the session.
    End {
        text: String,
        completed: bool,
    },
}

/// Turns events into items. Knows what is needed from earlier events.
#[derive(Debug, Default)]
pub(crate) struct Transcriber {
    agent: Option<String>,
    plan: String,
    breaks: MessageBreaks,
    /// When the turn that runs began.
    began: Option<Timestamp>,
    queued: BTreeMap<TurnId, (String, String)>,
}

impl Transcriber {
    /// For a log that is not read from its beginning.
    pub(crate) fn of_agent(agent: Option<String>) -> Self {
        Self { agent, ..Self::default() }
    }

    /// The items of an event as it came over the wire. An event of a later version adds nothing; a damaged record is
    /// told.
    pub(crate) fn read(&mut self, raw: &Value) -> Vec<TranscriptItem> {
        if let Ok(envelope) = Envelope::deserialize(raw) {
            return self.tell(&envelope);
        }
        if raw["type"] == DAMAGED {
            let what = one_line(raw["data"]["what"].as_str().unwrap_or_default());
            let seq = raw["seq"].as_u64().unwrap_or(0);
            return vec![TranscriptItem::Loud(format!("event {seq} is damaged: {what}"))];
        }
        Vec::new()
    }

    pub(crate) fn tell(&mut self, envelope: &Envelope) -> Vec<TranscriptItem> {
        let begins = self.breaks.begins(&envelope.event);
        let who = one_line(&envelope.actor.name);
        let item = match &envelope.event {
            Event::Transcript(event) => self.transcript(event, envelope.occurred_at(), begins),
            Event::Turn(event) => self.turn(event, envelope.at, &who),
            Event::Inbox(event) => self.inbox(event, &who),
            Event::Run(event) => {
                if let RunEvent::Started { agent, .. } = event {
                    self.agent = Some(one_line(agent));
                }
                around::run(event).map(TranscriptItem::Note)
            }
            Event::Gate(event) => Some(gate(event, &who)),
            Event::Context(event) => around::context(event).map(TranscriptItem::Note),
            Event::Control(event) => around::control(event).map(TranscriptItem::Loud),
            Event::Change(ChangeEvent::Ended { how, reason }) => {
                let completed = *how == Ending::Completed;
                Some(TranscriptItem::End { text: session_end(*how, reason.as_deref()), completed })
            }
            Event::Change(event) => around::change(event).map(TranscriptItem::Note),
            Event::Writer(event) => around::writer(event, &who).map(TranscriptItem::Note),
            Event::Review(event) => around::review(event, &who).map(TranscriptItem::Note),
        };
        item.into_iter().collect()
    }

    fn transcript(&mut self, event: &TranscriptEvent, at: Timestamp, begins: bool) -> Option<TranscriptItem> {
        Some(match event {
            TranscriptEvent::Message { role: Role::Agent, text, message_id, parts } => {
                TranscriptItem::Words {
                    who: self.agent.clone().unwrap_or_else(|| "agent".to_owned()),
                    text: if begins || parts.is_empty() {
                        with_labels(text, parts)
                    } else {
                        format!("\n{}\n", with_labels(text, parts))
                    },
                    message_id: message_id.clone(),
                    begins,
                }
            }
            // The turn has told its prompt. Agents that Lanyard does not drive have messages without a turn.
            TranscriptEvent::Message { role: Role::User, .. } if self.began.is_some() => return None,
            TranscriptEvent::Message { role: Role::User, text, parts, .. } => {
                let text = with_labels(text, parts);
                TranscriptItem::Prompt { from: "user".to_owned(), text, steered: false }
            }
            TranscriptEvent::Thought { text } => TranscriptItem::Thought(text.clone()),
            TranscriptEvent::ToolCalled { call, tool, arguments } => {
                TranscriptItem::Tool(Box::new(ToolUse::called(call, at, tool, arguments)))
            }
            TranscriptEvent::ToolReturned { call, is_error, content } => {
                TranscriptItem::Returned(Box::new(ToolReturn::read(call, *is_error, content)))
            }
            TranscriptEvent::FileChanged { path, added, removed } => {
                TranscriptItem::Note(match (added, removed) {
                    (None, None) => format!("file {}", one_line(path)),
                    _ => {
                        format!("file {} +{} -{}", one_line(path), added.unwrap_or(0), removed.unwrap_or(0))
                    }
                })
            }
            TranscriptEvent::Planned { entries } => {
                let done = entries.iter().filter(|entry| entry.status == PlanEntryState::Completed).count();
                let now = entries.iter().find(|entry| entry.status == PlanEntryState::InProgress);
                let now = now.map(|entry| format!(", now: {}", one_line(&entry.text))).unwrap_or_default();
                let plan = format!("plan: {done} of {} done{now}", count(entries.len(), "step"));
                if plan == self.plan {
                    return None;
                }
                self.plan.clone_from(&plan);
                TranscriptItem::Note(plan)
            }
            // The agent tells of its calls itself; tokens are told elsewhere.
            TranscriptEvent::UsageReported { .. }
            | TranscriptEvent::ToolRelayed { .. }
            | TranscriptEvent::InFlight { .. } => return None,
        })
    }

    fn turn(&mut self, event: &TurnEvent, at: Timestamp, who: &str) -> Option<TranscriptItem> {
        match event {
            TurnEvent::Started { turn, prompt, parts, .. } => {
                self.began = Some(at);
                let from = self.queued.remove(turn).map_or_else(|| who.to_owned(), |(from, _)| from);
                Some(TranscriptItem::Prompt { from, text: with_labels(prompt, parts), steered: false })
            }
            TurnEvent::CancelRequested { forced: true, .. } => {
                Some(TranscriptItem::Loud("cancelled again, not waiting for the agent".to_owned()))
            }
            TurnEvent::CancelRequested { .. } => Some(TranscriptItem::Loud("cancel requested".to_owned())),
            TurnEvent::Waiting { limit, until, asks, .. } => {
                Some(TranscriptItem::Loud(format!("waits: {}", limit_wait(limit, *until, *asks))))
            }
            TurnEvent::Continued { asked: true, .. } => {
                Some(TranscriptItem::Note(format!("sent on by {who}")))
            }
            TurnEvent::Continued { .. } => Some(TranscriptItem::Note("goes on after the limit".to_owned())),
            TurnEvent::Finished { .. } | TurnEvent::Interrupted { .. } => {
                let completed = matches!(event, TurnEvent::Finished { outcome: TurnOutcome::Completed, .. });
                let took_ms = self.began.take().map(|began| at.millis_since(began));
                turn_end(event, took_ms).map(|text| TranscriptItem::End { text, completed })
            }
        }
    }

    fn inbox(&mut self, event: &InboxEvent, who: &str) -> Option<TranscriptItem> {
        match event {
            InboxEvent::Queued { turn, prompt, parts, .. } => {
                let prompt = with_labels(prompt, parts);
                if self.queued.len() < QUEUED_MAX {
                    self.queued.insert(*turn, (who.to_owned(), prompt.clone()));
                }
                let prompt = fit(&quoted(&prompt), QUEUED_COLUMNS);
                return Some(TranscriptItem::Note(format!("queued by {who}: {prompt}")));
            }
            InboxEvent::Edited { turn, prompt: Some(prompt), .. } => {
                if let Some((_, held)) = self.queued.get_mut(turn) {
                    held.clone_from(prompt);
                }
            }
            InboxEvent::Steered { turn, .. } => {
                if let Some((from, text)) = self.queued.remove(turn) {
                    return Some(TranscriptItem::Prompt { from, text, steered: true });
                }
            }
            InboxEvent::Withdrawn { turn, .. } => {
                self.queued.remove(turn);
            }
            InboxEvent::Edited { .. }
            | InboxEvent::Promoted { .. }
            | InboxEvent::Delivered { .. }
            | InboxEvent::Reordered { .. }
            | InboxEvent::Paused { .. }
            | InboxEvent::Resumed {} => {}
        }
        around::inbox(event, who).map(TranscriptItem::Note)
    }
}

fn gate(event: &GateEvent, who: &str) -> TranscriptItem {
    match event {
        GateEvent::Opened { gate, question, .. } => {
            TranscriptItem::Asks { gate: Some(*gate), title: one_line(&question.title) }
        }
        GateEvent::Answered { option, message, .. } => {
            let words = message.as_deref().map(|message| format!(", {}", quoted(message)));
            let words = words.unwrap_or_default();
            TranscriptItem::Note(format!("answered by {who}: {}{words}", one_line(option)))
        }
        GateEvent::Withdrawn { why, .. } => {
            TranscriptItem::Note(format!("no answer is needed: {}", one_line(why)))
        }
    }
}

/// How a turn ended: `completed after 3s`. Nothing for events that end no turn.
pub(crate) fn turn_end(event: &TurnEvent, took_ms: Option<u64>) -> Option<String> {
    let (how, reason) = match event {
        TurnEvent::Finished { outcome, reason, .. } => {
            let how = match outcome {
                TurnOutcome::Completed => "completed".to_owned(),
                TurnOutcome::Failed => "failed".to_owned(),
                TurnOutcome::Refused => "refused by the agent".to_owned(),
            };
            (how, reason.as_deref())
        }
        TurnEvent::Interrupted { cause, reason, .. } => match cause {
            InterruptCause::User => {
                ("cancelled".to_owned(), reason.as_deref().filter(|reason| *reason != "cancelled"))
            }
            InterruptCause::Crash
            | InterruptCause::Timeout
            | InterruptCause::HostLost
            | InterruptCause::Limit => (format!("interrupted by {}", cause.as_str()), reason.as_deref()),
        },
        TurnEvent::Started { .. }
        | TurnEvent::CancelRequested { .. }
        | TurnEvent::Waiting { .. }
        | TurnEvent::Continued { .. } => return None,
    };
    let took = took_ms.map(|ms| format!(" after {}", span(ms))).unwrap_or_default();
    let reason = reason.map(|reason| format!(": {}", one_line(reason))).unwrap_or_default();
    Some(format!("{how}{took}{reason}"))
}

/// How a session ended, as a sentence.
pub(crate) fn session_end(how: Ending, reason: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(": {}", one_line(reason))).unwrap_or_default();
    match how {
        Ending::Completed => format!("the session was completed{reason}"),
        Ending::Failed => format!("the session failed{reason}"),
        Ending::Stopped => format!("the session was stopped{reason}"),
    }
}

/// Holds calls until they return, so that a call and its result are one item.
#[derive(Debug, Default)]
pub(crate) struct CallPairs {
    open: BTreeMap<String, Box<ToolUse>>,
}

impl CallPairs {
    pub(crate) fn join(&mut self, item: TranscriptItem) -> Option<TranscriptItem> {
        if let TranscriptItem::Returned(returned) = item {
            let mut tool = self.open.remove(&returned.id)?;
            tool.returned = Some(*returned);
            return Some(TranscriptItem::Tool(tool));
        }
        let TranscriptItem::Tool(tool) = item else { return Some(item) };
        if tool.returned.is_some() || self.open.len() >= CALLS_MAX {
            return Some(TranscriptItem::Tool(tool));
        }
        self.open.insert(tool.id.clone(), tool);
        None
    }

    /// Calls that have not returned, in the order they were made.
    pub(crate) fn unfinished(&mut self) -> Vec<TranscriptItem> {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_by_key(|tool| tool.at);
        open.into_iter().map(TranscriptItem::Tool).collect()
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
