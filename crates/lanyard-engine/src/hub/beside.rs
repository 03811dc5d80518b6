//! What attached readers get beside the log: previews of text that is being written, who else is there, and a word when
//! they fell far behind. None of it has a position, so none of it moves a cursor, and losing it loses nothing.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use lanyard_core::redact::RedactionScope;
use lanyard_core::{SessionId, TurnId};
use serde::Serialize;
use tokio::time::Instant;

use crate::hub::Hub;
use crate::hub::ring::Ring;

/// A comment: the stream is alive.
pub const BEAT: Bytes = Bytes::from_static(b":\n\n");
/// How often the text that is being written is shown, per session.
const PREVIEW_EVERY: Duration = Duration::from_millis(50);
/// Events a reader that was up with the log may fall behind before it is told.
const RESYNC_EVENTS: u64 = 1_000;

/// Text that an agent is writing and that is no event yet.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename = "preview")]
pub struct Preview<'a> {
    pub kind: &'static str,
    pub text: &'a str,
    /// As in the message that will hold the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<&'a str>,
    pub turn: Option<TurnId>,
}

/// How much of what stands beside the log one reader has seen.
#[derive(Debug)]
pub(super) struct Beside {
    preview: u64,
    presence: u64,
    /// It was at the end of the log since it was last told that it is behind.
    caught_up: bool,
}

impl Beside {
    pub(super) fn from_now(ring: &Ring) -> Self {
        // A preview that stands already is new to this reader.
        let preview = ring.preview.number.wrapping_sub(1);
        Self { preview, presence: ring.presence.number, caught_up: false }
    }

    /// For a reader that has everything that is in the log.
    pub(super) fn next(&mut self, ring: &Ring) -> Option<Bytes> {
        self.caught_up = true;
        ring.presence.after(&mut self.presence).or_else(|| ring.preview.after(&mut self.preview))
    }
}

/// Said once to a reader that fell far behind. It gets everything all the same; it may prefer to begin at the end.
pub(super) fn resync(beside: &mut Beside, after: u64, head: u64) -> Option<Bytes> {
    if !beside.caught_up || head.saturating_sub(after) <= RESYNC_EVENTS {
        return None;
    }
    beside.caught_up = false;
    Some(control("resync", &serde_json::json!({ "type": "resync", "after": after, "head": head })))
}

/// A frame that is no event of the log: it has a name and no position.
pub fn control(name: &str, data: &impl Serialize) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_slice(b"event: ");
    frame.put_slice(name.as_bytes());
    frame.put_slice(b"\ndata: ");
    let mut writer = frame.writer();
    // Writing to memory fails only for maps whose keys are no text, and no frame has such a map.
    let _ = serde_json::to_writer(&mut writer, data);
    let mut frame = writer.into_inner();
    frame.put_slice(b"\n\n");
    frame.freeze()
}

impl Hub {
    /// Shows the text an agent is writing to attached clients. Lossy: the event that holds it replaces it.
    pub fn preview(&self, session: SessionId, preview: &Preview<'_>) {
        let Some(topic) = self.topic(session).filter(|topic| topic.ring().watchers > 0) else { return };
        {
            let mut last = topic.previewed_at.lock();
            let now = Instant::now();
            if last.is_some_and(|last| now.duration_since(last) < PREVIEW_EVERY) {
                return;
            }
            *last = Some(now);
        }
        let text = preview.text;
        let redacted = self.redactor().map(|redactor| {
            let text = &text[..redactor.shown(text)];
            redactor.redacted(text, RedactionScope::All).map_or_else(|| text.to_owned(), |(clean, _)| clean)
        });
        let shown = Preview { text: redacted.as_deref().unwrap_or(text), ..*preview };
        topic.ring().preview.put(control("preview", &shown));
        self.stir(&topic);
    }

    /// Broadcasts the presence list to all attached readers.
    pub fn presence(&self, session: SessionId, frame: Bytes) {
        let Some(topic) = self.topic(session) else { return };
        topic.ring().presence.put(frame);
        self.stir(&topic);
    }
}
