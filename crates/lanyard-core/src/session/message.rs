//! Boundaries between the messages of a conversation. Agents write a message in many pieces, and each piece may be an
//! event of its own; this is the one rule by which readers join them.

use crate::session::event::{Event, Role, TranscriptEvent, TurnEvent};

/// Follows a log and finds the first event of each message.
#[derive(Debug, Clone, Default)]
pub struct MessageBreaks {
    /// The author and id of the message that the next piece may continue.
    open: Option<(Role, Option<String>)>,
}

impl MessageBreaks {
    /// Whether this event begins a message. False for an event that continues one, and for all that are no message.
    ///
    /// A piece continues the message before it when it has the same role and the same id, or no id: a driver that took
    /// a run over in the middle of a message may not know it. A thought, a tool call, a changed file, and the beginning
    /// or end of a turn end a message, whatever its id.
    pub fn begins(&mut self, event: &Event) -> bool {
        match event {
            Event::Transcript(TranscriptEvent::Message { role, message_id, .. }) => {
                let goes_on = self
                    .open
                    .as_ref()
                    .is_some_and(|(held, id)| held == role && (message_id.is_none() || id == message_id));
                if !goes_on {
                    self.open = Some((*role, message_id.clone()));
                }
                !goes_on
            }
            Event::Transcript(
                TranscriptEvent::Thought { .. }
                | TranscriptEvent::ToolCalled { .. }
                | TranscriptEvent::FileChanged { .. },
            )
            | Event::Turn(
                TurnEvent::Started { .. } | TurnEvent::Finished { .. } | TurnEvent::Interrupted { .. },
            ) => {
                self.open = None;
                false
            }
            Event::Transcript(_)
            | Event::Turn(_)
            | Event::Inbox(_)
            | Event::Change(_)
            | Event::Context(_)
            | Event::Control(_)
            | Event::Run(_)
            | Event::Gate(_)
            | Event::Writer(_)
            | Event::Review(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: Role, id: &str) -> Event {
        let message_id = (!id.is_empty()).then(|| id.to_owned());
        TranscriptEvent::Message { role, text: "words".to_owned(), message_id, parts: Vec::new() }.into()
    }

    fn agent(id: &str) -> Event {
        said(Role::Agent, id)
    }

    /// FND-N8.
    #[test]
    fn fnd_n8_a_message_ends_at_another_id_a_thought_a_call_and_a_turn() {
        let thought: Event = TranscriptEvent::Thought { text: "hm".to_owned() }.into();
        let (call, tool, arguments) = ("c1".to_owned(), "t".to_owned(), serde_json::Value::Null);
        let called: Event = TranscriptEvent::ToolCalled { call, tool, arguments }.into();
        let usage = TranscriptEvent::UsageReported {
            input_tokens: 1,
            output_tokens: 1,
            context_tokens: None,
            cost_micros: 0,
        };
        let table = [
            (vec![agent("")], "1"),
            (vec![agent(""), agent("")], "10"),
            (vec![agent("a"), agent("a"), agent("b")], "101"),
            (vec![agent("a"), usage.into(), agent("a")], "100"),
            (vec![agent("a"), agent(""), agent("a")], "100"),
            (vec![agent(""), agent("a")], "11"),
            (vec![agent("a"), thought, agent("a")], "101"),
            (vec![agent(""), called, agent("")], "101"),
            (vec![agent("a"), said(Role::User, "a"), agent("a")], "111"),
        ];
        for (events, expected) in table {
            let mut breaks = MessageBreaks::default();
            let found: String =
                events.iter().map(|event| if breaks.begins(event) { '1' } else { '0' }).collect();
            assert_eq!(found, expected, "{events:?}");
        }
    }
}
