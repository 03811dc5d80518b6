//! An entry: a text that is kept, with where it came from. Long-term memory belongs to a workspace and an owner;
//! session memory to one session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::{MemoryId, SessionId, TurnId};
use crate::memory::tag::TAGS_MAX;
use crate::memory::{Admitted, MemoryRefusal, Retention, Tags};
use crate::text::cut;
use crate::time::Timestamp;

/// Characters of one entry. Larger content belongs in files.
pub const TEXT_CHARS_MAX: usize = 32 * 1024;
/// Characters of a name, a workspace, an owner.
pub const NAME_CHARS_MAX: usize = 1_000;
/// Characters shown around what a search found.
const AROUND: usize = 80;

/// The two stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    /// One session's own memory.
    Session,
    /// Entries that outlive the session.
    LongTerm,
}

impl Where {
    pub const ALL: [Self; 2] = [Self::Session, Self::LongTerm];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::LongTerm => "long_term",
        }
    }
}

/// The owner of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Scope")]
pub enum MemoryScope {
    /// All sessions of the workspace with the same owner.
    #[default]
    Workspace,
    /// All sessions of the plan.
    Plan,
    /// One session, and those above it.
    Session,
}

impl MemoryScope {
    /// The store its entries are in.
    #[must_use]
    pub const fn store(self) -> Where {
        match self {
            Self::Session => Where::Session,
            Self::Workspace | Self::Plan => Where::LongTerm,
        }
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Plan => "plan",
            Self::Session => "session",
        }
    }
}

/// The origin of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An agent's tool call.
    Tool,
    /// The API, or the command line.
    Api,
    /// Made from the log when a session ended.
    Summary,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Entry")]
pub struct MemoryEntry {
    pub id: MemoryId,
    pub store: Where,
    pub scope: MemoryScope,
    /// The workspace it belongs to; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workspace: String,
    /// The person it belongs to.
    pub owner: String,
    /// The plan it belongs to, for that scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The entry's name; a later write under the same name replaces the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub text: String,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// The author.
    pub by: Actor,
    /// The session it was written in, and whose it is for that scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The turn it was written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    pub source: Source,
    /// The request that made it, where it has no name: sent again, it is the same entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Time of the last write.
    pub at: Timestamp,
    /// Counts its writes, from 1.
    pub version: u64,
}

/// A request to keep an entry. Permission is checked elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    pub scope: MemoryScope,
    pub workspace: String,
    pub owner: String,
    pub plan: Option<String>,
    pub name: Option<String>,
    pub text: String,
    pub by: Actor,
    pub session: Option<SessionId>,
    pub turn: Option<TurnId>,
    pub source: Source,
    pub request: Option<String>,
}

impl MemoryEntry {
    /// The entry that was admitted. Only what `admit` let through can be made into one.
    pub fn new(
        id: MemoryId,
        new: NewEntry,
        admitted: Admitted,
        version: u64,
        at: Timestamp,
    ) -> Result<Self, MemoryRefusal> {
        let NewEntry { scope, workspace, owner, plan, name, text, by, session, turn, source, request } = new;
        let entry = Self {
            id,
            store: admitted.to,
            scope,
            workspace,
            owner,
            plan,
            name,
            text,
            tags: admitted.tags,
            by,
            session,
            turn,
            source,
            request,
            at,
            version,
        };
        entry.check().map(|()| entry)
    }

    /// Checks the limits that hold for every entry.
    pub fn check(&self) -> Result<(), MemoryRefusal> {
        line("owner", Some(&self.owner))?;
        line("name", self.name.as_deref())?;
        line("request", self.request.as_deref())?;
        line("plan", self.plan.as_deref())?;
        line("workspace", Some(self.workspace.as_str()).filter(|workspace| !workspace.is_empty()))?;
        if self.text.trim().is_empty() {
            return Err(MemoryRefusal::Empty { field: "text" });
        }
        if cut(&self.text, TEXT_CHARS_MAX).1 {
            return Err(MemoryRefusal::TooLong { field: "text", max: TEXT_CHARS_MAX });
        }
        if self.tags.len() > 2 * TAGS_MAX {
            return Err(MemoryRefusal::TooMany { field: "tags", max: 2 * TAGS_MAX });
        }
        if self.scope == MemoryScope::Session && self.session.is_none() {
            return Err(MemoryRefusal::Empty { field: "session" });
        }
        if self.scope == MemoryScope::Plan && self.plan.is_none() {
            return Err(MemoryRefusal::Empty { field: "plan" });
        }
        if self.store != self.scope.store() {
            return Err(MemoryRefusal::Forbidden(crate::memory::Rule::SessionOnly));
        }
        Ok(())
    }

    /// The entry's key within its workspace.
    #[must_use]
    pub fn key(&self) -> String {
        match (&self.name, &self.request) {
            (Some(name), _) => named_key(self.scope, &self.owner, self.plan.as_deref(), self.session, name),
            (None, Some(request)) => request_key(request),
            (None, None) => self.id.to_string(),
        }
    }

    #[must_use]
    pub fn retention(&self) -> Retention {
        Retention::of(&self.tags)
    }

    /// The first match of the words, with some text around it; case is ignored.
    #[must_use]
    pub fn find(&self, wanted: &str) -> Option<String> {
        let wanted: Vec<char> = wanted.chars().map(lower).take(NAME_CHARS_MAX).collect();
        if wanted.is_empty() {
            return None;
        }
        excerpt(&self.text, &wanted)
            .or_else(|| self.name.as_deref().and_then(|name| excerpt(name, &wanted)))
            .or_else(|| self.tags.iter().find_map(|tag| excerpt(tag.as_str(), &wanted)))
    }

    /// The excerpt that a search shows: around the query, else around one of its words, else the beginning.
    #[must_use]
    pub fn excerpt(&self, query: &str) -> String {
        let whole = self.find(query.trim());
        let part = || query.split_whitespace().find_map(|word| self.find(word));
        whole.or_else(part).unwrap_or_else(|| cut(&self.text, 2 * AROUND).0.to_owned())
    }
}

/// The key of a named entry. Its parts are a list and are never joined into one text.
#[must_use]
pub fn named_key(
    scope: MemoryScope,
    owner: &str,
    plan: Option<&str>,
    session: Option<SessionId>,
    name: &str,
) -> String {
    let whose = match scope {
        MemoryScope::Workspace => serde_json::json!([owner]),
        MemoryScope::Plan => serde_json::json!([owner, plan]),
        // Whoever the session is handed to, its memory goes with it.
        MemoryScope::Session => serde_json::json!([session]),
    };
    serde_json::json!([scope, whose, name]).to_string()
}

/// The key of an unnamed entry that a request made.
#[must_use]
pub fn request_key(request: &str) -> String {
    serde_json::json!(["request", request]).to_string()
}

/// One line that is there and not too long, or nothing.
fn line(field: &'static str, text: Option<&str>) -> Result<(), MemoryRefusal> {
    let Some(text) = text else { return Ok(()) };
    if text.chars().any(char::is_control) {
        return Err(MemoryRefusal::BadText { field });
    }
    if text.trim().is_empty() {
        return Err(MemoryRefusal::Empty { field });
    }
    if cut(text, NAME_CHARS_MAX).1 {
        return Err(MemoryRefusal::TooLong { field, max: NAME_CHARS_MAX });
    }
    Ok(())
}

fn excerpt(text: &str, wanted: &[char]) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let place = chars
        .windows(wanted.len())
        .position(|window| window.iter().zip(wanted).all(|(found, wanted)| lower(*found) == *wanted))?;
    let (from, to) = (place.saturating_sub(AROUND), (place + wanted.len() + AROUND).min(chars.len()));
    let mut excerpt: String = chars[from..to].iter().collect();
    if from > 0 {
        excerpt.insert(0, '…');
    }
    if to < chars.len() {
        excerpt.push('…');
    }
    Some(excerpt)
}

/// One for one, so that positions stay what they are.
fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Result<MemoryEntry, MemoryRefusal> {
        let new = NewEntry {
            scope: MemoryScope::Workspace,
            workspace: "/w".to_owned(),
            owner: "ann".to_owned(),
            plan: None,
            name: Some("api".to_owned()),
            text: text.to_owned(),
            by: Actor::operator("ann"),
            session: None,
            turn: None,
            source: Source::Api,
            request: None,
        };
        let admitted = Admitted { to: Where::LongTerm, tags: Tags::new() };
        MemoryEntry::new(MemoryId::from_u128(1), new, admitted, 1, Timestamp::from_millis(0))
    }

    #[test]
    fn words_are_found_in_any_case_with_what_stands_around_them() {
        let long = format!("{}The STRAẞE is closed{}", "é".repeat(100), "x".repeat(100));
        let found = entry(&long).unwrap().find("straße").unwrap();
        assert!(found.starts_with("…é") && found.contains("STRAẞE") && found.ends_with("x…"), "{found}");
        assert_eq!(entry("hello").unwrap().find("API"), Some("api".to_owned()));
        assert_eq!(entry("hello").unwrap().find("nothing"), None);
        assert_eq!(entry("hello").unwrap().find(""), None);
        assert_eq!(entry("hello you").unwrap().excerpt("what YOU"), "hello you");
    }

    #[test]
    fn sizes_are_bounded() {
        assert!(entry(&"é".repeat(TEXT_CHARS_MAX)).is_ok());
        assert_eq!(entry(&"é".repeat(TEXT_CHARS_MAX + 1)).unwrap_err().code(), "field_too_long");
        assert_eq!(entry("  ").unwrap_err().code(), "field_empty");
        let mut odd = entry("x").unwrap();
        odd.name = Some("a\nb".to_owned());
        assert_eq!(odd.check().unwrap_err().code(), "field_bad_text");
    }

    /// Nothing can be in one store and belong to the other.
    /// S3-03.
    #[test]
    fn an_entry_is_in_the_store_of_its_scope() {
        let mut entry = entry("x").unwrap();
        entry.store = Where::Session;
        assert!(entry.check().is_err());
    }

    /// S0-B09.
    #[test]
    fn names_that_look_alike_when_joined_have_places_of_their_own() {
        let key = |plan: &str, name: &str| named_key(MemoryScope::Plan, "ann", Some(plan), None, name);
        assert_ne!(key("a", "b\",\"c"), key("a\",\"b", "c"));
        assert_ne!(key("a::b", "c"), key("a", "b::c"));
        let session = Some(SessionId::from_u128(1));
        assert_ne!(
            named_key(MemoryScope::Session, "ann", None, session, "x"),
            named_key(MemoryScope::Workspace, "ann", None, session, "x")
        );
        assert_ne!(
            named_key(MemoryScope::Workspace, "ann", None, None, "x"),
            named_key(MemoryScope::Workspace, "bob", None, None, "x")
        );
    }
}
