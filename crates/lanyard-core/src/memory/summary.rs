//! The summary that a session leaves in memory. The log alone determines it, no model is called, and its length is
//! bounded.

use crate::memory::{MemoryPolicy, Tags, Where, admit};
use crate::session::{Envelope, Event, MessageBreaks, Role, Session, TranscriptEvent, TurnEvent};
use crate::text::cut;

/// Characters of a prompt, and of the agent's last words.
const WORDS_CHARS_MAX: usize = 1_000;
/// Files that are named; of more, their number.
const FILES_MAX: usize = 50;

/// The tag every summary has.
pub const TAG: &str = "summary";

/// Reads a log in order and remembers what is worth telling, and may be told: a turn whose policy forbids the store the
/// summary is for leaves nothing in it.
#[derive(Debug)]
pub struct Summary {
    to: Where,
    breaks: MessageBreaks,
    /// The current turn must not appear in the summary.
    hushed: bool,
    asked: Option<String>,
    said: Option<String>,
    files: Vec<String>,
    more_files: usize,
}

impl Summary {
    #[must_use]
    pub fn new(to: Where) -> Self {
        Self {
            to,
            breaks: MessageBreaks::default(),
            hushed: false,
            asked: None,
            said: None,
            files: Vec::new(),
            more_files: 0,
        }
    }

    pub fn see(&mut self, envelope: &Envelope) {
        let begins = self.breaks.begins(&envelope.event);
        match &envelope.event {
            Event::Turn(TurnEvent::Started { prompt, memory, .. }) => {
                self.hushed = memory.as_ref().is_some_and(|policy| !self.may_tell(policy));
                if self.hushed {
                    return;
                }
                // The first thing that was asked is what it was about.
                self.asked.get_or_insert_with(|| cut(prompt, WORDS_CHARS_MAX).0.to_owned());
            }
            Event::Transcript(TranscriptEvent::Message { role: Role::Agent, text, .. })
                if !self.hushed && !text.trim().is_empty() =>
            {
                let words = match self.said.take().filter(|_| !begins) {
                    Some(said) => said + text,
                    None => text.clone(),
                };
                self.said = Some(cut(&words, WORDS_CHARS_MAX).0.to_owned());
            }
            Event::Transcript(TranscriptEvent::FileChanged { path, .. })
                if !self.hushed && !self.files.contains(path) =>
            {
                if self.files.len() < FILES_MAX {
                    self.files.push(path.clone());
                } else {
                    self.more_files += 1;
                }
            }
            Event::Change(_)
            | Event::Turn(_)
            | Event::Inbox(_)
            | Event::Context(_)
            | Event::Control(_)
            | Event::Transcript(_)
            | Event::Run(_)
            | Event::Gate(_)
            | Event::Writer(_)
            | Event::Review(_) => {}
        }
    }

    fn may_tell(&self, policy: &MemoryPolicy) -> bool {
        let tags: Tags = TAG.parse().into_iter().collect();
        admit(policy, self.to, &tags).is_ok()
    }

    /// The summary; `None` for a session that never had a turn.
    #[must_use]
    pub fn told(&self, session: &Session) -> Option<String> {
        let asked = self.asked.as_deref()?;
        let title = session.title.as_deref().unwrap_or("a session without a title");
        let agent = session.hands.agent.as_deref().unwrap_or("an agent");
        let mut lines = vec![format!(
            "{title}: {agent} ended as {} after {} turns.",
            session.state.name(),
            session.turns
        )];
        if let Some(reason) = &session.end_reason {
            lines.push(format!("Reason: {reason}"));
        }
        lines.push(format!("Asked: {}", asked.trim()));
        if let Some(said) = &self.said {
            lines.push(format!("Last words: {}", said.trim()));
        }
        if !self.files.is_empty() {
            let more = match self.more_files {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            lines.push(format!("Files touched: {}{more}", self.files.join(", ")));
        }
        Some(lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Actor;
    use crate::id::{SessionId, TurnId};
    use crate::policy::{Limits, MemoryMode};
    use crate::session::{Delivery, NewSession, Opening, create};
    use crate::time::Timestamp;

    fn envelope(seq: u64, event: impl Into<Event>) -> Envelope {
        let (session, at, actor) =
            (SessionId::from_u128(1), Timestamp::from_millis(0), Actor::operator("ann"));
        Envelope { seq, session, at, actor, cause: None, event: event.into() }
    }

    fn turn(prompt: &str, mode: MemoryMode) -> Event {
        TurnEvent::Started {
            turn: TurnId::from_u128(1),
            client_turn_id: None,
            prompt: prompt.to_owned(),
            parts: Vec::new(),
            prompt_hash: String::new(),
            opening: Opening::New,
            anchors: Vec::new(),
            governance: false,
            delivery: Delivery::Reject,
            queued: false,
            by: None,
            memory: Some(MemoryPolicy::of(mode)),
            choice: crate::session::AgentChoice::default(),
            forced: false,
        }
        .into()
    }

    fn said(text: &str) -> Event {
        TranscriptEvent::Message {
            role: Role::Agent,
            text: text.to_owned(),
            message_id: None,
            parts: Vec::new(),
        }
        .into()
    }

    fn file(path: &str) -> Event {
        TranscriptEvent::FileChanged { path: path.to_owned(), added: None, removed: None }.into()
    }

    fn told(to: Where, events: impl IntoIterator<Item = Event>) -> Option<String> {
        let new = NewSession { title: Some("Flaky test".to_owned()), ..NewSession::default() };
        let created = create(&new, "ann", None, &Limits::default()).unwrap();
        let session = Session::born(&envelope(1, created)).unwrap();
        let mut summary = Summary::new(to);
        events.into_iter().for_each(|event| summary.see(&envelope(2, event)));
        summary.told(&session)
    }

    #[test]
    fn it_tells_what_was_asked_said_and_touched() {
        let events =
            [turn("Fix it", MemoryMode::Full), file("a.rs"), said("Looking"), file("a.rs"), said("Done")];
        let text = told(Where::LongTerm, events).unwrap();
        assert!(text.starts_with("Flaky test: an agent ended as beginning"), "{text}");
        assert!(text.ends_with("Asked: Fix it\nLast words: Done\nFiles touched: a.rs"), "{text}");
        assert_eq!(told(Where::LongTerm, [said("nobody asked")]), None);
    }

    /// S3-26, S3-32: what a turn may not remember is not remembered for it when all is over.
    #[test]
    fn a_turn_that_may_not_be_remembered_is_not_told_of() {
        let secret = || [turn("the secret", MemoryMode::Off), said("secret words"), file("secret.rs")];
        assert_eq!(told(Where::Session, secret()), None);
        let mixed = || secret().into_iter().chain([turn("go on", MemoryMode::SessionOnly), said("fine")]);
        let text = told(Where::Session, mixed()).unwrap();
        assert!(text.contains("go on") && !text.contains("secret"), "{text}");
        assert_eq!(told(Where::LongTerm, mixed()), None);
    }

    #[test]
    fn it_is_bounded() {
        let files = (0..100).map(|n| file(&format!("{n}.rs")));
        let text =
            told(Where::Session, [turn(&"é".repeat(9_000), MemoryMode::Full)].into_iter().chain(files));
        let text = text.unwrap();
        assert!(text.ends_with("and 50 more") && text.chars().count() < 3_000, "{text}");
    }
}
