//! Structured results of agents. A result is found in the agent's text, parsed strictly and checked; a fault becomes a
//! sentence that the agent can act on.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::flow::record::FlowRole;
use crate::text::cut;

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;

/// Items of one verdict.
pub const ITEMS_MAX: usize = 100;
/// Characters of a title, a reason, notes.
pub const TITLE_CHARS_MAX: usize = 300;
pub const WORDS_CHARS_MAX: usize = 8_000;
/// Bytes of an answer that are looked at.
const ANSWER_BYTES_MAX: usize = 512 * 1024;
/// Characters of an error that is shown to the agent.
const FAULT_CHARS_MAX: usize = 600;
/// Objects of an answer that are kept, newest last: the intended one is near the end.
const OBJECTS_MAX: usize = 64;
/// Places that look like an object for a while and are none, before nobody looks any further: each is read up to where it
/// breaks, and they may lie in each other.
const BROKEN_MAX: usize = 1_000;
/// Characters after which something looked like an object.
const BROKEN_CHARS: usize = 64;

/// An author's report about its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthorStatus {
    pub status: Progress,
    /// The commit that has the work, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Why a person is needed, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Notes for the next agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    Complete,
    NeedsHuman,
    Failed,
}

impl Progress {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::NeedsHuman => "needs_human",
            Self::Failed => "failed",
        }
    }
}

/// A reviewer's verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub readiness: Readiness,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Item>,
    /// Score from 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    Ready,
    ReadyWithCorrections,
    NotReady,
}

impl Readiness {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::ReadyWithCorrections => "ready_with_corrections",
            Self::NotReady => "not_ready",
        }
    }
}

/// A change that a reviewer asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Item {
    pub id: String,
    pub title: String,
    pub action: Action,
    #[serde(default)]
    pub priority: ItemPriority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The author can do it alone.
    AutoFix,
    /// A person must decide.
    HumanRequired,
}

impl Action {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AutoFix => "auto_fix",
            Self::HumanRequired => "human_required",
        }
    }
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
pub enum ItemPriority {
    P0,
    #[default]
    P1,
    P2,
}

impl ItemPriority {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::P0 => "P0",
            Self::P1 => "P1",
            Self::P2 => "P2",
        }
    }
}

/// The schema an agent in this role is asked to answer by.
#[must_use]
pub fn schema(role: FlowRole) -> serde_json::Value {
    let schema = match role {
        FlowRole::Author => schemars::schema_for!(AuthorStatus),
        FlowRole::Reviewer => schemars::schema_for!(Verdict),
    };
    schema.to_value()
}

/// Reads an author's answer. `commit` says whether one has to be named with `complete`.
pub fn author(said: &str, commit: bool) -> Result<AuthorStatus, String> {
    let mut status: AuthorStatus = read(said, "status")?;
    short("reason", status.reason.as_deref(), WORDS_CHARS_MAX)?;
    short("notes", status.notes.as_deref(), WORDS_CHARS_MAX)?;
    status.commit = status.commit.map(|commit| commit.trim().to_owned()).filter(|commit| !commit.is_empty());
    if let Some(commit) = &status.commit
        && !(commit.len() >= 4 && commit.len() <= 64 && commit.chars().all(|c| c.is_ascii_hexdigit()))
    {
        return Err(format!("`commit` is `{}`, which is not a commit's hash", cut(commit, 80).0));
    }
    match status.status {
        Progress::Complete if commit && status.commit.is_none() => {
            Err("`status` is `complete` and no `commit` is named: commit your work and name the commit"
                .to_owned())
        }
        Progress::Complete => Ok(status),
        Progress::NeedsHuman | Progress::Failed
            if status.reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) =>
        {
            Err(format!("`status` is `{}` and no `reason` is given", status.status.as_str()))
        }
        Progress::NeedsHuman | Progress::Failed => Ok(status),
    }
}

/// Reads a reviewer's answer.
pub fn verdict(said: &str) -> Result<Verdict, String> {
    let verdict: Verdict = read(said, "readiness")?;
    if verdict.items.len() > ITEMS_MAX {
        return Err(format!("there are {} items, and at most {ITEMS_MAX} are taken", verdict.items.len()));
    }
    short("summary", verdict.summary.as_deref(), WORDS_CHARS_MAX)?;
    if let Some(score) = verdict.score.filter(|score| *score > 100) {
        return Err(format!("`score` is {score}, and it goes from 0 to 100"));
    }
    let mut ids = std::collections::BTreeSet::new();
    for item in &verdict.items {
        if item.id.trim().is_empty() || item.title.trim().is_empty() {
            return Err("an item has no `id` or no `title`".to_owned());
        }
        if !ids.insert(item.id.as_str()) {
            return Err(format!("two items have the id `{}`", cut(&item.id, 80).0));
        }
        short("id", Some(&item.id), TITLE_CHARS_MAX)?;
        short("title", Some(&item.title), TITLE_CHARS_MAX)?;
        short("reason", item.reason.as_deref(), WORDS_CHARS_MAX)?;
    }
    Ok(verdict)
}

fn short(name: &str, text: Option<&str>, max: usize) -> Result<(), String> {
    match text.map(|text| text.chars().count()).filter(|count| *count > max) {
        Some(count) => Err(format!("`{name}` has {count} characters, and at most {max} are taken")),
        None => Ok(()),
    }
}

/// Takes the last JSON object in the words that has this field: agents like to talk before it, put it between fences, show
/// examples and correct themselves. An answer before it is not taken when this one is faulty: it says something else.
fn read<T: DeserializeOwned>(said: &str, field: &str) -> Result<T, String> {
    if said.len() > ANSWER_BYTES_MAX {
        return Err(format!("the answer is longer than {ANSWER_BYTES_MAX} bytes"));
    }
    let mut found = objects(said);
    let meant = found.iter().rposition(|object| object.get(field).is_some());
    let object = match meant {
        Some(place) => found.swap_remove_back(place),
        None => found.pop_back(),
    };
    let Some(object) = object else { return Err("there is no JSON object in the answer".to_owned()) };
    T::deserialize(object).map_err(|error| cut(&error.to_string(), FAULT_CHARS_MAX).0.to_owned())
}

/// The last objects in the words that are not part of another.
fn objects(said: &str) -> VecDeque<serde_json::Value> {
    let mut found = VecDeque::new();
    let (mut end, mut broken) = (0, 0);
    for (at, _) in said.match_indices('{') {
        if at < end {
            continue;
        }
        let mut stream = serde_json::Deserializer::from_str(&said[at..]).into_iter::<serde_json::Value>();
        match stream.next() {
            Some(Ok(value)) => {
                end = at + stream.byte_offset();
                if found.len() == OBJECTS_MAX {
                    found.pop_front();
                }
                found.push_back(value);
            }
            Some(Err(error)) if error.line() > 1 || error.column() > BROKEN_CHARS => broken += 1,
            Some(Err(_)) | None => {}
        }
        if broken > BROKEN_MAX {
            break;
        }
    }
    found
}
