//! What an event refers to beside the journal.

use crate::attachment::AttachmentId;
use crate::session::event::{Event, InboxEvent, TranscriptEvent, TurnEvent};
use crate::session::part::{PromptPart, attached_blocks};

impl Event {
    /// The attachments that it names.
    #[must_use]
    pub fn attachments(&self) -> Vec<AttachmentId> {
        let of = |parts: &[PromptPart]| {
            parts.iter().filter_map(PromptPart::attached).map(|held| held.id).collect()
        };
        match self {
            Self::Turn(TurnEvent::Started { parts, .. })
            | Self::Inbox(InboxEvent::Queued { parts, .. })
            | Self::Transcript(TranscriptEvent::Message { parts, .. }) => of(parts),
            Self::Transcript(TranscriptEvent::ToolReturned { content, .. }) => attached_blocks(content),
            Self::Transcript(_)
            | Self::Turn(_)
            | Self::Inbox(_)
            | Self::Change(_)
            | Self::Context(_)
            | Self::Control(_)
            | Self::Run(_)
            | Self::Gate(_)
            | Self::Writer(_)
            | Self::Review(_) => Vec::new(),
        }
    }
}
