//! The program's screen on this terminal, and a line below it. The screen is kept here too, and only what it shows is
//! drawn: no sequence of the program reaches this terminal.

use std::fmt::Write as _;
use std::num::NonZeroU16;

use lanyard_core::session::WindowSize;
use vt100::{Callbacks, Parser, Screen};

/// Takes the terminal for the pane, and gives it back as it was.
pub(super) const ENTER: &str = "\x1b[?1049h\x1b[2J\x1b[H";
pub(super) const LEAVE: &str = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1005l\x1b[?9l\x1b[?1l\x1b>\x1b[?2004l\x1b[0 q\x1b[m\x1b[?25h\x1b[?1049l";
/// Rows of this terminal that are not the program's.
pub(super) const OWN_ROWS: u16 = 1;
const SMALLEST: NonZeroU16 = NonZeroU16::MIN;

/// The title the program gave its window.
#[derive(Debug, Default)]
struct Title(String);

impl Callbacks for Title {
    fn set_window_title(&mut self, _: &mut Screen, title: &[u8]) {
        let text = String::from_utf8_lossy(title);
        self.0 = text.chars().filter(|one| !one.is_control()).collect();
    }
}

pub(super) struct Pane {
    parser: Parser<Title>,
    /// The rows as they are on this terminal, the status among them.
    drawn: Vec<String>,
    modes: Option<Screen>,
    /// The size of this terminal.
    local: WindowSize,
}

/// The line below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatusLine {
    pub(super) session: String,
    pub(super) role: String,
    pub(super) hint: String,
}

fn parser(size: WindowSize) -> Parser<Title> {
    let cell = |count: u16| NonZeroU16::new(count).unwrap_or(SMALLEST);
    Parser::new_with_callbacks(cell(size.rows), cell(size.cols), 0, Title::default())
}

impl Pane {
    pub(super) fn new(local: WindowSize) -> Self {
        Self { parser: parser(WindowSize::default()), drawn: Vec::new(), modes: None, local }
    }

    /// The size that the program has on this terminal.
    pub(super) fn room(&self) -> WindowSize {
        let rows = self.local.rows.saturating_sub(OWN_ROWS).clamp(1, WindowSize::MAX.rows);
        WindowSize { cols: self.local.cols.clamp(2, WindowSize::MAX.cols), rows }
    }

    /// The whole screen comes next, in this size.
    pub(super) fn begin(&mut self, size: WindowSize) {
        self.parser = parser(size);
    }

    pub(super) fn output(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
    }

    pub(super) fn resized(&mut self, local: WindowSize) {
        self.local = local;
        self.redraw();
    }

    pub(super) fn redraw(&mut self) {
        self.drawn.clear();
        self.modes = None;
    }

    /// What makes this terminal show it. A writer's keys and mouse are as the program wants them.
    pub(super) fn draw(&mut self, status: &StatusLine, writes: bool) -> String {
        let screen = self.parser.screen();
        let mut out = String::from("\x1b[?2026h\x1b[?25l");
        let rows = usize::from(self.local.rows);
        if self.drawn.len() != rows {
            out.push_str("\x1b[m\x1b[2J");
            self.drawn = vec![String::new(); rows];
        }
        let (program_rows, program_cols) = screen.size();
        let shown = rows.saturating_sub(usize::from(OWN_ROWS));
        let (cursor_row, cursor_col) = screen.cursor_position();
        // A program with more rows than this terminal is shown around its cursor.
        let first = usize::from(cursor_row + 1).saturating_sub(shown);
        let width = program_cols.get().min(self.local.cols);
        let lines = screen.rows_formatted(0, width).skip(first).take(shown);
        let mut lines: Vec<String> = lines.collect();
        lines.resize(shown, String::new());
        lines.push(status_text(
            status,
            self.parser.callbacks(),
            (program_cols, program_rows),
            self.local.cols,
        ));
        for (at, (line, drawn)) in lines.into_iter().zip(&mut self.drawn).enumerate() {
            if *drawn != line {
                let _ = write!(out, "\x1b[{};1H\x1b[m\x1b[K{line}\x1b[m", at + 1);
                *drawn = line;
            }
        }
        if writes {
            let modes = match &self.modes {
                Some(before) => screen.input_mode_diff(before),
                None => screen.input_mode_formatted(),
            };
            out.push_str(&modes);
            self.modes = Some(screen.clone());
        }
        let row = usize::from(cursor_row).saturating_sub(first);
        if row < shown && cursor_col < self.local.cols {
            let _ = write!(out, "\x1b[{};{}H", row + 1, cursor_col + 1);
            if !screen.hide_cursor() {
                out.push_str("\x1b[?25h");
            }
        }
        out.push_str("\x1b[?2026l");
        out
    }
}

fn status_text(
    status: &StatusLine,
    Title(title): &Title,
    (cols, rows): (NonZeroU16, NonZeroU16),
    width: u16,
) -> String {
    let StatusLine { session, role, hint } = status;
    let mut text = format!(" {session} | {role} | {cols}x{rows} | {hint}");
    if !title.is_empty() {
        let _ = write!(text, " | {title}");
    }
    let text = crate::render::text::fit(&text, usize::from(width));
    format!("\x1b[7m{text}\x1b[K")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> StatusLine {
        StatusLine { session: "sess".to_owned(), role: "writing".to_owned(), hint: "keys".to_owned() }
    }

    /// This terminal after it was drawn on.
    fn shown(drawings: &[String], local: WindowSize) -> Parser {
        let cell = |count: u16| NonZeroU16::new(count).unwrap();
        let mut terminal = Parser::new(cell(local.rows), cell(local.cols), 0);
        for drawing in drawings {
            terminal.process(drawing.as_bytes());
        }
        terminal
    }

    #[test]
    fn the_screen_is_drawn_above_a_line_of_its_own_and_changes_alone_are_drawn_again() {
        let local = WindowSize { cols: 40, rows: 6 };
        let mut pane = Pane::new(local);
        assert_eq!(pane.room(), WindowSize { cols: 40, rows: 5 });
        pane.begin(pane.room());
        pane.output(b"one\r\n\x1b[1mtwo\x1b[m\r\n\x1b]2;the title\x07three");
        let first = pane.draw(&status(), true);
        pane.output(b"!");
        let second = pane.draw(&status(), true);
        assert!(second.len() < first.len() && !second.contains("one"), "{second:?}");
        let terminal = shown(&[first, second], local);
        let rows: Vec<String> = terminal.screen().rows(0, 40).collect();
        assert_eq!(rows[..4], ["one", "two", "three!", ""]);
        assert!(rows[5].starts_with(" sess | writing | 40x5 | keys"), "{rows:?}");
        assert_eq!(terminal.screen().cursor_position(), (2, 6));
        assert!(rows[5].contains("| the "), "{rows:?}");
    }

    #[test]
    fn a_screen_larger_than_this_terminal_is_shown_around_its_cursor() {
        let local = WindowSize { cols: 10, rows: 4 };
        let mut pane = Pane::new(local);
        pane.begin(WindowSize { cols: 30, rows: 20 });
        for row in 1..=20 {
            pane.output(format!("\x1b[{row};1Hrow {row} and more than fits").as_bytes());
        }
        pane.output(b"\x1b[20;3H");
        let terminal = shown(&[pane.draw(&status(), false)], local);
        let rows: Vec<String> = terminal.screen().rows(0, 10).collect();
        assert_eq!(rows[..3], ["row 18 and", "row 19 and", "row 20 and"]);
        assert_eq!(terminal.screen().cursor_position(), (2, 2));
    }

    #[test]
    fn keys_and_mouse_are_as_the_program_wants_them_for_the_writer_alone() {
        let local = WindowSize { cols: 20, rows: 4 };
        let mut pane = Pane::new(local);
        pane.begin(pane.room());
        pane.output(b"\x1b[?2004h\x1b[?1h\x1b[?1000h");
        let watched = shown(&[pane.draw(&status(), false)], local);
        assert!(!watched.screen().bracketed_paste());
        let written = shown(&[pane.draw(&status(), true)], local);
        assert!(written.screen().bracketed_paste() && written.screen().application_cursor());
    }
}
