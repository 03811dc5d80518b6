//! Plans as readable Markdown: written to be read by people, read as people write it. Pure; knows nothing of the ids
//! that plans and tasks have when they are kept.
//!
//! What is written:
//!
//! ```markdown
//! # Title of the plan
//!
//! What it is for.
//!
//! ## [ ] parser: Write the parser
//!
//! - agent: codex
//! - after: lexer, `an odd, key`
//! - files: src/parser.rs, src/ast/**
//!
//! What the agent is told; the title, when there is nothing here.
//! ```
//!
//! A text that Markdown or this reader could take for something else stands between fences marked `prompt` or `goal`,
//! so that it comes back byte for byte. Names and paths that would be read differently stand between backticks.
//!
//! Steps that agents keep in the plan (`memory_steps`) stand at the end, between two comments. They are written for people
//! and not read: agents keep them.
//!
//! Read as well: headings without boxes, and checklists. An item of a checklist is a task, an item below it a part of it,
//! text indented below it what its agent is told; headings around a checklist name groups. A task without a key gets one
//! from its title. Fields come right below their task, names in small letters. In a text with headings that have boxes,
//! a checklist is only text.

mod field;
pub(crate) mod line;
mod list;
mod read;
mod steps;
mod write;

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;

use crate::paper::{self, Bounds, Priority};
use crate::task::record::{Isolation, ParentEnd};

pub use read::read;
pub use steps::section;
pub use write::write;

/// Bytes of a whole text.
pub const BYTES_MAX: usize = 8 * 1024 * 1024;
/// Tasks of one text.
pub const TASKS_MAX: usize = 500;
/// Characters of a key that is made from a title.
const MADE_KEY_CHARS_MAX: usize = 48;

/// A plan with its tasks, as far as a text can say it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanText {
    pub title: String,
    pub goal: Option<String>,
    pub tasks: Vec<TaskText>,
    /// The section of the agents' steps; only written.
    pub steps: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskText {
    pub key: String,
    pub title: String,
    /// The title, when the text says nothing else.
    pub prompt: String,
    pub agent: Option<String>,
    /// Keys.
    pub depends_on: Vec<String>,
    pub priority: Priority,
    pub group: Option<String>,
    pub files: Vec<String>,
    pub base: Option<String>,
    pub isolation: Isolation,
    pub when_parent_ends: ParentEnd,
    /// The key of the task it is a part of.
    pub parent: Option<String>,
    pub may_spawn: bool,
    /// It may use its own subagents; who may spawn needs no such word.
    pub subagents: bool,
    /// Each entry in one line.
    pub bounds: Bounds,
    pub done: bool,
}

/// Why a text is no plan, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct MarkdownError {
    /// Counted from 1.
    pub line: usize,
    pub what: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the text is longer than {BYTES_MAX} bytes")]
    TooLarge,
    #[error("the plan has no title")]
    NoTitle,
    #[error("there is no task")]
    NoTasks,
    #[error("there are more than {TASKS_MAX} tasks")]
    TooManyTasks,
    #[error("a code block begins here and does not end")]
    OpenFence,
    #[error("there is text after the end of the `{name}` block")]
    AfterFence { name: &'static str },
    #[error("this heading has no box, others have")]
    NoBox,
    #[error("this text belongs to no task")]
    Stray,
    #[error("there is no field `{name}`")]
    UnknownField { name: String },
    #[error("the field `{name}` is there twice")]
    FieldTwice { name: &'static str },
    #[error("`{value}` is not a value of `{name}`")]
    BadValue { name: &'static str, value: String, known: &'static str },
    #[error("the key `{key}` is that of another task")]
    KeyTwice { key: String },
    #[error("there is no task `{key}`")]
    UnknownKey { key: String },
    #[error("the tasks {} depend on each other in a circle", quoted(.keys))]
    Cycle { keys: Vec<String> },
    #[error("{0}")]
    Paper(#[from] paper::Refusal),
}

impl Fault {
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLarge => "plan_too_large",
            Self::NoTitle => "plan_without_title",
            Self::NoTasks => "plan_without_tasks",
            Self::TooManyTasks => "plan_too_many_tasks",
            Self::OpenFence => "plan_open_block",
            Self::AfterFence { .. } => "plan_text_after_block",
            Self::NoBox => "plan_heading_without_box",
            Self::Stray => "plan_stray_text",
            Self::UnknownField { .. } => "plan_unknown_field",
            Self::FieldTwice { .. } => "plan_field_twice",
            Self::BadValue { .. } => "plan_bad_value",
            Self::KeyTwice { .. } => "plan_key_twice",
            Self::UnknownKey { .. } => "plan_unknown_key",
            Self::Cycle { .. } => "dependency_cycle",
            Self::Paper(refusal) => refusal.code(),
        }
    }

    #[must_use]
    pub fn advice(&self) -> String {
        let text = match self {
            Self::TooLarge | Self::TooManyTasks => "make several plans of it",
            Self::NoTitle => "begin with a line `# Title`",
            Self::NoTasks => "write a heading `## [ ] key: Title` or an item `- [ ] Title` for each task",
            Self::OpenFence => "end it with a line of the same marks",
            Self::AfterFence { .. } => "move the text into the block",
            Self::NoBox => {
                "write `## [ ] key: Title` if it is a task, or use `###` if it is a part of the text above"
            }
            Self::Stray => "indent it below the task it belongs to, or put it before the first one",
            Self::UnknownField { .. } => {
                return format!(
                    "use one of {}; begin with a capital what is no field",
                    field::NAMES.map(|name| format!("`{name}`")).join(", ")
                );
            }
            Self::FieldTwice { .. } => "write all of it into one line",
            Self::BadValue { known, .. } => return format!("use {known}"),
            Self::KeyTwice { .. } => "give each task a key of its own, as in `key: Title`",
            Self::UnknownKey { .. } => "write the key as it stands before that task's title",
            Self::Cycle { .. } => "take one of the dependencies away",
            Self::Paper(refusal) => return refusal.advice(),
        };
        text.to_owned()
    }
}

fn quoted(keys: &[String]) -> String {
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

/// A key for a task whose author gave none.
fn slug(title: &str) -> String {
    let mut key = String::new();
    for letter in title.chars().flat_map(char::to_lowercase) {
        if key.chars().count() >= MADE_KEY_CHARS_MAX {
            break;
        }
        if letter.is_alphanumeric() {
            key.push(letter);
        } else if !key.is_empty() && !key.ends_with('-') {
            key.push('-');
        }
    }
    let key = key.trim_end_matches('-');
    if key.is_empty() { "task".to_owned() } else { key.to_owned() }
}
