//! A transcript as lines of text: the time in the margin, then the speaker with their words, tools on one line each.

use lanyard_core::Timestamp;

use super::{LogForm, LogHead, OpenText, day_and_time, new_day};
use crate::render::text::{count, harmless};
use crate::render::tool::{DetailRow, OpenedPart, ToolUse};
use crate::render::transcript::TranscriptItem;
use crate::render::wrap::{columns, wrap};

/// Columns of the margin: a time and two blanks.
const MARGIN: usize = 10;
/// Rows of a diff that are shown unless everything is.
const DIFF_ROWS_MAX: usize = 40;
const TAB: usize = 4;

#[derive(Debug)]
pub(crate) struct TextForm {
    /// Columns of the terminal; any number without one.
    width: usize,
    /// Whether colours are used. They only repeat what the words say.
    colours: bool,
    opened: OpenedPart,
    day: String,
    running: OpenText,
    flow: WordFlow,
    /// The item before was the end of words.
    after_words: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ink {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
}

impl TextForm {
    pub(crate) fn new(width: Option<usize>, colours: bool, opened: OpenedPart) -> Self {
        let width = width.unwrap_or(usize::MAX);
        let flow = WordFlow { width, ..WordFlow::default() };
        let (day, running) = (String::new(), OpenText::Nothing);
        Self { width, colours, opened, day, running, flow, after_words: false }
    }

    fn ink(&self, ink: Ink, text: &str) -> String {
        if !self.colours || text.is_empty() {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Red => "31",
            Ink::Green => "32",
            Ink::Yellow => "33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Text in rows behind a time.
    fn block(&self, at: Timestamp, mark: &str, text: &str, ink: Option<Ink>) -> String {
        let (_, time) = day_and_time(at);
        let rest = " ".repeat(columns(mark));
        let rows = wrap(text, self.width.saturating_sub(MARGIN), mark, &rest);
        let margin = self.ink(Ink::Dim, &time);
        let line = |(at, row): (usize, &String)| {
            let row = ink.map_or_else(|| row.clone(), |ink| self.ink(ink, row));
            match (at, row.is_empty()) {
                (0, _) => format!("{margin}  {row}\n"),
                (_, true) => "\n".to_owned(),
                (_, false) => format!("{}{row}\n", " ".repeat(MARGIN)),
            }
        };
        rows.iter().enumerate().map(line).collect()
    }

    fn tool(&self, tool: &ToolUse) -> String {
        let ink = if tool.failed() { Ink::Red } else { Ink::Dim };
        let mut out = self.block(tool.at, "· ", &tool.line(), Some(ink));
        let rows = tool.details(self.opened);
        let shown = if self.opened == OpenedPart::Edits { DIFF_ROWS_MAX } else { usize::MAX };
        for row in rows.iter().take(shown) {
            out.push_str(&self.detail(row));
        }
        if let Some(more) = rows.len().checked_sub(shown).filter(|more| *more > 0) {
            let text = format!("… {} more; --full shows all", count(more, "line"));
            out.push_str(&self.detail(&DetailRow::Label(text)));
        }
        out
    }

    fn detail(&self, row: &DetailRow) -> String {
        let (text, lead, ink) = match row {
            DetailRow::Label(text) => (text, "", Some(Ink::Dim)),
            DetailRow::Plain(text) => (text, "│ ", None),
            DetailRow::Added(text) => (text, "│ ", Some(Ink::Green)),
            DetailRow::Removed(text) => (text, "│ ", Some(Ink::Red)),
        };
        let indent = " ".repeat(MARGIN + 2);
        let rows = wrap(text, self.width.saturating_sub(MARGIN + 2), lead, lead);
        let line = |row: String| {
            let row = ink.map_or_else(|| row.clone(), |ink| self.ink(ink, &row));
            format!("{indent}{row}\n")
        };
        rows.into_iter().map(line).collect()
    }

    /// Begins words that may go on, behind a time and a name.
    fn begin(&mut self, at: Timestamp, name: &str, ink: Ink) -> String {
        let (_, time) = day_and_time(at);
        self.flow.begin(columns(name));
        format!("{}  {}", self.ink(Ink::Dim, &time), self.ink(ink, name))
    }

    fn settle(&mut self) -> String {
        if std::mem::take(&mut self.running) == OpenText::Nothing {
            return String::new();
        }
        self.flow.word() + "\n"
    }

    fn words(&mut self, at: Timestamp, who: &str, text: &str, begins: bool) -> String {
        let mut out = String::new();
        if begins || self.running != OpenText::Words {
            let between = begins && (self.after_words || self.running == OpenText::Words);
            out.push_str(&self.settle());
            out.push_str(if between { "\n" } else { "" });
            out.push_str(&self.begin(at, &format!("{who}: "), Ink::Bold));
            self.running = OpenText::Words;
        }
        out + &self.flow.push(&harmless(text))
    }

    fn thought(&mut self, at: Timestamp, text: &str) -> String {
        let mut out = String::new();
        if self.running != OpenText::Thought {
            out.push_str(&self.settle());
            out.push_str(&self.begin(at, "┊ ", Ink::Dim));
            self.running = OpenText::Thought;
        }
        out + &self.flow.push(&harmless(text))
    }
}

impl LogForm for TextForm {
    fn head(&mut self, head: &LogHead) -> String {
        let facts: Vec<&str> =
            [head.id.as_str()].into_iter().chain(head.facts.iter().map(String::as_str)).collect();
        let rows = wrap(&facts.join(" · "), self.width, "", "");
        let facts: String = rows.iter().map(|row| self.ink(Ink::Dim, row) + "\n").collect();
        format!("{}\n{facts}", self.ink(Ink::Bold, &head.title))
    }

    fn item(&mut self, at: Timestamp, item: &TranscriptItem) -> String {
        let mut out = String::new();
        if let Some(day) = new_day(&mut self.day, at) {
            out = self.settle() + "\n" + &self.ink(Ink::Dim, &format!("{day} (UTC)")) + "\n";
        }
        let text = match item {
            TranscriptItem::Words { who, text, begins, .. } => {
                out.push_str(&self.words(at, who, text, *begins));
                self.after_words = true;
                return out;
            }
            TranscriptItem::Thought(text) => return out + &self.thought(at, text),
            TranscriptItem::Prompt { from, text, steered } => {
                let how = if *steered { " (into the running turn)" } else { "" };
                let text = harmless(text.trim());
                let block = self.block(at, &format!("{from}{how}: "), &text, Some(Ink::Bold));
                format!("\n{block}")
            }
            TranscriptItem::Tool(tool) => self.tool(tool),
            TranscriptItem::Returned(_) => String::new(),
            TranscriptItem::Note(text) => self.block(at, "· ", text, Some(Ink::Dim)),
            TranscriptItem::Loud(text) => self.block(at, "! ", text, Some(Ink::Yellow)),
            TranscriptItem::Asks { gate, title } => {
                let asks = self.block(at, "? ", &format!("asks for approval: {title}"), Some(Ink::Yellow));
                let how = gate.map(|gate| {
                    let how = format!("{}  `lanyard answer {gate}` answers it", " ".repeat(MARGIN));
                    self.ink(Ink::Dim, &how) + "\n"
                });
                asks + &how.unwrap_or_default()
            }
            TranscriptItem::End { text, completed } => {
                let ink = if *completed { Ink::Green } else { Ink::Red };
                self.block(at, "── ", text, Some(ink))
            }
        };
        self.after_words = false;
        out + &self.settle() + &text
    }

    fn pause(&mut self) -> String {
        self.flow.word()
    }

    fn end(&mut self) -> String {
        self.settle()
    }
}

/// Words that come in pieces, broken into rows between words.
#[derive(Debug, Default)]
struct WordFlow {
    width: usize,
    /// Columns that are used of the row, without the margin; nothing at the start of one.
    used: usize,
    word: String,
    blanks: usize,
}

impl WordFlow {
    fn begin(&mut self, used: usize) {
        (self.used, self.blanks) = (used, 0);
        self.word.clear();
    }

    fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for letter in text.chars() {
            match letter {
                '\n' => {
                    out.push_str(&self.word());
                    out.push('\n');
                    (self.used, self.blanks) = (0, 0);
                }
                ' ' | '\t' => {
                    out.push_str(&self.word());
                    self.blanks += if letter == '\t' { TAB } else { 1 };
                }
                letter => self.word.push(letter),
            }
        }
        out
    }

    /// Gives out the word that is held.
    fn word(&mut self) -> String {
        let word = std::mem::take(&mut self.word);
        if word.is_empty() {
            return word;
        }
        let (mut out, wide) = (String::new(), columns(&word));
        let room = self.width.saturating_sub(MARGIN);
        if self.used > 0 && self.used + self.blanks + wide > room {
            out.push('\n');
            (self.used, self.blanks) = (0, 0);
        }
        if self.used == 0 {
            out.push_str(&" ".repeat(MARGIN));
        }
        out.push_str(&" ".repeat(self.blanks));
        self.used += self.blanks + wide;
        self.blanks = 0;
        out + &word
    }
}
