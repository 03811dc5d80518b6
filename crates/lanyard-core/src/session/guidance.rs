//! Guidance: words sent into a running agent. Never lost: pending, then delivered, then acknowledged;
//! or withdrawn, or expired.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::{Actor, ActorKind};
use crate::id::NoteId;
use crate::policy::{Limits, Overlong};
use crate::session::directive;
use crate::session::record::is_default;
use crate::session::refusal::Refusal;
use crate::text::cut;
use crate::time::Timestamp;

/// A piece of guidance that is not settled yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    pub id: NoteId,
    pub text: String,
    pub queued_at: Timestamp,
    pub by: Actor,
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: NoteKind,
    pub status: NoteStatus,
    /// The delivery of the note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<NoteDelivery>,
    /// The note went out before, and its arrival is unknown: the next delivery is marked as a repeat.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

impl Note {
    /// The words as an agent gets them with a prompt, where no answer carries them.
    #[must_use]
    pub fn in_prompt(&self) -> String {
        match (self.kind, self.by.kind) {
            (NoteKind::Notice, _) => format!("{}\n{}", directive::INTERRUPTED, self.text),
            (NoteKind::Report, _) => format!("{}\n{}", directive::REPORT, neutral(&self.text)),
            (NoteKind::Steer, ActorKind::Operator | ActorKind::System) => {
                format!("Message from {}: {}", self.by.name, self.text)
            }
            (NoteKind::Guidance, ActorKind::Operator | ActorKind::System) => {
                format!("Guidance from {}: {}", self.by.name, self.text)
            }
            (NoteKind::Guidance | NoteKind::Steer, ActorKind::Agent | ActorKind::Observer) => {
                format!("{} `{}` says:\n{}", self.by.kind.as_str(), self.by.name, neutral(&self.text))
            }
        }
    }
}

/// The kind of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Guidance of a person.
    #[default]
    Guidance,
    /// Lanyard tells of a child that was stopped.
    Notice,
    /// A whole message of the inbox that is to go into the running turn; it is never cut.
    Steer,
    /// A report of a session below: agent output, with its source. A report does not expire.
    Report,
}

impl NoteKind {
    /// Whether it is given up when nobody could be told in time.
    #[must_use]
    pub const fn expires(self) -> bool {
        match self {
            Self::Guidance => true,
            // What became of a child is as true tomorrow.
            Self::Notice | Self::Steer | Self::Report => false,
        }
    }
}

/// The delivery of a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoteDelivery {
    pub at: Timestamp,
    /// `mcp`, `hook`, `steer` or `prompt`.
    pub channel: String,
    /// The call in whose answer it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The daemon that sent the note: a note that another daemon sent may have been lost with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteStatus {
    Pending,
    Delivered,
    Acknowledged,
    Withdrawn,
    Expired,
    /// The session ended before the words could be delivered.
    Undelivered,
}

/// Phrases that try to speak as the system, compared without case.
const SYSTEM_PHRASES: [&str; 3] = ["you are now", "ignore previous", "system:"];
/// Keys of what looks like a tool call written in prose.
const CALL_KEYS: [&str; 2] = ["action", "tool"];

/// The result of a check of guidance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Checked {
    pub valid: bool,
    /// The words as somebody other than an operator would have them delivered.
    pub sanitized: String,
    pub warnings: Vec<String>,
}

/// Looks for what only pretends to be a call or an instruction of the system. An operator's words are delivered
/// verbatim all the same, and the sender is told what was found.
#[must_use]
pub fn check(text: &str, limits: &Limits) -> Checked {
    let (kept, was_cut) = cut(text, limits.guidance_chars);
    let mut warnings = Vec::new();
    if was_cut {
        let lost = text.chars().count() - limits.guidance_chars;
        let max = limits.guidance_chars;
        warnings.push(format!("the text was cut to {max} characters; the last {lost} were left out"));
    }
    let found = findings(kept);
    if found.iter().any(|(_, what)| *what == Finding::Call) {
        warnings
            .push("part of it looks like a tool call; it is delivered as words, not as a call".to_owned());
    }
    if found.iter().any(|(_, what)| *what == Finding::System) {
        warnings.push("part of it speaks as a system prompt would; it is delivered as guidance".to_owned());
    }
    Checked { valid: !kept.trim().is_empty(), sanitized: neutral(kept), warnings }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Finding {
    Call,
    System,
}

/// Positions that need a neutral sign, in order, each with its reason.
fn findings(text: &str) -> Vec<(usize, Finding)> {
    let lower = text.to_ascii_lowercase();
    let mut found: Vec<(usize, Finding)> = Vec::new();
    for phrase in SYSTEM_PHRASES {
        found.extend(lower.match_indices(phrase).map(|(at, _)| (at + 1, Finding::System)));
    }
    for (at, _) in lower.match_indices('{') {
        let rest = lower[at + 1..].trim_start();
        let is_key = |key: &str| {
            let after = rest.strip_prefix('"').and_then(|rest| rest.strip_prefix(key));
            let after = after.and_then(|rest| rest.strip_prefix('"'));
            after.is_some_and(|rest| rest.trim_start().starts_with(':'))
        };
        if CALL_KEYS.into_iter().any(is_key) {
            found.push((at + 1, Finding::Call));
        }
    }
    found.sort_unstable();
    found
}

/// Words of anybody but an operator: each line quoted, and what pretends to be a call or the system broken up.
#[must_use]
pub(super) fn neutral(text: &str) -> String {
    let mut broken = String::with_capacity(text.len() + 16);
    let mut from = 0;
    for (at, _) in findings(text) {
        broken.push_str(&text[from..at]);
        broken.push('\u{2060}');
        from = at;
    }
    broken.push_str(&text[from..]);
    let quoted: Vec<String> = broken.lines().map(|line| format!("> {line}")).collect();
    quoted.join("\n")
}

/// The text as it will be delivered, and warnings for its sender. The text is kept verbatim: permissions limit an
/// agent, not edited prose.
pub(super) fn admit(text: &str, limits: &Limits) -> Result<(String, Vec<String>), Refusal> {
    let (kept, was_cut) = cut(text, limits.guidance_chars);
    if was_cut && limits.overlong == Overlong::Refuse {
        return Err(Refusal::TooLong { field: "text", max: limits.guidance_chars, unit: "characters" });
    }
    Ok((kept.to_owned(), check(text, limits).warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S0-46, S0-T16, S0-B19.
    #[test]
    fn text_over_the_limit_is_cut_with_a_warning_and_exactly_the_limit_is_not() {
        let limits = Limits::default();
        let (kept, warnings) = admit(&"é".repeat(600), &limits).unwrap();
        assert_eq!(kept.chars().count(), 500);
        assert_eq!(warnings, ["the text was cut to 500 characters; the last 100 were left out"]);
        assert_eq!(admit(&"é".repeat(500), &limits), Ok(("é".repeat(500), vec![])));
    }
}
