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
use crate::refusals;
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
    /// The agent may use its own subagents; not needed where it may spawn.
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

refusals! {
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum Fault {
        TooLarge => "plan_too_large", Invalid
            ("the text is longer than {BYTES_MAX} bytes") ("make several plans of it");
        NoTitle => "plan_without_title", Invalid ("the plan has no title") ("begin with a line `# Title`");
        NoTasks => "plan_without_tasks", Invalid
            ("there is no task") ("write a heading `## [ ] key: Title` or an item `- [ ] Title` for each task");
        TooManyTasks => "plan_too_many_tasks", Invalid
            ("there are more than {TASKS_MAX} tasks") ("make several plans of it");
        OpenFence => "plan_open_block", Invalid
            ("a code block begins here and does not end") ("end it with a line of the same marks");
        AfterFence { name: &'static str } => "plan_text_after_block", Invalid
            ("there is text after the end of the `{name}` block") ("move the text into the block");
        NoBox => "plan_heading_without_box", Invalid
            ("this heading has no box, others have")
            ("write `## [ ] key: Title` if it is a task, or use `###` if it is a part of the text above");
        Stray => "plan_stray_text", Invalid
            ("this text belongs to no task")
            ("indent it below the task it belongs to, or put it before the first one");
        UnknownField { name: String } => "plan_unknown_field", Invalid
            ("there is no field `{name}`")
            ("use one of {}; begin with a capital what is no field", field::NAMES.map(|name| format!("`{name}`")).join(", "));
        FieldTwice { name: &'static str } => "plan_field_twice", Invalid
            ("the field `{name}` is there twice") ("write all of it into one line");
        BadValue { name: &'static str, value: String, known: &'static str } => "plan_bad_value", Invalid
            ("`{value}` is not a value of `{name}`") ("use {known}");
        KeyTwice { key: String } => "plan_key_twice", Invalid
            ("the key `{key}` is that of another task") ("give each task a key of its own, as in `key: Title`");
        UnknownKey { key: String } => "plan_unknown_key", Invalid
            ("there is no task `{key}`") ("write the key as it stands before that task's title");
        Cycle { keys: Vec<String> } => "dependency_cycle", Invalid
            ("the tasks {} depend on each other in a circle", quoted(.keys))
            ("take one of the dependencies away");
    }
    via { Paper(#[from] paper::PaperRefusal) }
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
