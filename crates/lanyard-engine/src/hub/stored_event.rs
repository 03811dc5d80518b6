//! Stored events as clients get them. What was appended is passed on as it is; a damaged one is shown as damaged.

use bytes::{BufMut, Bytes, BytesMut};
use lanyard_core::SessionId;
use lanyard_store::{EventPage, StoredEvent};

/// The event's JSON.
#[must_use]
pub(super) fn event_json(session: SessionId, event: &StoredEvent) -> Bytes {
    match &event.body {
        Ok(body) => body.clone(),
        Err(damage) => {
            let shown = serde_json::json!({
                "seq": event.seq,
                "session": session,
                "type": "record.damaged",
                "data": damage,
            });
            Bytes::from(shown.to_string())
        }
    }
}

/// `{"events": […], "head": n}`, made of the stored bytes without reading them.
#[must_use]
pub fn events_json(session: SessionId, page: &EventPage) -> Bytes {
    let mut json = BytesMut::new();
    json.put_slice(b"{\"events\":[");
    for (at, event) in page.events.iter().enumerate() {
        if at > 0 {
            json.put_u8(b',');
        }
        json.extend_from_slice(&event_json(session, event));
    }
    json.put_slice(b"],\"head\":");
    json.put_slice(page.head.to_string().as_bytes());
    json.put_u8(b'}');
    json.freeze()
}
