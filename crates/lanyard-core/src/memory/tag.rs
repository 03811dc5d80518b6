//! Tags: the words entries are sorted by and policies speak of. One spelling each: lower case, `-` for spaces.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::memory::MemoryRefusal;
use crate::text::cut;

/// Characters of one tag.
pub const TAG_CHARS_MAX: usize = 64;
/// Tags of one entry, one policy or one allow-list.
pub const TAGS_MAX: usize = 32;

/// A tag in its one spelling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Tag(String);

/// Each once, in order.
pub type Tags = BTreeSet<Tag>;

impl Tag {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Converts a text that was stored as a tag before tags had rules.
    #[must_use]
    pub fn salvage(text: &str) -> Option<Self> {
        let kept: String = spelled(text).chars().filter(|c| allowed(*c)).take(TAG_CHARS_MAX).collect();
        kept.parse().ok()
    }
}

impl FromStr for Tag {
    type Err = MemoryRefusal;

    fn from_str(text: &str) -> Result<Self, MemoryRefusal> {
        let tag = spelled(text);
        let bad = || MemoryRefusal::BadTag { tag: shown(text) };
        if !tag.chars().all(allowed) || !tag.chars().any(char::is_alphanumeric) {
            return Err(bad());
        }
        if cut(&tag, TAG_CHARS_MAX).1 { Err(bad()) } else { Ok(Self(tag)) }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Tag {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Parses tags: each is normalised and kept once.
pub fn parse<S: AsRef<str>>(field: &'static str, texts: &[S]) -> Result<Tags, MemoryRefusal> {
    // Bounded before it is looked at: the list comes from outside.
    if texts.len() > TAGS_MAX {
        return Err(MemoryRefusal::TooMany { field, max: TAGS_MAX });
    }
    texts.iter().map(|text| text.as_ref().parse()).collect()
}

/// As a line shows them.
#[must_use]
pub fn joined(tags: &Tags) -> String {
    tags.iter().map(Tag::as_str).collect::<Vec<_>>().join(", ")
}

fn spelled(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join("-").to_lowercase()
}

fn allowed(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '+')
}

/// A refused tag is shown without what could not be shown, and not whole.
fn shown(text: &str) -> String {
    cut(text, TAG_CHARS_MAX).0.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3-25: normalised on the way in.
    #[test]
    fn a_tag_has_one_spelling() {
        for (text, tag) in [
            (" Dev_Test ", "dev_test"),
            ("API design", "api-design"),
            ("straße", "straße"),
            ("設計", "設計"),
            ("a:b/c+d.e", "a:b/c+d.e"),
        ] {
            assert_eq!(text.parse::<Tag>().unwrap().as_str(), tag);
        }
        assert_eq!(parse("tags", &["b", "A", "a "]).unwrap().len(), 2);
    }

    #[test]
    fn odd_characters_are_refused_and_shown_harmlessly() {
        for bad in ["", "  ", "a,b", "a\"b", "a\0b", "\u{1b}[31m", "--", "a;b", "🎈", &"x".repeat(65)] {
            let refused = bad.parse::<Tag>().unwrap_err();
            assert_eq!(refused.code(), "memory_tag_bad", "{bad:?}");
            assert!(!refused.to_string().contains(char::is_control), "{bad:?}");
        }
        let many: Vec<String> = (0..=TAGS_MAX).map(|n| format!("t{n}")).collect();
        assert_eq!(parse("tags", &many).unwrap_err().code(), "field_too_many");
    }

    #[test]
    fn what_was_a_tag_before_is_kept_as_far_as_it_goes() {
        assert_eq!(Tag::salvage("API, design!").unwrap().as_str(), "api-design");
        assert_eq!(Tag::salvage("🎈"), None);
    }
}
