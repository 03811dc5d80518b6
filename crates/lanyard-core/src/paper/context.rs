//! Pieces of context: named texts agents leave for each other in a workspace, a plan or their own session, each with who
//! left it and when. Not a memory that thinks: names and substrings find them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::SessionId;
use crate::paper::{NAME_CHARS_MAX, Refusal, few, name, words};
use crate::time::Timestamp;

/// Characters of one piece. Larger content belongs in files.
pub const PIECE_CHARS_MAX: usize = 32 * 1024;
/// Pieces one workspace may have.
pub const PIECES_MAX: usize = 500;
pub const TAGS_MAX: usize = 16;
/// Characters shown around what a search found.
const AROUND: usize = 80;

/// Whose a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Everybody in the workspace.
    #[default]
    Workspace,
    /// Everybody who works on the plan.
    Plan,
    /// One session, and those above it.
    Session,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    pub name: String,
    pub scope: Scope,
    /// The plan it belongs to, for that scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The session it belongs to, for that scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<SessionId>,
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Who left it.
    pub by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    pub at: Timestamp,
}

/// What somebody wants to leave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewPiece {
    pub name: String,
    pub scope: Scope,
    pub plan: Option<String>,
    pub owner: Option<SessionId>,
    pub text: String,
    pub tags: Vec<String>,
}

impl Piece {
    pub fn new(
        new: NewPiece,
        by: Actor,
        session: Option<SessionId>,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        name("name", &new.name)?;
        words("text", &new.text, PIECE_CHARS_MAX)?;
        few("tags", &new.tags, TAGS_MAX)?;
        new.tags.iter().try_for_each(|tag| name("tags", tag))?;
        let NewPiece { name, scope, plan, owner, text, tags } = new;
        Ok(Self { name, scope, plan, owner, text, tags, by, session, at: now })
    }

    /// Where it is kept in its workspace. The parts are a list, never one text that has to be taken apart (S0-B09).
    #[must_use]
    pub fn key(scope: Scope, plan: Option<&str>, owner: Option<SessionId>, name: &str) -> String {
        let whose = match scope {
            Scope::Workspace => String::new(),
            Scope::Plan => plan.unwrap_or_default().to_owned(),
            Scope::Session => owner.map(|owner| owner.to_string()).unwrap_or_default(),
        };
        serde_json::json!([scope, whose, name]).to_string()
    }

    /// Where the words occur, with what stands around them; in any case.
    #[must_use]
    pub fn find(&self, wanted: &str) -> Option<String> {
        let wanted: Vec<char> = wanted.chars().map(lower).take(NAME_CHARS_MAX).collect();
        if wanted.is_empty() {
            return None;
        }
        let within = |text: &str| {
            let chars: Vec<char> = text.chars().collect();
            let place = chars.windows(wanted.len()).position(|window| {
                window.iter().zip(&wanted).all(|(found, wanted)| lower(*found) == *wanted)
            })?;
            let (from, to) = (place.saturating_sub(AROUND), (place + wanted.len() + AROUND).min(chars.len()));
            let mut excerpt: String = chars[from..to].iter().collect();
            if from > 0 {
                excerpt.insert(0, '…');
            }
            if to < chars.len() {
                excerpt.push('…');
            }
            Some(excerpt)
        };
        within(&self.text)
            .or_else(|| within(&self.name))
            .or_else(|| self.tags.iter().find_map(|tag| within(tag)))
    }
}

/// One for one, so that positions stay what they are.
fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str) -> Result<Piece, Refusal> {
        let new = NewPiece { name: "api".to_owned(), text: text.to_owned(), ..NewPiece::default() };
        Piece::new(new, Actor::operator("local"), None, Timestamp::from_millis(0))
    }

    #[test]
    fn words_are_found_in_any_case_with_what_stands_around_them() {
        let long = format!("{}The STRAẞE is closed{}", "é".repeat(100), "x".repeat(100));
        let found = piece(&long).unwrap().find("straße").unwrap();
        assert!(found.starts_with("…é") && found.contains("STRAẞE") && found.ends_with("x…"), "{found}");
        assert_eq!(piece("hello").unwrap().find("API"), Some("api".to_owned()));
        assert_eq!(piece("hello").unwrap().find("nothing"), None);
        assert_eq!(piece("hello").unwrap().find(""), None);
    }

    #[test]
    fn sizes_are_bounded() {
        assert!(piece(&"é".repeat(PIECE_CHARS_MAX)).is_ok());
        assert_eq!(piece(&"é".repeat(PIECE_CHARS_MAX + 1)).unwrap_err().code(), "field_too_long");
        assert_eq!(piece("  ").unwrap_err().code(), "field_empty");
    }

    /// S0-B09.
    #[test]
    fn names_that_look_alike_when_joined_have_places_of_their_own() {
        let key = |plan: &str, name: &str| Piece::key(Scope::Plan, Some(plan), None, name);
        assert_ne!(key("a", "b\",\"c"), key("a\",\"b", "c"));
        assert_ne!(key("a::b", "c"), key("a", "b::c"));
        let session = Some(SessionId::from_u128(1));
        assert_ne!(
            Piece::key(Scope::Session, None, session, "x"),
            Piece::key(Scope::Workspace, None, session, "x")
        );
    }
}
