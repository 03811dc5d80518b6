//! An entry of the transcript: a piece of the conversation, broken into rows.

use lanyard_core::Timestamp;

use crate::render::text::harmless;
use crate::render::tool::{DetailRow, FileEdit, OpenedPart, ToolReturn, ToolUse};
use crate::render::wrap::wrap;

/// Bytes of a tool's input, of its output, and of each side of a change that are kept for the screen.
const DETAIL_BYTES_MAX: usize = 16 * 1024;
const CUT: &str = "\n… cut here; `lanyard log --full` shows all of it";

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Prompt,
    Words,
    Thought,
    Line,
    /// A question, a stop, a cancel.
    Loud,
    /// A tool call and its result.
    Call(Box<ToolUse>),
    /// The end of a turn or of the session.
    End {
        completed: bool,
    },
}

/// How a row looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowLook {
    Own,
    Plain,
    Quiet,
    Loud,
    Good,
    Bad,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryRow {
    pub(super) look: RowLook,
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TranscriptEntry {
    pub(crate) kind: Kind,
    /// The last event that went into it.
    pub(super) seq: u64,
    pub(super) text: String,
    /// The message that words are part of, where the agent names it.
    pub(super) message_id: Option<String>,
    /// An empty row stands before it.
    pub(super) apart: bool,
    /// Whether this entry was opened or closed on its own; else it is as all are.
    pub(super) opened: Option<bool>,
    pub(super) rows: Vec<EntryRow>,
}

/// How entries are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Layout {
    pub(super) width: usize,
    /// Tool calls are open unless one is closed by itself.
    pub(super) all_open: bool,
}

impl TranscriptEntry {
    pub(super) fn new(kind: Kind, seq: u64, text: String) -> Self {
        // A turn stands apart from what was before it.
        let apart = kind == Kind::Prompt;
        Self { kind, seq, text, message_id: None, apart, opened: None, rows: Vec::new() }
    }

    pub(super) fn call(seq: u64, tool: ToolUse) -> Self {
        let edits = clip_edits(tool.edits);
        let tool =
            ToolUse { input: clip(tool.input), edits, returned: tool.returned.map(clip_return), ..tool };
        Self::new(Kind::Call(Box::new(tool)), seq, String::new())
    }

    /// A result whose call is further up than what was read.
    pub(super) fn result(seq: u64, returned: ToolReturn) -> Self {
        let (id, at) = (returned.id.clone(), Timestamp::from_millis(0));
        let tool =
            ToolUse { id, at, title: String::new(), input: String::new(), edits: Vec::new(), returned: None };
        Self::call(seq, ToolUse { returned: Some(returned), ..tool })
    }

    /// Words that come after `last`: of the same message, or of a new one that stands apart.
    pub(super) fn words(last: Option<&Self>, seq: u64, text: &str, message_id: Option<&str>) -> Self {
        let message_id = message_id.map(str::to_owned);
        let apart =
            last.is_some_and(|last| last.kind == Kind::Words && !last.goes_on_with(message_id.as_deref()));
        Self { message_id, apart, ..Self::new(Kind::Words, seq, harmless(text)) }
    }

    /// Whether words of this message belong to it.
    pub(super) fn goes_on_with(&self, message_id: Option<&str>) -> bool {
        self.kind == Kind::Words && (message_id.is_none() || self.message_id.as_deref() == message_id)
    }

    pub(super) fn tool(&self) -> Option<&ToolUse> {
        if let Kind::Call(tool) = &self.kind { Some(tool) } else { None }
    }

    pub(super) fn tool_mut(&mut self) -> Option<&mut ToolUse> {
        if let Kind::Call(tool) = &mut self.kind { Some(tool) } else { None }
    }

    /// Whether there is anything behind its line.
    pub(super) fn can_open(&self) -> bool {
        self.tool().is_some_and(|tool| !tool.details(OpenedPart::Everything).is_empty())
    }

    pub(super) fn is_open(&self, layout: Layout) -> bool {
        self.opened.unwrap_or(layout.all_open) && self.can_open()
    }

    pub(super) fn settle(&mut self, returned: ToolReturn) {
        if let Some(tool) = self.tool_mut() {
            tool.returned = Some(clip_return(returned));
        }
    }

    pub(super) fn lay_out(&mut self, layout: Layout) {
        let (first, rest, look) = match &self.kind {
            Kind::Prompt => ("> ", "  ", RowLook::Own),
            Kind::Words => ("", "", RowLook::Plain),
            Kind::Thought => ("┊ ", "┊ ", RowLook::Quiet),
            Kind::Line => ("· ", "    ", RowLook::Quiet),
            Kind::Call(tool) => {
                let mark = match (self.can_open(), self.is_open(layout)) {
                    (false, _) => "· ",
                    (true, false) => "▸ ",
                    (true, true) => "▾ ",
                };
                (mark, "    ", if tool.failed() { RowLook::Bad } else { RowLook::Quiet })
            }
            Kind::Loud => ("! ", "    ", RowLook::Loud),
            Kind::End { completed: true } => ("── ", "   ", RowLook::Good),
            Kind::End { completed: false } => ("── ", "   ", RowLook::Bad),
        };
        let text = match &self.kind {
            Kind::Call(tool) => call_line(tool),
            Kind::Prompt | Kind::Words | Kind::Thought | Kind::Line | Kind::Loud | Kind::End { .. } => {
                self.text.trim_end().to_owned()
            }
        };
        let row = |text: String| EntryRow { look, text };
        let mut rows: Vec<EntryRow> = wrap(&text, layout.width, first, rest).into_iter().map(row).collect();
        if let Some(tool) = self.tool().filter(|_| self.is_open(layout)) {
            rows.extend(
                tool.details(OpenedPart::Everything).into_iter().flat_map(|one| detail(one, layout.width)),
            );
        }
        if self.apart {
            rows.insert(0, EntryRow { look: RowLook::Plain, text: String::new() });
        }
        self.rows = rows;
    }
}

fn call_line(tool: &ToolUse) -> String {
    match &tool.returned {
        // Its beginning is further up than what was read.
        Some(returned) if tool.title.is_empty() => format!("an earlier call: {}", returned.words()),
        Some(_) => tool.line(),
        None => format!("{} …", tool.title),
    }
}

fn detail(row: DetailRow, width: usize) -> Vec<EntryRow> {
    let (look, text, first) = match row {
        DetailRow::Label(text) => (RowLook::Quiet, text, "  "),
        DetailRow::Plain(text) => (RowLook::Plain, text, "  │ "),
        DetailRow::Added(text) => (RowLook::Good, text, "  │ "),
        DetailRow::Removed(text) => (RowLook::Bad, text, "  │ "),
    };
    wrap(&text, width, first, first).into_iter().map(|text| EntryRow { look, text }).collect()
}

fn clip(mut text: String) -> String {
    if text.len() > DETAIL_BYTES_MAX {
        text.truncate(text.floor_char_boundary(DETAIL_BYTES_MAX));
        text.push_str(CUT);
    }
    text
}

fn clip_edits(edits: Vec<FileEdit>) -> Vec<FileEdit> {
    let clipped = |edit: FileEdit| FileEdit { path: edit.path, old: edit.old.map(clip), new: clip(edit.new) };
    edits.into_iter().map(clipped).collect()
}

fn clip_return(returned: ToolReturn) -> ToolReturn {
    let edits = clip_edits(returned.edits);
    ToolReturn { output: clip(returned.output), edits, ..returned }
}
