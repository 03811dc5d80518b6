//! An event of the log as an entry of the audit. Read by its name alone, so that what a newer daemon wrote is shown too.

use std::sync::LazyLock;

use lanyard_api::types::{AuditEntry, AuditKind};
use lanyard_core::text::cut;
use lanyard_core::{Actor, SessionId, Timestamp};
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::Value;

use crate::api::mutations::Mutation;

/// The most that is shown of a text.
const PREVIEW_CHARS: usize = 100;

/// What must stand in the bytes of an event that matters; the cheap question before the dear one.
static MARKS: LazyLock<[Finder<'static>; 4]> = LazyLock::new(|| {
    [r#""type":"stop."#, r#""type":"guidance."#, r#""type":"gate.answered""#, r#""type":"session.ended""#]
        .map(Finder::new)
});

#[derive(Debug, Deserialize)]
struct Stored {
    seq: u64,
    session: SessionId,
    at: Timestamp,
    actor: Actor,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    data: Value,
}

/// The entry an event is; nothing for most.
pub(super) fn read(body: &[u8]) -> Option<AuditEntry> {
    MARKS.iter().any(|mark| mark.find(body).is_some()).then_some(())?;
    let stored: Stored = serde_json::from_slice(body).ok()?;
    let kind = kind(&stored)?;
    let data = &stored.data;
    let text = |key: &str| data[key].as_str().map(str::to_owned);
    let level = |key: &str| data[key].as_u64().and_then(|level| u8::try_from(level).ok());
    Some(AuditEntry {
        at: stored.at,
        session: Some(stored.session),
        seq: stored.seq,
        kind,
        name: name(&stored.kind).map(str::to_owned),
        actor: stored.actor,
        channel: text("channel"),
        call: text("call"),
        escalation_level: level("level").or_else(|| level("to")),
        from_level: level("from"),
        to_level: level("to"),
        reason: text("reason").or_else(|| text("message")),
        text_preview: data["text"].as_str().or(data["preview"].as_str()).map(preview),
        about: about(data),
        outcome: text("how").or_else(|| text("option")).or_else(|| text("compliance")),
        event: stored.kind,
    })
}

/// The entry a change is.
pub(super) fn of_change(mutation: Mutation, serial: u64) -> AuditEntry {
    AuditEntry {
        at: mutation.at,
        session: None,
        seq: serial,
        kind: AuditKind::Change,
        event: mutation.name,
        name: None,
        actor: mutation.actor,
        channel: None,
        call: None,
        escalation_level: None,
        from_level: None,
        to_level: None,
        reason: mutation.reason,
        text_preview: None,
        about: vec![mutation.path],
        outcome: None,
    }
}

fn kind(stored: &Stored) -> Option<AuditKind> {
    if stored.kind.starts_with("stop.") {
        return Some(AuditKind::Stop);
    }
    if stored.kind.starts_with("guidance.") {
        return Some(AuditKind::Guidance);
    }
    match stored.kind.as_str() {
        "gate.answered" => Some(AuditKind::Gate),
        // The end that a stop asked for.
        "session.ended" if stored.data["how"] == "stopped" => Some(AuditKind::Stop),
        _ => None,
    }
}

/// The audit name of an event. Only events that took effect have one; a request alone has none.
fn name(event: &str) -> Option<&'static str> {
    match event {
        "stop.applied" => Some("session_interrupted"),
        "guidance.delivered" => Some("session_injected"),
        "stop.raised" => Some("session_stop_escalated"),
        _ => None,
    }
}

fn about(data: &Value) -> Vec<String> {
    let one = ["note", "gate"].into_iter().filter_map(|key| data[key].as_str());
    let many = data["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    one.chain(many).map(str::to_owned).collect()
}

fn preview(text: &str) -> String {
    cut(text, PREVIEW_CHARS).0.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, data: &Value) -> Vec<u8> {
        let session = SessionId::from_u128(1 << 80).to_string();
        serde_json::json!({
            "seq": 7, "session": session, "at": "2026-11-15T08:00:00.000Z",
            "actor": { "kind": "operator", "name": "local" }, "type": kind, "data": data,
        })
        .to_string()
        .into_bytes()
    }

    #[test]
    fn what_was_applied_has_the_name_other_systems_use() {
        let data = serde_json::json!({ "level": 2, "channel": "hook", "call": "toolu_1" });
        let entry = read(&event("stop.applied", &data)).unwrap();
        assert_eq!(entry.name.as_deref(), Some("session_interrupted"));
        assert_eq!((entry.escalation_level, entry.channel.as_deref()), (Some(2), Some("hook")));
        let entry = read(&event("stop.raised", &serde_json::json!({ "from": 1, "to": 2 }))).unwrap();
        assert_eq!((entry.from_level, entry.to_level), (Some(1), Some(2)));
        assert_eq!(entry.name.as_deref(), Some("session_stop_escalated"));
        let asked = read(&event("stop.requested", &serde_json::json!({ "level": 1 }))).unwrap();
        assert_eq!(asked.name, None);
    }

    #[test]
    fn no_more_than_a_hundred_characters_of_a_text_are_shown() {
        let long = "é".repeat(300);
        for (kind, key) in [("guidance.queued", "text"), ("guidance.delivered", "preview")] {
            let mut data = serde_json::json!({ "note": "note_1" });
            data[key] = long.as_str().into();
            let entry = read(&event(kind, &data)).unwrap();
            assert_eq!(entry.text_preview.unwrap().chars().count(), 100);
            assert_eq!(entry.about, ["note_1"]);
        }
    }

    #[test]
    fn words_that_only_look_like_an_event_are_none() {
        let data = serde_json::json!({ "text": r#"{"type":"stop.applied"}"# });
        assert_eq!(read(&event("message", &data)), None);
        assert_eq!(read(b"\"type\":\"stop."), None);
        assert_eq!(read(&event("session.ended", &serde_json::json!({ "how": "completed" }))), None);
    }
}
