//! The part of a session's log that is on the screen or near it: entries broken into rows, the newest kept, older ones
//! fetched when the user scrolls up to them. Nothing here grows without bound.

mod entry;
mod opening;

use std::collections::VecDeque;

use serde_json::Value;

use crate::render::text::harmless;
use crate::render::tool::ToolReturn;
use crate::render::transcript::{Transcriber, TranscriptItem};
pub(crate) use entry::RowLook;
use entry::{Kind, Layout, TranscriptEntry};
pub(crate) use opening::Selection;

/// Entries kept in memory. A long turn has some hundreds; this is an afternoon of them.
pub(crate) const ENTRIES_MAX: usize = 3_000;
/// Words of an agent that run on are one entry up to this size.
const ENTRY_BYTES_MAX: usize = 32 * 1024;
/// Events asked for at a time when scrolling.
pub(crate) const PAGE_EVENTS: u64 = 300;
/// Prompts kept to be recalled, and the size of one.
const PROMPTS_MAX: usize = 200;
const PROMPT_BYTES_MAX: usize = 32 * 1024;

/// Where the newest rows that are shown stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Scroll {
    /// Rows below the last visible one.
    pub(crate) below: usize,
}

/// A row on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShownRow<'a> {
    pub(crate) look: RowLook,
    pub(crate) text: &'a str,
    /// It belongs to the selected tool call.
    pub(crate) chosen: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    entries: VecDeque<TranscriptEntry>,
    rows: usize,
    layout: Layout,
    /// Everything after `from` and up to `to` is in here.
    from: u64,
    to: u64,
    /// The newest event there is.
    head: u64,
    preview: Option<TranscriptEntry>,
    transcriber: Transcriber,
    /// The tool call that is selected.
    chosen: Option<String>,
    /// Prompts of this session, the newest last.
    prompts: VecDeque<String>,
    pub(crate) scroll: Scroll,
}

impl Transcript {
    /// Where the stream was joined: what is older is asked for when it is wanted.
    pub(crate) fn join(&mut self, after: u64) {
        if self.to == 0 && self.entries.is_empty() {
            (self.from, self.to, self.head) = (after, after, after);
        }
    }

    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Whether the newest events are in here.
    pub(crate) fn is_live(&self) -> bool {
        self.to >= self.head
    }

    /// The newest tool call, and whether it has come back.
    pub(crate) fn last_call(&self) -> Option<(&str, bool)> {
        let call =
            self.entries.iter().rev().find_map(|entry| entry.tool().filter(|tool| !tool.title.is_empty()));
        call.map(|tool| (tool.title.as_str(), tool.returned.is_some()))
    }

    /// The prompt `back` before the newest one.
    pub(crate) fn prompt(&self, back: usize) -> Option<&str> {
        self.prompts.iter().rev().nth(back).map(String::as_str)
    }

    pub(crate) fn resize(&mut self, width: usize) {
        if width == self.layout.width {
            return;
        }
        self.layout.width = width;
        let layout = self.layout;
        for entry in &mut self.entries {
            entry.lay_out(layout);
        }
        if let Some(preview) = &mut self.preview {
            preview.lay_out(layout);
        }
        self.count();
    }

    /// Takes an event of the stream. Each counts once, whichever way it came.
    pub(crate) fn live(&mut self, seq: u64, raw: &Value) {
        if seq <= self.head {
            return;
        }
        let was_live = self.is_live();
        self.head = seq;
        if !was_live {
            return;
        }
        let before = self.total();
        self.preview = None;
        self.push(seq, raw);
        self.trim_oldest();
        self.keep_place(before);
    }

    /// Text that is not an event yet. The event that follows stands in its place.
    pub(crate) fn preview(&mut self, thought: bool, text: &str, message_id: Option<&str>) {
        if !self.is_live() {
            return;
        }
        let before = self.total();
        let mut entry = match self.entries.back() {
            _ if thought => TranscriptEntry::new(Kind::Thought, self.to, harmless(text)),
            Some(last) if last.goes_on_with(message_id) => TranscriptEntry {
                seq: self.to,
                text: format!("{}{}", last.text, harmless(text)),
                ..last.clone()
            },
            last => TranscriptEntry::words(last, self.to, text, message_id),
        };
        entry.lay_out(self.layout);
        self.preview = Some(entry);
        self.keep_place(before);
    }

    pub(crate) fn forget_preview(&mut self) {
        self.preview = None;
    }

    /// Events before the oldest here.
    pub(crate) fn prepend(&mut self, events: &[Value]) {
        let mut older = Self { layout: self.layout, ..Self::default() };
        let mut first = self.from;
        for raw in events {
            let seq = raw["seq"].as_u64().unwrap_or(0);
            if seq == 0 || seq > self.from {
                continue;
            }
            first = first.min(seq - 1);
            older.push(seq, raw);
        }
        if first == self.from {
            // Nothing readable there: do not ask for it again and again.
            first = self.from.saturating_sub(PAGE_EVENTS);
        }
        self.from = first;
        self.settle_calls(&mut older);
        for entry in older.entries.into_iter().rev() {
            self.entries.push_front(entry);
        }
        for prompt in older.prompts.into_iter().rev() {
            if self.prompts.len() < PROMPTS_MAX {
                self.prompts.push_front(prompt);
            }
        }
        while self.entries.len() > ENTRIES_MAX {
            let Some(gone) = self.entries.pop_back() else { break };
            self.preview = None;
            // What is dropped here is asked for again on the way down.
            self.scroll.below = self.scroll.below.saturating_sub(gone.rows.len());
            self.to = self.entries.back().map_or(self.from, |entry| entry.seq);
        }
        self.count();
    }

    /// Events after the newest here, when the newest of the log were let go.
    pub(crate) fn append(&mut self, events: &[Value]) {
        let before = self.total();
        for raw in events {
            let seq = raw["seq"].as_u64().unwrap_or(0);
            if seq > self.to {
                self.push(seq, raw);
                self.head = self.head.max(seq);
            }
        }
        self.trim_oldest();
        self.keep_place(before);
        self.count();
    }

    /// Starts again with the newest events.
    pub(crate) fn replace(&mut self, events: &[Value]) {
        let head = self.head;
        *self = Self { layout: self.layout, head, ..Self::default() };
        let first = events.first().and_then(|raw| raw["seq"].as_u64()).unwrap_or(1);
        (self.from, self.to) = (first.saturating_sub(1), first.saturating_sub(1));
        self.append(events);
        self.scroll = Scroll::default();
    }

    /// The position to ask for older events after, and how many; nothing at the beginning of the log.
    pub(crate) fn older(&self) -> Option<(u64, u64)> {
        (self.from > 0).then(|| {
            let after = self.from.saturating_sub(PAGE_EVENTS);
            (after, self.from - after)
        })
    }

    pub(crate) fn newer(&self) -> Option<u64> {
        (!self.is_live()).then_some(self.to)
    }

    pub(crate) fn total(&self) -> usize {
        self.rows - self.replaced() + self.preview.as_ref().map_or(0, |entry| entry.rows.len())
    }

    /// The rows that fit into `height`, oldest first, each with what it is part of.
    pub(crate) fn visible(&self, height: usize) -> Vec<ShownRow<'_>> {
        let mut rows: Vec<ShownRow<'_>> = Vec::with_capacity(height);
        let mut skip = self.scroll.below;
        let hidden = usize::from(self.replaced() > 0);
        let shown = self.preview.iter().chain(self.entries.iter().rev().skip(hidden));
        for entry in shown {
            if skip >= entry.rows.len() {
                skip -= entry.rows.len();
                continue;
            }
            for row in entry.rows.iter().rev().skip(std::mem::take(&mut skip)) {
                if rows.len() == height {
                    rows.reverse();
                    return rows;
                }
                rows.push(ShownRow { look: row.look, text: &row.text, chosen: self.is_chosen(entry) });
            }
        }
        rows.reverse();
        rows
    }

    /// Scrolls up by so many rows; `height` are visible. Says whether the top was reached.
    pub(crate) fn up(&mut self, by: usize, height: usize) -> bool {
        let most = self.total().saturating_sub(height);
        self.scroll.below = (self.scroll.below + by).min(most);
        self.scroll.below == most
    }

    /// Scrolls down. Says whether the bottom was reached.
    pub(crate) fn down(&mut self, by: usize) -> bool {
        self.scroll.below = self.scroll.below.saturating_sub(by);
        self.scroll.below == 0
    }

    fn push(&mut self, seq: u64, raw: &Value) {
        self.to = seq;
        for item in self.transcriber.read(raw) {
            match item {
                TranscriptItem::Prompt { text, .. } => {
                    self.remember(&text);
                    self.add(TranscriptEntry::new(Kind::Prompt, seq, harmless(text.trim())));
                }
                TranscriptItem::Words { text, message_id, .. } => {
                    self.add(TranscriptEntry::words(self.entries.back(), seq, &text, message_id.as_deref()));
                }
                TranscriptItem::Thought(text) => {
                    self.add(TranscriptEntry::new(Kind::Thought, seq, harmless(&text)));
                }
                TranscriptItem::Tool(tool) => self.add(TranscriptEntry::call(seq, *tool)),
                TranscriptItem::Returned(returned) => self.returned(seq, *returned),
                TranscriptItem::Note(text) => self.add(TranscriptEntry::new(Kind::Line, seq, text)),
                TranscriptItem::Loud(text) => self.add(TranscriptEntry::new(Kind::Loud, seq, text)),
                TranscriptItem::Asks { title, .. } => {
                    self.add(TranscriptEntry::new(Kind::Loud, seq, format!("asks for approval: {title}")));
                }
                TranscriptItem::End { text, completed } => {
                    self.add(TranscriptEntry::new(Kind::End { completed }, seq, text));
                }
            }
        }
    }

    fn remember(&mut self, prompt: &str) {
        if prompt.len() > PROMPT_BYTES_MAX || self.prompts.back().is_some_and(|last| last == prompt) {
            return;
        }
        self.prompts.push_back(prompt.to_owned());
        if self.prompts.len() > PROMPTS_MAX {
            self.prompts.pop_front();
        }
    }

    fn add(&mut self, mut entry: TranscriptEntry) {
        let layout = self.layout;
        if let Some(last) = self.entries.back_mut()
            && matches!(
                (&last.kind, &entry.kind),
                (Kind::Words, Kind::Words) | (Kind::Thought, Kind::Thought)
            )
            && (entry.message_id.is_none() || last.message_id == entry.message_id)
            && last.text.len() + entry.text.len() <= ENTRY_BYTES_MAX
        {
            self.rows -= last.rows.len();
            last.text.push_str(&entry.text);
            last.seq = entry.seq;
            last.lay_out(layout);
            self.rows += last.rows.len();
            return;
        }
        entry.lay_out(layout);
        self.rows += entry.rows.len();
        self.entries.push_back(entry);
    }

    fn returned(&mut self, seq: u64, returned: ToolReturn) {
        let layout = self.layout;
        let is_open = |entry: &&mut TranscriptEntry| {
            entry.tool().is_some_and(|tool| tool.id == returned.id && tool.returned.is_none())
        };
        if let Some(entry) = self.entries.iter_mut().rev().find(is_open) {
            self.rows -= entry.rows.len();
            entry.settle(returned);
            entry.lay_out(layout);
            self.rows += entry.rows.len();
        } else {
            self.add(TranscriptEntry::result(seq, returned));
        }
    }

    /// Calls of an older page whose results are here already: told on one line again.
    fn settle_calls(&mut self, older: &mut Self) {
        let layout = self.layout;
        for entry in &mut older.entries {
            let Some(tool) = entry.tool().filter(|tool| tool.returned.is_none()) else { continue };
            let result = self
                .entries
                .iter()
                .position(|held| held.tool().is_some_and(|held| held.title.is_empty() && held.id == tool.id));
            if let Some(at) = result
                && let Some(Kind::Call(held)) = self.entries.remove(at).map(|held| held.kind)
                && let Some(returned) = held.returned
            {
                entry.settle(returned);
                entry.lay_out(layout);
            }
        }
        if let (Some(last), Some(first)) = (older.entries.back(), self.entries.front())
            && last.kind == Kind::Words
            && first.kind == Kind::Words
        {
            let head = last.text.clone();
            older.entries.pop_back();
            if let Some(first) = self.entries.front_mut() {
                first.text.insert_str(0, &head);
                first.lay_out(layout);
            }
        }
    }

    fn trim_oldest(&mut self) {
        while self.entries.len() > ENTRIES_MAX {
            if let Some(gone) = self.entries.pop_front() {
                self.rows -= gone.rows.len();
                self.from = gone.seq;
            }
        }
    }

    /// A view further up is not moved by new entries below.
    fn keep_place(&mut self, before: usize) {
        if self.scroll.below > 0 {
            let grown = self.total().saturating_sub(before);
            self.scroll.below += grown;
        }
    }

    /// Rows of the last entry that the preview shows with more behind them.
    fn replaced(&self) -> usize {
        match (&self.preview, self.entries.back()) {
            (Some(preview), Some(last))
                if preview.kind == Kind::Words && last.goes_on_with(preview.message_id.as_deref()) =>
            {
                last.rows.len()
            }
            _ => 0,
        }
    }

    fn count(&mut self) {
        self.rows = self.entries.iter().map(|entry| entry.rows.len()).sum();
    }
}

#[cfg(test)]
#[path = "transcript/tests.rs"]
mod tests;
