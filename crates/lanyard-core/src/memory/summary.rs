//! What a session leaves behind, in words made from its log alone: no model is asked. Bounded, whatever the log's length.

use crate::session::{Envelope, Event, Role, Session, TranscriptEvent, TurnEvent};
use crate::text::cut;

/// Characters of a prompt, and of the agent's last words.
const WORDS_CHARS_MAX: usize = 1_000;
/// Files that are named; of more, their number.
const FILES_MAX: usize = 50;

/// Reads a log in order and remembers what is worth telling.
#[derive(Debug, Default)]
pub struct Summary {
    asked: Option<String>,
    said: Option<String>,
    files: Vec<String>,
    more_files: usize,
}

impl Summary {
    pub fn see(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::Turn(TurnEvent::Started { prompt, .. }) => {
                // The first thing that was asked is what it was about.
                self.asked.get_or_insert_with(|| cut(prompt, WORDS_CHARS_MAX).0.to_owned());
            }
            Event::Transcript(TranscriptEvent::Message { role: Role::Agent, text })
                if !text.trim().is_empty() =>
            {
                self.said = Some(cut(text, WORDS_CHARS_MAX).0.to_owned());
            }
            Event::Transcript(TranscriptEvent::FileChanged { path, .. }) if !self.files.contains(path) => {
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
            | Event::Writer(_) => {}
        }
    }

    /// Nothing where nothing was asked: a session that never had a turn leaves nothing.
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
