//! The line that stands in place below what was told, and says how the flow is now. There is one only on a terminal.

use std::io::IsTerminal;

use crate::context::Context;
use crate::render::text::fit;

/// To the beginning of the line, and nothing in it.
const WIPE: &str = "\r\u{1b}[K";
/// Columns of a terminal of unknown width.
const COLUMNS: usize = 80;

pub(super) struct Status<'a> {
    context: &'a Context,
    on: bool,
    shown: bool,
}

impl<'a> Status<'a> {
    pub(super) fn new(context: &'a Context) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let on = std::io::stderr().is_terminal() && !dumb && !context.out.quiet && !context.out.is_json();
        Self { context, on, shown: false }
    }

    pub(super) const fn is_on(&self) -> bool {
        self.on
    }

    pub(super) fn show(&mut self, text: &str) {
        if self.on {
            // A full line would make some terminals begin the next.
            let columns = self.context.out.columns.unwrap_or(COLUMNS).saturating_sub(1);
            self.context.out.question(&format!("{WIPE}{}", fit(text, columns)));
            self.shown = true;
        }
    }

    /// Makes room for what is told next.
    pub(super) fn wipe(&mut self) {
        if std::mem::replace(&mut self.shown, false) {
            self.context.out.question(WIPE);
        }
    }
}
