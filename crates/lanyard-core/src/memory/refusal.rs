//! Why something about memory was not done: a stable code, what happened, what to do.

use crate::memory::admit::Rule;
use crate::memory::tag::TAG_CHARS_MAX;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("`{tag}` cannot be a tag")]
    BadTag { tag: String },
    #[error("{field} is empty")]
    Empty { field: &'static str },
    #[error("{field} has more than {max} characters")]
    TooLong { field: &'static str, max: usize },
    #[error("{field} has more than {max} entries")]
    TooMany { field: &'static str, max: usize },
    #[error("{field} holds a control character or a line break")]
    BadText { field: &'static str },
    #[error("the memory policy would allow more than {of} does")]
    Wider { of: &'static str },
    #[error("{0}")]
    Forbidden(Rule),
}

impl Refusal {
    /// The code callers branch on. It never changes once published.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::BadTag { .. } => "memory_tag_bad",
            Self::Empty { .. } => "field_empty",
            Self::TooLong { .. } => "field_too_long",
            Self::TooMany { .. } => "field_too_many",
            Self::BadText { .. } => "field_bad_text",
            Self::Wider { .. } => "memory_policy_wider",
            Self::Forbidden(rule) => rule.code(),
        }
    }

    /// One sentence of what to do.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::BadTag { .. } => {
                format!("use letters, digits and - _ . : / +, at most {TAG_CHARS_MAX} characters")
            }
            Self::Empty { .. } => "give at least one visible character".into(),
            Self::TooLong { .. } => "shorten it; put long content into a file".into(),
            Self::TooMany { .. } => "send fewer".into(),
            Self::BadText { .. } => "write it on one line, without control characters".into(),
            Self::Wider { .. } => {
                "a policy is only ever tightened below; ask for less, or widen the one above first".into()
            }
            Self::Forbidden(rule) => rule.advice().into(),
        }
    }

    /// Whether the request itself is at fault, rather than what it asked of.
    #[must_use]
    pub const fn is_bad_request(&self) -> bool {
        match self {
            Self::BadTag { .. }
            | Self::Empty { .. }
            | Self::TooLong { .. }
            | Self::TooMany { .. }
            | Self::BadText { .. } => true,
            Self::Wider { .. } | Self::Forbidden(_) => false,
        }
    }
}
