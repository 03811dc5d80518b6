//! A transcript as a document: text for a terminal, Markdown, or a page of HTML. Each form takes one item at a time and
//! gives back the text to write, so that a log of any length is written as it is read.

mod html;
mod markdown;
mod text;

use lanyard_core::Timestamp;

use crate::render::time::stamp;
use crate::render::transcript::TranscriptItem;
pub(crate) use html::HtmlForm;
pub(crate) use markdown::MarkdownForm;
pub(crate) use text::TextForm;

/// The facts above a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogHead {
    pub(crate) title: String,
    pub(crate) id: String,
    /// Agent, folder, state: those that are known.
    pub(crate) facts: Vec<String>,
}

/// A form of a transcript. All text that it gives out is safe for its medium.
pub(crate) trait LogForm {
    fn head(&mut self, head: &LogHead) -> String;
    fn item(&mut self, at: Timestamp, item: &TranscriptItem) -> String;
    /// Whatever is held back of words that may go on.
    fn pause(&mut self) -> String;
    fn end(&mut self) -> String;
}

/// The text that may go on with the next item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum OpenText {
    #[default]
    Nothing,
    Words,
    Thought,
}

/// The day and the time of day, in UTC.
fn day_and_time(at: Timestamp) -> (String, String) {
    let text = stamp(at);
    match (text.get(..10), text.get(11..19)) {
        (Some(day), Some(time)) => (day.to_owned(), time.to_owned()),
        _ => (text, String::new()),
    }
}

/// The day of an item that is not the day of the one before it.
fn new_day(day: &mut String, at: Timestamp) -> Option<String> {
    let (today, _) = day_and_time(at);
    if *day == today {
        return None;
    }
    day.clone_from(&today);
    Some(today)
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
