//! One conversation of the server as the ledger knows it: what was said of it, and whether it works.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

/// Parts a conversation is remembered by; the oldest go first, and what is older than those is never said again.
const PARTS_MAX: usize = 20_000;

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    User,
    Agent,
    /// The agent, summing up the conversation for itself.
    Summary,
}

/// What became of one part of a message.
#[derive(Debug, Default)]
pub(super) struct MessagePart {
    /// Text or reasoning; unknown while only deltas were seen.
    pub(super) kind: Option<&'static str>,
    /// Bytes of its text that were said.
    pub(super) said: usize,
    /// All of it was said.
    pub(super) closed: bool,
    /// Deltas were missed: what follows cannot be placed until the whole text comes.
    pub(super) held: bool,
    /// The tool's last status that was said.
    pub(super) status: Option<&'static str>,
}

/// Whether a conversation works, and on whose order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TalkPhase {
    #[default]
    Idle,
    /// A prompt was handed over and work on it has not begun: an idle now is about something older.
    Awaiting,
    Busy,
    /// It was cut short and says it is idle; its last words may still come.
    Ending,
}

/// What is known of a child before it is announced.
#[derive(Debug, Clone, Default)]
pub(super) struct Child {
    pub(super) info: Value,
    /// From the tool that started it.
    pub(super) prompt: Option<String>,
    pub(super) announced: bool,
}

#[derive(Debug, Default)]
pub(super) struct Talk {
    pub(super) phase: TalkPhase,
    pub(super) turn: Option<String>,
    /// The first thing that went wrong in the work under way.
    pub(super) error: Option<Value>,
    pub(super) aborted: bool,
    /// It was given up before it began: if it begins all the same, it is aborted.
    pub(super) unwanted: bool,
    /// The newest message when the last prompt was handed over.
    pub(super) before: Option<String>,
    /// The agent began a message since the last prompt.
    pub(super) answered: bool,
    /// The attempt that was said last.
    pub(super) retry: Option<u64>,
    pub(super) todo: Option<Value>,
    /// Tokens of the last ordinary step: the size of the context.
    pub(super) tokens: u64,
    /// The newest summary and its tokens.
    pub(super) summary: Option<(String, u64)>,
    /// The summary whose compaction was said.
    pub(super) compacted: Option<String>,
    /// Files reported as changed by the message's tools.
    pub(super) changed: BTreeSet<String>,
    pub(super) child: Option<Child>,
    authors: BTreeMap<String, Author>,
    parts: BTreeMap<String, MessagePart>,
    order: VecDeque<(String, String)>,
    /// Messages up to this id are settled. OpenCode's ids sort by time.
    floor: Option<String>,
}

impl Talk {
    /// Settles everything up to this message: it belongs to an earlier life.
    pub(super) fn settle_to(&mut self, message: &str) {
        if self.floor.as_deref().is_none_or(|floor| floor < message) {
            self.floor = Some(message.to_owned());
        }
    }

    pub(super) fn author(&self, message: &str) -> Option<Author> {
        self.authors.get(message).copied()
    }

    /// Notes who wrote a message. True when the message is new.
    pub(super) fn wrote(&mut self, message: &str, author: Author) -> bool {
        !self.is_settled(message) && self.authors.insert(message.to_owned(), author).is_none()
    }

    /// The part's record, made when it is new; nothing for a settled message.
    pub(super) fn part(&mut self, message: &str, part: &str) -> Option<&mut MessagePart> {
        if self.is_settled(message) {
            return None;
        }
        if !self.parts.contains_key(part) {
            self.order.push_back((message.to_owned(), part.to_owned()));
            if self.order.len() > PARTS_MAX {
                self.forget_oldest();
            }
        }
        Some(self.parts.entry(part.to_owned()).or_default())
    }

    pub(super) fn knows_part(&self, part: &str) -> bool {
        self.parts.contains_key(part)
    }

    /// OpenCode's ids sort by time.
    pub(super) fn newest_message(&self) -> Option<String> {
        self.authors.last_key_value().map(|(id, _)| id.clone())
    }

    /// The stream broke: whatever was being said has a hole at an unknown place.
    pub(super) fn hold(&mut self) {
        for part in self.parts.values_mut().filter(|part| !part.closed && part.status.is_none()) {
            part.held = true;
        }
    }

    pub(super) fn is_working(&self) -> bool {
        matches!(self.phase, TalkPhase::Awaiting | TalkPhase::Busy | TalkPhase::Ending)
    }

    fn is_settled(&self, message: &str) -> bool {
        self.floor.as_deref().is_some_and(|floor| message <= floor)
    }

    fn forget_oldest(&mut self) {
        let Some((message, part)) = self.order.pop_front() else { return };
        self.parts.remove(&part);
        self.authors.remove(&message);
        self.settle_to(&message);
    }
}
