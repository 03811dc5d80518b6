//! Guidance: words sent into a running agent. Never lost: pending, then delivered, then acknowledged or withdrawn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::NoteId;
use crate::policy::{Limits, Overlong};
use crate::session::refusal::Refusal;
use crate::text::cut;
use crate::time::Timestamp;

/// A piece of guidance that is not settled yet (S0-05).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    pub id: NoteId,
    pub text: String,
    pub queued_at: Timestamp,
    pub by: Actor,
    pub status: NoteStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteStatus {
    Pending,
    Delivered,
}

/// The text as it will be delivered, and what its sender should know (S0-46, X-08). The words themselves are kept
/// verbatim: what an agent may do is enforced by permissions, not by editing prose (S0-B01).
pub(super) fn admit(text: &str, limits: &Limits) -> Result<(String, Vec<String>), Refusal> {
    let (kept, was_cut) = cut(text, limits.guidance_chars);
    if was_cut && limits.overlong == Overlong::Refuse {
        return Err(Refusal::TooLong { field: "text", max: limits.guidance_chars, unit: "characters" });
    }
    let warnings = if was_cut {
        let lost = text.chars().count() - limits.guidance_chars;
        vec![format!(
            "the text was cut to {} characters; the last {lost} were left out",
            limits.guidance_chars
        )]
    } else {
        Vec::new()
    };
    Ok((kept.to_owned(), warnings))
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
