//! What agents are asked to say about their work, in a form that can be read. An answer is found in the agent's words,
//! read strictly, and checked; what is wrong with it is told in a sentence the agent can act on.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::flow::record::Role;
use crate::text::cut;

/// Items of one verdict.
pub const ITEMS_MAX: usize = 100;
/// Characters of a title, a reason, notes.
pub const TITLE_CHARS_MAX: usize = 300;
pub const WORDS_CHARS_MAX: usize = 8_000;
/// Bytes of an answer that are looked at.
const ANSWER_BYTES_MAX: usize = 512 * 1024;
/// Characters of an error that is shown to the agent.
const FAULT_CHARS_MAX: usize = 600;

/// How an author says its work went.
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
    /// What whoever comes next should know.
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

/// What a reviewer found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub readiness: Readiness,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Item>,
    /// How good it is, from 0 to 100.
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

/// Something a reviewer wants to be different.
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
pub fn schema(role: Role) -> serde_json::Value {
    let schema = match role {
        Role::Author => schemars::schema_for!(AuthorStatus),
        Role::Reviewer => schemars::schema_for!(Verdict),
    };
    schema.to_value()
}

/// Reads an author's answer. `commit` says whether one has to be named with `complete`.
pub fn author(said: &str, commit: bool) -> Result<AuthorStatus, String> {
    let status: AuthorStatus = read(said)?;
    short("reason", status.reason.as_deref(), WORDS_CHARS_MAX)?;
    short("notes", status.notes.as_deref(), WORDS_CHARS_MAX)?;
    let named = status.commit.as_deref().map(str::trim).filter(|commit| !commit.is_empty());
    if let Some(commit) = named
        && !(commit.len() >= 4 && commit.len() <= 64 && commit.chars().all(|c| c.is_ascii_hexdigit()))
    {
        return Err(format!("`commit` is `{}`, which is not a commit's hash", cut(commit, 80).0));
    }
    match status.status {
        Progress::Complete if commit && named.is_none() => {
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
    let verdict: Verdict = read(said)?;
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

/// Takes the last JSON object in the words: agents like to talk before it, and put it between fences.
fn read<T: DeserializeOwned>(said: &str) -> Result<T, String> {
    if said.len() > ANSWER_BYTES_MAX {
        return Err(format!("the answer is longer than {ANSWER_BYTES_MAX} bytes"));
    }
    let mut fault = None;
    for value in objects(said) {
        match T::deserialize(value) {
            Ok(read) => return Ok(read),
            // The last one was meant; what is wrong with it is what matters.
            Err(error) => fault = fault.or(Some(error.to_string())),
        }
    }
    let fault = fault.unwrap_or_else(|| "there is no JSON object in the answer".to_owned());
    Err(cut(&fault, FAULT_CHARS_MAX).0.to_owned())
}

/// Objects in the words that are not part of another, the last first.
fn objects(said: &str) -> Vec<serde_json::Value> {
    let mut found = Vec::new();
    let mut end = 0;
    for (at, _) in said.match_indices('{') {
        if at < end {
            continue;
        }
        let mut stream = serde_json::Deserializer::from_str(&said[at..]).into_iter::<serde_json::Value>();
        if let Some(Ok(value)) = stream.next() {
            end = at + stream.byte_offset();
            found.push(value);
        }
    }
    found.reverse();
    found
}
