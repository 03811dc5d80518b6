//! The two streams: data goes to stdout, everything else to stderr. Nothing else in this program prints.
//!
//! Much of what is printed was written by agents. What a terminal would obey is replaced here, on every line: always on
//! stderr, and on stdout where that is a terminal; a file or another program gets the bytes as they are.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};

use lanyard_core::Outcome;
use serde::Serialize;

use crate::failure::{Failure, chain};
use crate::render::ids::shorten_words;
use crate::render::text::{harmless, one_line};

/// Who the output is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    People,
    Json,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Out {
    pub(crate) form: Form,
    /// Leaves out what is only good to know; errors and warnings are told either way.
    pub(crate) quiet: bool,
    /// How many columns a line of text may have; any number when stdout is no terminal.
    pub(crate) columns: Option<usize>,
}

/// The shape of every list that the command line prints as JSON.
#[derive(Serialize)]
struct ListDocument<'a, T> {
    items: &'a [T],
    next: Option<&'a str>,
    #[serde(flatten)]
    beside: &'a serde_json::Value,
}

impl Out {
    pub(crate) fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    pub(crate) fn new(form: Form, quiet: bool) -> Self {
        Self { form, quiet, columns: terminal_width() }
    }

    /// Text that was asked for. A newline is added unless the text ends with one.
    pub(crate) fn data(&self, text: &str) -> Result<(), Failure> {
        let text = self.shown(text);
        let mut stdout = std::io::stdout().lock();
        let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.write_all(newline.as_bytes()))
            .and_then(|()| stdout.flush())
            .map_err(|error| unwritten(&error))
    }

    /// One JSON document.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::local("output_failed", chain(&error), ""))?;
        self.data(&text)
    }

    /// A list as one JSON document: `{"items": […], "next": CURSOR}`, with null as the cursor of a list that is whole.
    pub(crate) fn list(&self, items: &[impl Serialize], next: Option<&str>) -> Result<(), Failure> {
        self.list_with(items, next, &serde_json::json!({}))
    }

    /// A list with further fields of the document beside its items.
    pub(crate) fn list_with(
        &self,
        items: &[impl Serialize],
        next: Option<&str>,
        beside: &serde_json::Value,
    ) -> Result<(), Failure> {
        self.json(&ListDocument { items, next, beside })
    }

    /// Good to know: what was done, what is being waited for.
    pub(crate) fn note(&self, text: &str) {
        if self.quiet {
            return;
        }
        // A person types ids; a file or another program gets them whole.
        if std::io::stderr().is_terminal() {
            say(&shorten_words(text));
        } else {
            say(text);
        }
    }

    /// Text that was asked for, as it is: what comes next may go on in the same line.
    pub(crate) fn words(&self, text: &str) -> Result<(), Failure> {
        let text = self.shown(text);
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| unwritten(&error))
    }

    /// Text that was asked for and is made for this medium already: nothing of others in it steers a terminal.
    #[expect(clippy::unused_self, reason = "who prints has an `Out`, so that one can see who does")]
    pub(crate) fn document(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| unwritten(&error))
    }

    /// Text as stdout gets it.
    fn shown<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.columns.is_some() { Cow::Owned(harmless(text)) } else { Cow::Borrowed(text) }
    }

    /// Text beside the data, as it is: a question with its answer typed behind it, or words that go on. The caller has
    /// made text of others harmless.
    #[expect(clippy::unused_self, reason = "who prints has an `Out`, so that one can see who does")]
    pub(crate) fn question(&self, text: &str) {
        let mut stderr = std::io::stderr();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }

    /// Should be known.
    #[expect(clippy::unused_self, reason = "who prints has an `Out`, so that one can see who does")]
    pub(crate) fn warn(&self, text: &str) {
        warn(text);
    }

    /// The receipt of a change. Programs get all of it. People get what they need next on stdout (an id, if there is
    /// one) and a sentence of what happened on stderr.
    pub(crate) fn receipt(
        &self,
        outcome: &Outcome,
        data: Option<&str>,
        sentence: &str,
    ) -> Result<(), Failure> {
        if self.is_json() {
            return self.json(outcome);
        }
        for warning in &outcome.warnings {
            self.warn(warning);
        }
        if outcome.events == 0 {
            self.note("nothing to change");
        } else if !sentence.is_empty() {
            self.note(sentence);
        }
        data.map_or(Ok(()), |data| self.data(data))
    }
}

fn unwritten(error: &std::io::Error) -> Failure {
    if error.kind() == ErrorKind::BrokenPipe {
        return Failure::ClosedPipe;
    }
    Failure::local("output_failed", format!("cannot write to stdout: {error}"), "")
}

/// A warning on stderr.
pub(crate) fn warn(text: &str) {
    say(&format!("warning: {}", one_line(text)));
}

/// With stderr closed a message is lost; that is no reason to stop working.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", harmless(text));
}

fn terminal_width() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let told = rustix::termios::tcgetwinsize(&stdout).ok().map(|size| usize::from(size.ws_col));
    let from_env = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    // 80: what every terminal has that says nothing about itself.
    Some(told.filter(|&columns| columns > 0).or_else(from_env).unwrap_or(80))
}
