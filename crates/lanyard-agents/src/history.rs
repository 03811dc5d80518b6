//! Conversations in the agents' own histories on this machine: what there is, and one of them whole.
//!
//! Every file here was written by another program and may be cut, damaged, huge or replaced by something else. Files are
//! opened by `workspace_files` only, every read has a bound, and what cannot be read of a conversation is counted. Nothing
//! here writes, and nothing knows of sessions. All functions block.

mod claude;
mod codex;
mod gemini;
mod jsonl;
mod lines;
mod opencode;
mod past;
mod places;

use std::path::PathBuf;

use lanyard_core::refusals;
use lanyard_core::{Timestamp, text::one_line};
use lanyard_git::workspace_files::FileError;

pub use past::PastConversation;
pub use places::{HistoryPlaces, history_of, runs};

/// Characters of a title.
const TITLE_CHARS_MAX: usize = 120;
/// Bytes of a folder's path; the system allows no more.
const FOLDER_BYTES_MAX: usize = 4_096;
/// Characters of an agent's id of a conversation.
const NATIVE_CHARS_MAX: usize = 128;
/// Characters of an id that are enough to name a conversation.
const PREFIX_CHARS_MIN: usize = 4;
/// Candidates that a refusal names.
const CANDIDATES_MAX: usize = 5;

/// A program whose histories Lanyard reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HistoryKind {
    Claude,
    Codex,
    Opencode,
    Gemini,
}

impl HistoryKind {
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Opencode, Self::Gemini];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
        }
    }

    /// The program's own name.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Opencode => "OpenCode",
            Self::Gemini => "Gemini CLI",
        }
    }

    pub fn named(name: &str) -> Result<Self, HistoryError> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == name);
        found.ok_or_else(|| HistoryError::Unknown { name: one_line(name, TITLE_CHARS_MAX) })
    }
}

/// A conversation as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryHeader {
    pub kind: HistoryKind,
    /// The agent's own id of the conversation.
    pub native: String,
    pub title: Option<String>,
    /// The folder the agent worked in.
    pub folder: Option<String>,
    pub updated_at: Timestamp,
    /// Bytes of its file, where it has one of its own.
    pub bytes: Option<u64>,
    /// Messages of the user and the agent, where counting them is cheap.
    pub messages: Option<u64>,
    /// Its file below the root of the history.
    file: Option<PathBuf>,
}

impl HistoryHeader {
    fn new(kind: HistoryKind, native: String, updated_at: Timestamp) -> Self {
        let (title, folder, bytes, messages, file) = (None, None, None, None, None);
        Self { kind, native, title, folder, updated_at, bytes, messages, file }
    }

    /// Its place in the listing: newest first, and by id where the times are the same.
    fn mark(&self) -> HistoryMark {
        HistoryMark { updated_ms: self.updated_at.as_millis(), native: self.native.clone() }
    }
}

/// A place in a listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HistoryMark {
    updated_ms: i64,
    native: String,
}

impl HistoryMark {
    #[must_use]
    pub fn write(&self) -> String {
        format!("{}.{}", self.updated_ms, self.native)
    }

    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (ms, native) = text.split_once('.')?;
        Some(Self { updated_ms: ms.parse().ok()?, native: sound_native(native)?.to_owned() })
    }
}

/// A page of conversations, newest first.
#[derive(Debug, Default)]
pub struct HistoryListing {
    pub items: Vec<HistoryHeader>,
    pub next: Option<HistoryMark>,
    /// Histories that could not be looked into, and why.
    pub problems: Vec<(HistoryKind, String)>,
}

/// What is wanted of a listing.
#[derive(Debug, Clone, Default)]
pub struct HistoryQuery {
    /// All kinds where it is empty.
    pub kinds: Vec<HistoryKind>,
    /// Only conversations of this folder.
    pub folder: Option<String>,
    pub after: Option<HistoryMark>,
    pub limit: usize,
}

refusals! {
    /// Why a conversation was not found or not read.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum HistoryError {
        Unknown { name: String } => "history_agent_unknown", Invalid
            ("Lanyard cannot read the history of `{name}`")
            ("name `claude`, `codex`, `opencode` or `gemini`");
        NotFound { title: &'static str, kind: &'static str, native: String } => "history_not_found", NotFound
            ("{title} has no conversation `{native}` on the daemon's machine")
            ("list the conversations with `lanyard import {kind}`");
        Ambiguous { title: &'static str, native: String, candidates: String } => "history_ambiguous", Conflict
            ("`{native}` begins the ids of several conversations of {title}: {candidates}")
            ("give more characters of the id");
        Unreadable { title: &'static str, native: String, what: String } => "history_unreadable", Invalid
            ("the conversation {native} of {title} cannot be read: {what}")
            ("nothing was imported, and the agent's file is as it was; open the conversation with the agent itself");
    }
}

impl HistoryError {
    fn not_found(kind: HistoryKind, native: &str) -> Self {
        let native = one_line(native, NATIVE_CHARS_MAX);
        Self::NotFound { title: kind.title(), kind: kind.as_str(), native }
    }

    fn unreadable(kind: HistoryKind, native: &str, what: &dyn std::fmt::Display) -> Self {
        Self::Unreadable { title: kind.title(), native: native.to_owned(), what: what.to_string() }
    }
}

/// A page of the conversations there are.
#[must_use]
pub fn list(places: &HistoryPlaces, query: &HistoryQuery) -> HistoryListing {
    let kinds = if query.kinds.is_empty() { &HistoryKind::ALL[..] } else { &query.kinds[..] };
    let mut listing = HistoryListing::default();
    let mut more = false;
    for &kind in kinds {
        let Some(root) = places.root(kind) else { continue };
        let found = match kind {
            HistoryKind::Opencode => opencode::list(root, query),
            HistoryKind::Claude | HistoryKind::Codex | HistoryKind::Gemini => jsonl::list(kind, root, query),
        };
        match found {
            Ok((items, rest)) => {
                listing.items.extend(items);
                more |= rest;
            }
            // An agent that was never used here has no history.
            Err(FileError::Missing) => {}
            Err(error) => listing.problems.push((kind, error.to_string())),
        }
    }
    listing.items.sort_by_key(|item| std::cmp::Reverse(item.mark()));
    more |= listing.items.len() > query.limit;
    listing.items.truncate(query.limit);
    listing.next = listing.items.last().filter(|_| more).map(HistoryHeader::mark);
    jsonl::count(places, &mut listing.items);
    listing
}

/// The conversation of this id, or of the only id that begins like this.
pub fn read(
    places: &HistoryPlaces,
    kind: HistoryKind,
    native: &str,
) -> Result<PastConversation, HistoryError> {
    let (Some(root), Some(native)) = (places.root(kind), sound_native(native)) else {
        return Err(HistoryError::not_found(kind, native));
    };
    match kind {
        HistoryKind::Opencode => opencode::read(root, native),
        HistoryKind::Claude | HistoryKind::Codex | HistoryKind::Gemini => jsonl::read(kind, root, native),
    }
}

/// An id that may become an argument of a program and a name in the log.
fn sound_native(native: &str) -> Option<&str> {
    let sound = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let begins = native.starts_with(|c: char| c.is_ascii_alphanumeric());
    Some(native).filter(|native| begins && native.len() <= NATIVE_CHARS_MAX && native.chars().all(sound))
}

/// The one of several ids that was meant: the same one, or the only one with this beginning.
fn chosen<T>(
    kind: HistoryKind,
    native: &str,
    mut found: Vec<(String, T)>,
) -> Result<(String, T), HistoryError> {
    if let Some(same) = found.iter().position(|(id, _)| id == native) {
        return Ok(found.swap_remove(same));
    }
    if native.len() < PREFIX_CHARS_MIN {
        return Err(HistoryError::not_found(kind, native));
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found.dedup_by(|one, other| one.0 == other.0);
    match found.len() {
        0 => Err(HistoryError::not_found(kind, native)),
        1 => Ok(found.swap_remove(0)),
        _ => {
            let candidates: Vec<&str> =
                found.iter().take(CANDIDATES_MAX).map(|(id, _)| id.as_str()).collect();
            let (title, native) = (kind.title(), native.to_owned());
            Err(HistoryError::Ambiguous { title, native, candidates: candidates.join(", ") })
        }
    }
}

/// A folder as the history names it, if an agent can be started there.
fn sound_folder(folder: &str) -> Option<String> {
    let sound = folder.starts_with('/')
        && folder.len() <= FOLDER_BYTES_MAX
        && !folder.chars().any(char::is_control)
        && !folder.split('/').any(|part| part == "..");
    sound.then(|| if folder == "/" { folder } else { folder.trim_end_matches('/') }.to_owned())
}

/// The first words of a conversation as its title.
fn title_of(words: &str) -> Option<String> {
    let line = words.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(one_line(line, TITLE_CHARS_MAX)).filter(|title| !title.is_empty())
}

#[cfg(test)]
#[path = "history/history_tests.rs"]
mod tests;
