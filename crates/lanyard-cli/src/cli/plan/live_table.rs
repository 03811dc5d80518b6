//! A text that is drawn again in its place. There is one only on a terminal.

use std::io::IsTerminal;

use crate::context::Context;
use crate::failure::Failure;

/// Rows of a terminal of unknown height.
const ROWS: usize = 24;

/// The lines of the text stand right above the cursor until something else is printed.
#[derive(Debug)]
pub(super) struct LiveTable {
    lines: usize,
}

impl LiveTable {
    pub(super) fn on_terminal(context: &Context) -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let seen = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        (seen && !dumb && !context.out.quiet && !context.out.is_json()).then_some(Self { lines: 0 })
    }

    /// Rows a text may have so that all of it can be drawn again.
    pub(super) fn rows() -> usize {
        let told = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let rows = told.map_or(ROWS, |size| usize::from(size.ws_row));
        // The cursor stands below the text.
        if rows == 0 { ROWS } else { rows }.saturating_sub(1)
    }

    pub(super) fn draw(&mut self, context: &Context, text: &str) -> Result<(), Failure> {
        let back = if self.lines > 0 { format!("\r\u{1b}[{}A\u{1b}[J", self.lines) } else { String::new() };
        self.lines = text.lines().count();
        context.out.document(&format!("{back}{text}"))
    }

    /// Something else stands below the text now: it stays, and the next one is drawn below.
    pub(super) fn leave(&mut self) {
        self.lines = 0;
    }
}
