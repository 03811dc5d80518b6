//! A transcript as Markdown. Words of people and agents are Markdown already and stay as they are.

use lanyard_core::Timestamp;

use super::{LogForm, LogHead, OpenText, day_and_time, new_day};
use crate::render::text::harmless;
use crate::render::tool::{DetailRow, OpenedPart, ToolUse};
use crate::render::transcript::TranscriptItem;

#[derive(Debug)]
pub(crate) struct MarkdownForm {
    opened: OpenedPart,
    day: String,
    running: OpenText,
}

impl MarkdownForm {
    pub(crate) fn new(opened: OpenedPart) -> Self {
        Self { opened, day: String::new(), running: OpenText::Nothing }
    }

    fn settle(&mut self) -> &'static str {
        match std::mem::take(&mut self.running) {
            OpenText::Nothing => "",
            OpenText::Words | OpenText::Thought => "\n\n",
        }
    }

    fn tool(&self, tool: &ToolUse) -> String {
        let out = line(tool.at, &escaped(&tool.line()));
        let rows = tool.details(self.opened);
        if rows.is_empty() {
            return out + "\n";
        }
        let text = rows.iter().fold(String::new(), |text, row| match row {
            DetailRow::Label(label) => format!("{text}@@ {label} @@\n"),
            DetailRow::Plain(row) | DetailRow::Added(row) | DetailRow::Removed(row) => {
                format!("{text}{row}\n")
            }
        });
        let fence = fence(&text);
        format!("{out}\n{fence}diff\n{text}{fence}\n\n")
    }
}

impl LogForm for MarkdownForm {
    fn head(&mut self, head: &LogHead) -> String {
        let facts: Vec<String> = head.facts.iter().map(|fact| escaped(fact)).collect();
        let facts = [vec![format!("`{}`", head.id)], facts].concat().join(" · ");
        format!("# {}\n\n{facts}\n\n", escaped(&head.title))
    }

    fn item(&mut self, at: Timestamp, item: &TranscriptItem) -> String {
        let mut out = String::new();
        if let Some(day) = new_day(&mut self.day, at) {
            out = format!("{}## {day} (UTC)\n\n", self.settle());
        }
        if let TranscriptItem::Words { who, text, begins, .. } = item {
            if *begins || self.running != OpenText::Words {
                out.push_str(self.settle());
                out.push_str(&speaker(at, who));
                self.running = OpenText::Words;
            }
            return out + &harmless(text);
        }
        if let TranscriptItem::Thought(text) = item {
            if self.running != OpenText::Thought {
                out.push_str(self.settle());
                out.push_str("> ");
                self.running = OpenText::Thought;
            }
            return out + &harmless(text).replace('\n', "\n> ");
        }
        out.push_str(self.settle());
        out + &match item {
            TranscriptItem::Prompt { from, text, steered } => {
                let how = if *steered { " (into the running turn)" } else { "" };
                format!("{}{}\n\n", speaker(at, &format!("{from}{how}")), harmless(text.trim()))
            }
            TranscriptItem::Tool(tool) => self.tool(tool),
            TranscriptItem::Note(text) => line(at, &escaped(text)) + "\n",
            TranscriptItem::Loud(text) => line(at, &format!("**{}**", escaped(text))) + "\n",
            TranscriptItem::Asks { title, .. } => {
                line(at, &format!("**asks for approval: {}**", escaped(title))) + "\n"
            }
            TranscriptItem::End { text, .. } => line(at, &format!("**{}**", escaped(text))) + "\n",
            TranscriptItem::Words { .. } | TranscriptItem::Thought(_) | TranscriptItem::Returned(_) => {
                String::new()
            }
        }
    }

    fn pause(&mut self) -> String {
        String::new()
    }

    fn end(&mut self) -> String {
        self.settle().to_owned()
    }
}

fn speaker(at: Timestamp, name: &str) -> String {
    format!("### {} · {}\n\n", escaped(name), day_and_time(at).1)
}

fn line(at: Timestamp, text: &str) -> String {
    format!("`{}` {text}\n", day_and_time(at).1)
}

/// A fence longer than any run of backticks in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Text that is shown as it is, on one line.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '&' | '~') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}
